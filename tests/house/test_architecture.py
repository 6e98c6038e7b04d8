"""ARCHITECTURE.md describes this tree, and not one that was or will be."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "packages/fluss-core/src/fluss"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
LINES_MAX = 250


def test_every_room_has_its_line():
    rooms = {
        path.stem if path.is_file() else path.name
        for path in CORE.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem != "__init__"
    }
    missing = {room for room in rooms if f"`{room}`" not in TEXT}
    assert not missing


def test_every_file_it_names_exists():
    named = set(re.findall(r"`((?:[a-z_]+/)+[A-Za-z_]+\.(?:py|proto|md|java))`", TEXT))
    assert named, "it names files"
    missing = {each for each in named if not ((ROOT / each).exists() or (CORE / each).exists())}
    assert not missing


def test_it_can_be_read_in_one_sitting():
    assert TEXT.count("\n") <= LINES_MAX
