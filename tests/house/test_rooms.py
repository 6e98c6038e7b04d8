"""The import contracts hold, and refuse what they are there to refuse."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "packages/fluss-core/src/fluss"
SANS_IO_ROOMS = ("model", "wire", "rows", "records")
PLANS = sorted(str(path.relative_to(CORE)) for path in CORE.rglob("plan_*.py"))


def lint_imports(root):
    sources = [str(each) for each in sorted((root / "packages").glob("*/src"))]
    program = (
        "import sys; sys.path[:0] = " + repr(sources) + "; "
        "from importlinter.cli import lint_imports_command; "
        "sys.exit(lint_imports_command(['--no-cache', '--config', 'pyproject.toml']))"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=root, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.fixture
def copied_house(tmp_path):
    return _copy_house(tmp_path)


@pytest.fixture(scope="module")
def planned_house(tmp_path_factory):
    return _copy_house(tmp_path_factory.mktemp("house"))


def _copy_house(tmp_path):
    for name in ("packages", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, tmp_path / name, ignore=ignore)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def test_the_house_keeps_its_own_contracts():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("room", "line", "contract"),
    [
        ("rows", "import asyncio", "what decides does not wait"),
        ("wire", "import socket", "what decides does not wait"),
        ("records", "import threading", "what decides does not wait"),
        ("rows", "import fluss.records", "rooms only know the rooms beneath them"),
        ("wire", "import fluss.rows", "rooms only know the rooms beneath them"),
        ("model", "import fluss.net", "rooms only know the rooms beneath them"),
    ],
)
def test_a_codec_that_imports_what_it_must_not_is_refused(copied_house, room, line, contract):
    culprit = copied_house / "packages/fluss-core/src/fluss" / room / "planted.py"
    culprit.write_text(f'"""Planted."""\n\n{line}\n')
    result = lint_imports(copied_house)
    assert result.returncode != 0
    assert contract in result.stdout
    assert f"fluss.{room}.planted" in result.stdout


def test_a_room_without_a_floor_is_refused(copied_house):
    (copied_house / "packages/fluss-core/src/fluss/helpers.py").write_text('"""Planted."""\n')
    result = lint_imports(copied_house)
    assert result.returncode != 0
    assert "fluss.helpers" in result.stdout


def test_the_contract_lists_every_plan():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(
        each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "sans-io"
    )
    listed = {each for each in contract["source_modules"] if ".plan_" in each}
    assert listed == {"fluss." + plan.removesuffix(".py").replace("/", ".") for plan in PLANS}


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_that_waits_is_refused(planned_house, plan):
    culprit = planned_house / "packages/fluss-core/src/fluss" / plan
    before = culprit.read_text()
    culprit.write_text(before + "\nimport time\n")
    try:
        result = lint_imports(planned_house)
    finally:
        culprit.write_text(before)
    assert result.returncode != 0
    assert "what decides does not wait" in result.stdout
    assert "fluss." + plan.removesuffix(".py").replace("/", ".") in result.stdout


@pytest.mark.parametrize("room", SANS_IO_ROOMS)
def test_no_coroutine_is_defined_in_a_bottom_room(room):
    for path in (CORE / room).rglob("*.py"):
        assert "async def" not in path.read_text(), path


@pytest.mark.parametrize("plan", PLANS)
def test_no_coroutine_is_defined_in_a_plan(plan):
    assert "async def" not in (CORE / plan).read_text()
