"""`docs/spark.md` from top to bottom: its programs run in one Python and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/spark.md"
PROGRAM = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
WRITTEN_ADDRESS = "127.0.0.1:9123"


def test_the_page_prints_what_it_says(spark, cluster):
    programs = PROGRAM.findall(PAGE.read_text())
    assert len(programs) >= 5
    names: dict[str, object] = {}
    try:
        for number, (code, said) in enumerate(programs):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code.replace(WRITTEN_ADDRESS, cluster.bootstrap), names)  # noqa: S102 - the page's
            assert printed.getvalue() == said, f"program {number}"
    finally:
        import fluss

        with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
            session.drop_database("guide_spark", ignore_if_not_exists=True, cascade=True)
