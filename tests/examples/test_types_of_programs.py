"""The examples, and the programs of all pages, pass `mypy --strict` and pyright.

Editors and type checkers know only what is imported by name, so that is how the pages write it.
Both checkers run once for all pages; pyright's package brings its own JavaScript and needs no
network.
"""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fluss_testkit.cache_paths import cache_dir

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
FOLDERS = ("guide", "cookbook", "tutorials")
# Pages with programs that no checker can pass, and why.
LEFT_OUT = {
    "docs/guide/exactly-once.md": "its blocks are parts of a program of the reader's",
    "docs/guide/from-pyfluss.md": "it has programs of both dialects under one name",
    "docs/guide/write-an-adapter.md": "it imports an example that is no package",
    "docs/cookbook/airflow-dagster.md": "it imports what is not installed here",
    "docs/cookbook/fastapi.md": "it imports what is not installed here",
    "docs/cookbook/spark-stream.md": "Spark's rows have no types",
    "docs/cookbook/test-pipeline.md": "tests of pytest are rarely annotated",
    "docs/tutorials/spark.md": "Spark's rows have no types",
    "docs/tutorials/testing.md": "tests of pytest are rarely annotated",
}
# Kept for all checkouts of this machine: 16 of 24 s of processor time go
# into types of other packages. mypy compares the contents of files before it uses an entry.
CACHE = cache_dir() / "mypy-programs"
# Packages that ship no types.
UNTYPED = ("pyarrow", "pyarrow.*", "fsspec", "fsspec.*")
MISTAKES = """\
from dataclasses import dataclass

import fluss
from fluss.pandas import read_fluss
from fluss_polars import scan_fluss

@dataclass
class Order:
    id: int

session = fluss.connect("fluss://127.0.0.1:9123")
table = session.table("d.t")
orders = table.typed(Order)
table.scan(colums=["id"])
scan_fluss("d.t", tali=5)
read_fluss("d.t", mode="stat")
table.follow(tail=3)
session.append("d.t", {"id": [1]}, create=True, bucket=3)
session.append("d.t", {"id": [1]}).row
table.count(filter=5)
table.scan(tail="many")
table.delete(where=3)
orders.append(5)
orders.upsert([{"id": 1}])
orders.get(1).id
orders.scan(tali=5)
[order.price for order in orders.scan()]
orders.follow().poll()[0].row
[change.id for change in orders.changes()]
fluss.table("d.t", bucket=3)
"""
FIRST_MISTAKE = 14
TYPED_ROWS = """\
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypedDict, assert_type

import attrs
import pydantic

import fluss
from fluss.session import Change, TypedTable


@fluss.table("d.t", buckets=3)
@dataclass
class Order:
    id: Annotated[int, fluss.Key]
    price: Annotated[float | None, "FLOAT", fluss.Comment("in euros")] = None


@fluss.table("d.t")
class Dict(TypedDict):
    id: Annotated[int, fluss.Key]


class Pair(NamedTuple):
    id: int


class Model(pydantic.BaseModel):
    id: int


@attrs.define
class Attrs:
    id: int


session = fluss.connect("fluss://127.0.0.1:9123")
orders = session.create_table(Order).typed(Order)
assert_type(orders, TypedTable[Order])
orders.append(Order(1))
orders.upsert(Order(each) for each in range(3))
orders.update([Order(1, price=5.0)], columns=["price"])
orders.delete([1, 2])
orders.delete(where="id > 5")
assert_type(orders.get(1), Order | None)
assert_type(orders.lookup([1, 2]), list[Order | None])
assert_type(orders.scan(filter="id > 5").to_list(), list[Order])
for order in orders.scan(limit=5):
    assert_type(order.price, float | None)
with orders.follow(start="earliest") as follow:
    assert_type(follow.poll(), list[Order])
for change in orders.follow_changes():
    assert_type(change, Change[Order])
    assert_type(change.row, Order)
dicts = session.table("d.t").typed(Dict)
assert_type(dicts.head(), list[Dict])
dicts.append({"id": 1})
assert_type(session.typed(Pair, "d.t").head(), list[Pair])
assert_type(session.typed(Model, "d.t").head(), list[Model])
assert_type(session.typed(Attrs).get(1), Attrs | None)
print(session.diff_tables([Order]), session.apply_tables([Order, Dict]).is_empty)
session.create_table("d.u", Pair, primary_key="id")
print(fluss.typed.schema_of(Model))
"""


def pages():
    found = [
        ROOT / "README.md",
        ROOT / "docs/README.md",
        *sorted(ROOT.glob("packages/*/README.md")),
    ]
    found += [page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    return [page for page in found if name_of(page) not in LEFT_OUT]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with a program for each page, one with mistakes, and one of typed rows."""
    folder = tmp_path_factory.mktemp("programs")
    for page in pages():
        blocks = PROGRAM.findall(page.read_text())
        if blocks:
            (folder / module_of(page)).write_text("\n".join(map(textwrap.dedent, blocks)))
    for example in sorted((ROOT / "examples").glob("*.py")):
        (folder / f"example_{example.name}").write_text(example.read_text())
    (folder / "mistakes.py").write_text(MISTAKES)
    (folder / "typed_rows.py").write_text(TYPED_ROWS)
    ignored = "".join(f"[mypy-{name}]\nignore_missing_imports = True\n" for name in UNTYPED)
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = True\n{ignored}")
    settings = {"include": ["."], "pythonVersion": "3.11", "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return folder


def module_of(page):
    plain = re.sub(r"\W", "_", name_of(page.with_suffix("")))
    return f"page_{plain}.py"


@pytest.fixture(scope="module")
def found_by_mypy(programs):
    """For each file, the lines in which mypy finds an error, with its text."""
    words = [sys.executable, "-m", "mypy", "--cache-dir", CACHE, "."]
    done = subprocess.run(words, cwd=programs, capture_output=True, text=True, check=False)
    errors = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    assert errors, done.stdout + done.stderr
    return _by_file(errors)


@pytest.fixture(scope="module")
def found_by_pyright(programs):
    """The same of pyright."""
    words = [Path(sys.executable).with_name("pyright"), "--outputjson"]
    done = subprocess.run(
        [*words, "--pythonpath", sys.executable],
        cwd=programs, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)["generalDiagnostics"]
    return _by_file(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in found
        if each["severity"] == "error"
    )


def _by_file(errors):
    found = {}
    for name, line, text in errors:
        found.setdefault(Path(name).name, {}).setdefault(int(line), text)
    return found


# Both checkers read all packages once: about ten seconds each.
@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_programs_of_all_pages_pass(request, checker):
    found = request.getfixturevalue(f"found_by_{checker}")
    found = {name: lines for name, lines in found.items() if name != "mistakes.py"}
    assert not found, json.dumps(found, indent=1)


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_every_mistake_is_found(request, checker):
    found = request.getfixturevalue(f"found_by_{checker}")["mistakes.py"]
    lines = MISTAKES.count("\n")
    assert sorted(found) == list(range(FIRST_MISTAKE, lines + 1))


def test_the_pages_that_are_left_out_exist():
    assert all((ROOT / name).exists() for name in LEFT_OUT)
