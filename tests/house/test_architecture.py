"""ARCHITECTURE.md describes this tree, and not one that was or will be."""

import re
from functools import cache

import pytest

from tests.house.sources import CORE, ROOT, package_files, text_of

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
LINES_MAX = 250
FILE = re.compile(r"`((?:[a-z_]+/)+[A-Za-z_]+\.(?:py|proto|md|java)|[a-z_]+\.py)`")
CHANGE = re.compile(r"^\| (an? [^|]+) \| (\d+) \| (.+) \| `([^`|]+)` \|$", re.MULTILINE)
# Changes of which the table lists every file of the packages that holds the example.
COMPLETE = {"a data type", "a compression codec", "a merge engine"}


def file_of(name):
    """A file that the page names: from the top, within the core, or within another package."""
    found = [ROOT / name, CORE / name, *ROOT.glob(f"packages/*/src/{name}")]
    return next((path for path in found if path.is_file()), None)


def test_every_room_has_its_line():
    rooms = {
        path.stem if path.is_file() else path.name
        for path in CORE.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem != "__init__"
    }
    missing = {room for room in rooms if f"`{room}`" not in TEXT}
    assert not missing


def test_every_file_it_names_exists():
    named = set(FILE.findall(TEXT))
    assert named, "it names files"
    missing = {name for name in named if file_of(name) is None}
    assert not missing


def test_it_can_be_read_in_one_sitting():
    assert TEXT.count("\n") <= LINES_MAX


def test_ten_changes_are_listed():
    assert len(CHANGE.findall(TEXT)) == 10


@cache
def files_with(example):
    """The files of the packages that hold an example, without the place that defines the tool."""
    pattern = re.compile(example)
    return {path for path in package_files() if pattern.search(text_of(path))}


@pytest.mark.parametrize(
    ("change", "count", "where", "example"), CHANGE.findall(TEXT), ids=lambda text: text[:24]
)
def test_a_change_touches_the_files_that_are_listed(change, count, where, example):
    listed = [file_of(name) for name in FILE.findall(where)]
    assert len(listed) == int(count)
    pattern = re.compile(example)
    without = [path for path in listed if not pattern.search(text_of(path))]
    assert not without, "these files do not hold the example"
    if change in COMPLETE:
        assert files_with(example) == set(listed), "every file of the packages with the example"
