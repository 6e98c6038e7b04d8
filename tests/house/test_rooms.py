"""The import contracts hold, and refuse what they are there to refuse.

All forbidden imports are planted in one copy of the packages, in files of their own and at the end
of every plan. The contracts are checked once, and each test looks for its import in the report.
"""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "packages/fluss-core/src/fluss"
SANS_IO_ROOMS = ("model", "wire", "rows", "records", "typed")
PLANS = sorted(
    str(path.relative_to(ROOT / "packages")) for path in ROOT.glob("packages/*/src/**/plan_*.py")
)
# What must be refused: the room, the file planted there, what it imports, the contract it breaks.
PLANTED = [
    ("rows", "planted_asyncio", "asyncio", "what decides does not wait"),
    ("wire", "planted_socket", "socket", "what decides does not wait"),
    ("records", "planted_threading", "threading", "what decides does not wait"),
    ("rows", "planted_records", "fluss.records", "rooms only know the rooms beneath them"),
    ("wire", "planted_rows", "fluss.rows", "rooms only know the rooms beneath them"),
    ("typed", "planted_time", "time", "what decides does not wait"),
    ("typed", "planted_write", "fluss.write", "rooms only know the rooms beneath them"),
    ("model", "planted_net", "fluss.net", "rooms only know the rooms beneath them"),
]


def lint_imports(root):
    sources = [str(source) for source in sorted((root / "packages").glob("*/src"))]
    program = (
        "import sys; sys.path[:0] = " + repr(sources) + "; "
        "from importlinter.cli import lint_imports_command; "
        "sys.exit(lint_imports_command(['--no-cache', '--config', 'pyproject.toml']))"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=root, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def copy_house(folder):
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "packages", folder / "packages", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What the contracts report about a copy in which every forbidden import is planted."""
    house = copy_house(tmp_path_factory.mktemp("planted"))
    core = house / "packages/fluss-core/src/fluss"
    for room, file, imported, _ in PLANTED:
        (core / room / f"{file}.py").write_text(f'"""Planted."""\n\nimport {imported}\n')
    for plan in PLANS:
        with (house / "packages" / plan).open("a") as source:
            source.write("\nimport time\n")
    return lint_imports(house)


def broken_contracts(report):
    """The report of each broken contract, by its name."""
    _, _, details = report.partition("Broken contracts\n")
    sections = {}
    lines = details.splitlines()
    for line, underline in zip(lines, [*lines[1:], ""], strict=True):
        if line and underline == "-" * len(line):
            sections[line] = []
        elif sections:
            sections[next(reversed(sections))].append(line)
    return {name: "\n".join(section) for name, section in sections.items()}


def test_the_house_keeps_its_own_contracts():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("room", "file", "imported", "contract"), PLANTED)
def test_a_codec_that_imports_what_it_must_not_is_refused(answer, room, file, imported, contract):
    assert answer.returncode != 0
    assert f"fluss.{room}.{file} -> {imported} (" in broken_contracts(answer.stdout)[contract]


def test_a_room_without_a_floor_is_refused(tmp_path):
    house = copy_house(tmp_path)
    (house / "packages/fluss-core/src/fluss/helpers.py").write_text('"""Planted."""\n')
    result = lint_imports(house)
    assert result.returncode != 0
    assert "fluss.helpers" in result.stdout


def module_of(plan):
    return plan.removesuffix(".py").partition("/src/")[2].replace("/", ".")


def test_the_contract_lists_every_plan():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["id"] == "sans-io"
    )
    listed = {module for module in contract["source_modules"] if ".plan_" in module}
    assert listed == {module_of(plan) for plan in PLANS}


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_that_waits_is_refused(answer, plan):
    assert answer.returncode != 0
    refused = broken_contracts(answer.stdout)["what decides does not wait"]
    assert f"{module_of(plan)} is not allowed to import time" in refused
    assert f"{module_of(plan)} -> time (" in refused


@pytest.mark.parametrize("room", SANS_IO_ROOMS)
def test_no_coroutine_is_defined_in_a_bottom_room(room):
    for path in (CORE / room).rglob("*.py"):
        assert "async def" not in path.read_text(), path


@pytest.mark.parametrize("plan", PLANS)
def test_no_coroutine_is_defined_in_a_plan(plan):
    assert "async def" not in (ROOT / "packages" / plan).read_text()
