"""The programs of the pages about Spark, and those of the README, print what the pages show."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import fluss
import fluss_spark
from tests.support.servers.fix_cluster import IMPATIENT

# They speak of Spark, and not of the server.
pytestmark = pytest.mark.one_server

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
SPARK = "import fluss_spark"
PAGES = [
    *(each for each in sorted(DOCS.rglob("*.md")) if f"\n{SPARK}\n" in each.read_text()),
    ROOT / "packages/fluss-spark/README.md",
]
README = ROOT / "README.md"
ONCE = ROOT / "docs/guide/exactly-once.md"
PROGRAM = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
DATABASE = re.compile(r'create_database\("(\w+)"')
WRITTEN_ADDRESS = "127.0.0.1:9123"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_page_prints_its_output(spark, cluster, page):
    databases = set(DATABASE.findall(page.read_text()))
    try:
        check(PROGRAM.findall(page.read_text()), cluster)
    finally:
        for database in databases:
            drop(database, cluster)


def test_there_are_pages():
    assert len(PAGES) >= 3
    assert DOCS / "spark.md" in PAGES


def test_the_spark_programs_of_the_readme_print_their_output(spark, cluster):
    programs = PROGRAM.findall(README.read_text())
    # The first program on the server makes the table that all others read.
    first = next(program for program in programs if WRITTEN_ADDRESS in program[0])
    of_spark = [program for program in programs if "fluss_spark" in program[0]]
    assert of_spark
    try:
        check([first, *of_spark], cluster)
    finally:
        drop("shop", cluster)


def test_a_query_that_has_written_other_rows_goes_on_by_the_guide_s_way_out(
    spark, session, cluster, database, tmp_path
):
    page = ONCE.read_text()
    way = page[page.index("**The rows differ**") :]
    code = PROGRAM.search(way)[1].replace("db.", f"{database}.")
    code = code.replace('"checkpoints', f'"{tmp_path}/checkpoints')
    code = code.replace(".writeStream", ".writeStream.trigger(availableNow=True)")
    servers = {"bootstrap.servers": cluster.bootstrap}
    code = code.replace('format("fluss")', f'format("fluss").options(**{servers})')
    code = code.replace('columns=["id"]', f'columns=["id"], **{servers}')
    raw = session.create_table("raw", {"id": [0]}, buckets=2)
    cleaned = session.create_table("cleaned", {"id": [0], "token": ["a"]}, buckets=2)
    checkpoint = tmp_path / "checkpoints" / "cleaned"

    def run(condition):
        reader = spark.readStream.format("fluss").options(**servers, start="earliest")
        frame = reader.load(f"{database}.raw").where(condition).selectExpr("id", "uuid() token")
        writer = frame.writeStream.format("fluss").options(**servers)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.start(f"{database}.cleaned").awaitTermination(300)

    for first in (0, 20):
        raw.append({"id": list(range(first, first + 20))})
        run("id < 20 or id % 2 = 0")
    for each in ("1", ".1.crc"):  # it is stopped between write and commit
        (checkpoint / "commits" / each).unlink()
    raw.append({"id": list(range(40, 60))})
    with pytest.raises(StreamingQueryException, match=r"other rows than|more rows than"):
        run("id >= 0")
    names = {
        "json": json,
        "Path": Path,
        "spark": spark,
        "fluss_spark": fluss_spark,
        "clean": lambda frame: frame.selectExpr("id", "uuid() token"),
    }
    exec(code, names)  # noqa: S102 - the page's
    names["query"].awaitTermination(300)
    assert sorted(cleaned.to_arrow()["id"].to_pylist()) == list(range(60))


def check(programs, cluster):
    names: dict[str, object] = {}
    try:
        for number, (code, said) in enumerate(programs):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code.replace(WRITTEN_ADDRESS, cluster.bootstrap), names)  # noqa: S102 - the page's
            assert printed.getvalue() == said, f"program {number}"
    finally:  # the tests that follow must not find it open
        for each in names.values():
            if isinstance(each, fluss.Session):
                each.close()


def drop(database, cluster):
    with fluss.connect(f"fluss://{cluster.bootstrap}", **IMPATIENT) as session:
        session.drop_database(database, ignore_if_not_exists=True, cascade=True)
