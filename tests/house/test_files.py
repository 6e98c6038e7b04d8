"""Every file of the packages says what it is for and stays small; nothing foreign is tracked."""

import ast
import re
from collections import Counter

import pytest

from tests.house.sources import ROOT, package_files, text_of, tracked_files, tracked_texts, tree_of

BANNED_MODULE_NAMES = {"utils", "helpers", "common", "manager", "base"}
LINES_MAX = 600
FUNCTION_LINES_MAX = 90


@pytest.mark.parametrize(
    "path", package_files(), ids=lambda path: str(path.relative_to(ROOT / "packages"))
)
def test_a_file_says_what_it_is_for_and_stays_small(path):
    tree = tree_of(path)
    assert ast.get_docstring(tree), "the first paragraph of a file says what it is for"
    assert path.stem not in BANNED_MODULE_NAMES
    assert text_of(path).count("\n") <= LINES_MAX, "two ideas may share this room"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < FUNCTION_LINES_MAX, node.name
        elif isinstance(node, ast.For | ast.AsyncFor):
            names = {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
            assert "each" not in names, f"line {node.lineno}: say bucket, split or column"


def test_no_tracked_file_names_a_machine_or_a_package_host():
    # Written in pieces, so that this file does not name them either.
    hosts = "|".join(["pypi" + r"\.org", "python" + "hosted", "repo1?" + r"\.maven", "npm" + "js"])
    paths = r"(?<![\w./-])/(?:work|root|home)/[A-Za-z]"
    suspicious = re.compile(f"{hosts}|{paths}")
    for path, text in tracked_texts():
        found = suspicious.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found.group()}"


def test_no_run_leaves_files_at_the_top():
    folders = {"benchmarks", "docs", "examples", "packages", "tests", "tools", ".ci", ".github"}
    files = {"dev", "LICENSE", "pyproject.toml", "ruff.toml", "constraints.txt", ".gitignore"}
    files |= {".pre-commit-config.yaml"}
    pages = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
    found = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert found == folders | files | pages


def test_a_package_has_a_page_and_types():
    for package in sorted((ROOT / "packages").iterdir()):
        if not (package / "pyproject.toml").exists():
            continue
        assert (package / "README.md").read_text().strip(), package.name
        modules = [
            module for module in (package / "src").iterdir() if (module / "__init__.py").exists()
        ]
        assert modules, package.name
        for module in modules:
            assert (module / "py.typed").exists(), module


# Files of one name in two rooms, and why that is right: both are about the same thing.
SAME_NAME = {
    "acls": "entries of access control, and their fields on the wire",
    "completion": "of a line of the shell, and of a line of DuckDB's prompt",
    "first_connection": "retries of the first connection, and their use in processes of Spark",
    "follow_many": "the reader of many tables, and its face in a session",
    "kv_scan": "the two sides of SCAN_KV",
    "producer_offsets": "the values, and the calls that register and find them",
    "scan_arguments": "of Python functions, and of commands",
}


def test_files_of_one_name_are_about_one_thing():
    names = Counter(path.stem for path in package_files() if not path.stem.startswith("__"))
    found = {name for name, count in names.items() if count > 1}
    assert found <= SAME_NAME.keys(), "rename one; a name that stands twice misleads a search"
    assert found >= SAME_NAME.keys(), "no longer twice: delete the line"


def test_every_plan_has_unit_tests_of_its_name():
    plans = {path.stem for path in package_files() if path.stem.startswith("plan_")}
    assert len(plans) > 20
    tested = {path.stem for path in (ROOT / "tests/unit").rglob("test_plan_*.py")}
    assert {f"test_{plan}" for plan in plans} <= tested
