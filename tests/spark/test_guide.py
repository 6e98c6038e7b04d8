"""`docs/spark.md` from top to bottom, and what the README has of Spark, print what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import fluss

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/spark.md"
README = ROOT / "README.md"
PROGRAM = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
WRITTEN_ADDRESS = "127.0.0.1:9123"


def test_the_page_prints_what_it_says(spark, cluster):
    programs = PROGRAM.findall(PAGE.read_text())
    assert len(programs) >= 5
    try:
        check(programs, cluster)
    finally:
        drop("guide_spark", cluster)


def test_what_the_readme_has_of_spark_prints_what_it_says(spark, cluster):
    first, *others = PROGRAM.findall(README.read_text())
    of_spark = [each for each in others if "fluss_spark" in each[0]]
    assert of_spark
    try:
        check([first, *of_spark], cluster)
    finally:
        drop("shop", cluster)


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
    with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
        session.drop_database(database, ignore_if_not_exists=True, cascade=True)
