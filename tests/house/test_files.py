"""What every file of the packages must have, so that a newcomer finds the way."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for path in ROOT.glob("packages/*/src/**/*.py")
    if "_generated" not in path.parts and "__pycache__" not in path.parts
)
BANNED_MODULE_NAMES = {"utils", "helpers", "common", "manager", "base"}
LINES_MAX = 600
FUNCTION_LINES_MAX = 90


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "packages")))
def test_a_file_says_what_it_is_for_and_stays_small(path):
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the first paragraph of a file says what it is for"
    assert path.stem not in BANNED_MODULE_NAMES
    assert text.count("\n") <= LINES_MAX, "two ideas may share this room"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < FUNCTION_LINES_MAX, node.name


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of tracked files")
    return [ROOT / line for line in listed.stdout.splitlines()]


def test_no_tracked_file_names_a_machine_or_a_package_host():
    # Written in pieces, so that this file does not name them either.
    hosts = "|".join(["pypi" + r"\.org", "python" + "hosted", "repo1?" + r"\.maven", "npm" + "js"])
    paths = r"(?<![\w./-])/(?:work|root|home)/[A-Za-z]"
    suspicious = re.compile(f"{hosts}|{paths}")
    for path in tracked_files():
        if path.suffix in {".png", ".bin", ".parquet"} or not path.is_file():
            continue
        found = suspicious.search(path.read_text(errors="replace"))
        assert found is None, f"{path.relative_to(ROOT)}: {found.group()}"


def test_nothing_lies_about_that_a_run_has_left():
    folders = {"benchmarks", "docs", "examples", "packages", "tests", "tools", ".ci"}
    files = {"dev", "LICENSE", "pyproject.toml", "ruff.toml", "constraints.txt", ".gitignore"}
    pages = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    found = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert found == folders | files | pages


def test_every_package_is_whole():
    for package in sorted((ROOT / "packages").iterdir()):
        if not (package / "pyproject.toml").exists():
            continue
        assert (package / "README.md").read_text().strip(), package.name
        modules = [each for each in (package / "src").iterdir() if (each / "__init__.py").exists()]
        assert modules, package.name
        for module in modules:
            assert (module / "py.typed").exists(), module
