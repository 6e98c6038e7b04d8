"""The time zone of the session, given to a reader: no process of ours can ask Spark for it.

A time in `filter` that names no zone is in the zone of Spark's session, as it is in `.where(...)`.
Planner and tasks are told options alone, so `format("fluss")` adds one, `timeZone`, as Spark's own
sources have it; an option that is set after `format` counts more.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from typing import Any, Final

from fluss_spark.data_source import FlussDataSource
from fluss_spark.spark_options import TIME_ZONE

_SETTING: Final = "spark.sql.session.timeZone"
_METHOD: Final = "format"
_MARK: Final = "_gives_the_time_zone"


def give_time_zone() -> None:
    """Make `spark.read.format("fluss")` carry the session's time zone. Twice is once."""
    from pyspark.sql.readwriter import DataFrameReader

    method = getattr(DataFrameReader, _METHOD)
    if hasattr(method, _MARK):
        return

    @wraps(method)
    def call(reader: Any, source: str) -> Any:
        made = method(reader, source)
        if str(source).lower() == FlussDataSource.name():
            with suppress(Exception):  # another Spark: times without a zone are refused then
                made = made.option(TIME_ZONE, zone_of_session(reader._spark))  # noqa: SLF001
        return made

    setattr(call, _MARK, True)
    setattr(DataFrameReader, _METHOD, call)


def zone_of_session(spark: Any) -> str:
    """The time zone that a session is set to."""
    return str(spark.conf.get(_SETTING))
