"""Tables are compared with a Python file, made as it says, and printed as one."""

from __future__ import annotations

import json
import sys

import pytest

FILE = """
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import fluss
from parts_of_shop import Address, Currency


@fluss.table("{database}.orders", buckets=2, properties={{"owner": "ann"}})
@dataclass
class Order:
    id: Annotated[int, fluss.Key]
    price: float{more}
    address: Address | None = None


@dataclass
class Price:  # no table of its own
    id: int
    price: float
"""
PARTS = """
from typing import NamedTuple

import fluss


class Address(NamedTuple):
    street: str


@fluss.table("{other}.currencies", buckets=1)
class Currency(NamedTuple):
    code: str
"""


@pytest.fixture
def write(tmp_path, database, monkeypatch):
    """Return a function that writes the file, with more fields or others, and returns its path."""
    monkeypatch.delitem(sys.modules, "parts_of_shop", raising=False)  # of another database
    parts = PARTS.format(other=f"{database}_2")
    (tmp_path / "parts_of_shop.py").write_text(parts)

    def one(more="", changed=lambda text: text):
        path = tmp_path / "tables.py"
        path.write_text(changed(FILE.format(database=database, more=more)))
        return str(path)

    return one


def steps(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_tables_are_made_and_changed_as_a_file_says(run, session, database, write, tmp_path):
    try:
        _test_one_round(run, session, database, write, tmp_path)
    finally:
        session.drop_database(f"{database}_2", cascade=True, ignore_if_not_exists=True)


def _test_one_round(run, session, database, write, tmp_path):
    done = run("diff", write())
    assert [(each["table"], each["change"]) for each in steps(done)] == [
        (f"{database}_2", "create database"),
        (f"{database}_2.currencies", "create table"),
        (f"{database}.orders", "create table"),
    ]
    assert done.said == "3 changes to make\n"
    assert done.returncode == 0
    assert session.tables() == []
    done = run("apply", write())
    assert (done.returncode, "add --yes" in done.said) == (2, True)
    assert session.tables() == []

    done = run("apply", write(), "--yes")
    assert (done.returncode, done.said) == (0, "made 3 changes\n")
    assert session.table("orders").primary_key == ("id",)
    done = run("diff", write(), "--exit-code")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.said == "2 tables are as their classes describe them\n"

    changed = write('\n    note: str = ""', lambda text: text.replace('"ann"', '"bob"'))
    done = run("diff", changed, "--exit-code")
    assert (done.returncode, [each["detail"] for each in steps(done)]) == (
        1, ["note STRING", "owner = bob"],
    )  # fmt: skip
    assert run("apply", changed, "--yes").said == "made 2 changes\n"
    table = session.table("orders")
    assert table.schema.names == ["id", "price", "address", "note"]
    assert table.info.custom_properties["owner"] == "bob"

    # --- what Fluss cannot do, beside what it can: nothing is done
    refused = write('\n    note: int = 0\n    more: str = ""')
    done = run("diff", refused)
    assert "the column note is STRING, and the class has BIGINT" in steps(done)[-1]["detail"]
    assert "Fluss cannot make 1, see `impossible`" in done.said
    done = run("apply", refused, "--yes")
    assert done.returncode == 1
    assert "nothing was changed" in done.said
    assert "more" not in session.table("orders").schema.names

    # --- the other way: the printed file is the same tables
    printed = tmp_path / "printed.py"
    printed.write_bytes(run("schema", f"{database}.orders", f"{database}_2").stdout)
    done = run("diff", str(printed), "--exit-code")
    assert (done.returncode, done.stdout) == (0, b""), (done.said, printed.read_text())


REFUSED = {
    "fails": ("1 / 0\n", "cannot be run: ZeroDivisionError"),
    "empty": ("x = 1\n", "has no class that describes a table"),
    "no class": ("import fluss\n@fluss.table('d.t')\nclass A: ...\n", "A is no class of rows"),
    "twice": (
        """
from typing import NamedTuple
import fluss
@fluss.table('d.t')
class A(NamedTuple):
    x: int
@fluss.table('d.t')
class B(NamedTuple):
    x: int
""",
        "A and B both describe d.t",
    ),
}


@pytest.mark.one_server
@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_be_used_is_refused(run, tmp_path, case):
    given, text = REFUSED[case]
    path = tmp_path / "tables.py"
    path.write_text(given)
    done = run("diff", str(path))
    assert done.returncode == 1
    assert text in done.said


@pytest.mark.one_server
def test_a_file_or_module_that_is_missing_is_refused(run):
    assert "There is no file missing.py" in run("apply", "missing.py").said
    assert "No module named 'no_such_module'" in run("diff", "no_such_module").said
