"""The page of features: each tick leads to a test that exists, and no row of Java's is left out."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/features.md"
TICK, NONE = "✔", "no"
ROW = re.compile(r"^\|(?P<cells>.*)\|$", re.MULTILINE)
LINK = re.compile(r"\]\(\.\./(?P<path>tests/[^)]+)\)<!-- (?P<name>test_\w+) -->")
# How many rows Fluss's page has of each kind, and two that are new in 1.0.0.
OF_JAVA = {"Data operations": 15 + 2, "Data types": 22, "Administration": 28, "Lakes": 3}


def section(title):
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def rows(title):
    """The cells of each row; the last five are Java, Rust, pyfluss, ours, and the test."""
    found = [[cell.strip() for cell in each["cells"].split(" | ")] for each in ROW.finditer(section(title))]  # fmt: skip
    return [each for each in found if each[-1] != "shown by" and not each[0].startswith("---")]


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(tree) if isinstance(each, kinds)}


ROWS = [(title, each) for title in OF_JAVA for each in rows(title)]


def test_no_row_of_java_is_left_out():
    assert {title: len(rows(title)) for title in OF_JAVA} == OF_JAVA
    names = [" ".join(each[:-5]) for _, each in ROWS]
    assert len(set(names)) == len(names)
    assert {each[-5] for _, each in ROWS} == {TICK}, "the page has the rows that Java has"


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[" ".join(each[:-5]) for _, each in ROWS])
def test_a_tick_leads_to_its_test_and_a_missing_one_has_a_reason(title, row):
    del title
    assert row[-2] in {TICK, NONE}
    if row[-2] == NONE:
        assert f"\n| {row[0]} | " in section("Features of Java that this client lacks")
        return
    found = LINK.search(row[-1])
    assert found, row[-1]
    assert found["name"] in names_in(found["path"])
