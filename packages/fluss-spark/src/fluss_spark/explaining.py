"""What a frame's query reads of Fluss, because Spark's plans have no room for it.

A Python source has no way to name its table in a plan, nor to say what it leaves out. So the scan
is planned once more here, and described by the client.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fluss.connection.config_sources import resolve
from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss_spark.batch_reader import FlussBatchReader
from fluss_spark.relations import options_of, relations_in, schema_of
from fluss_spark.spark_options import read_options
from fluss_spark.table_access import plan_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explained(frame: DataFrame, parallelism: int | None) -> str:
    """See `fluss_spark.explain`."""
    if not hasattr(frame, "_jdf"):
        raise UnsupportedOperationError(
            "A frame of Spark Connect does not say what it is made of.",
            hint="session.table('db.t').scan(...).explain() has the same of one scan",
        )
    if frame.isStreaming:
        raise UnsupportedOperationError(
            "A stream has no scan to explain: each micro-batch is one.",
            hint="query.lastProgress names the table and where each bucket stands",
        )
    texts = []
    for relation in relations_in(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001 - its only way
        options = read_options(options_of(relation), what="read")
        # Spark's planner is another process; what is active in this one does not count there.
        settings = resolve(options.settings, with_active=False).config.written()
        options = replace(options, settings=settings)
        declared = schema_of(relation)
        scan = plan_scan(options, columns=declared.names).scan
        tasks = len(FlussBatchReader(options, declared, parallelism).partitions())
        texts.append(f"{scan.explain()}\n  tasks: {tasks}")
    if not texts:
        raise InvalidValueError("The frame reads no table of Fluss.", hint="frame.explain()")
    return "\n".join(texts)
