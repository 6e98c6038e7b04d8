"""Methods of PySpark that `enable` extends, because Spark has no hook for what they add.

- `spark.read.format("fluss")` carries the session's time zone: the planner and the tasks get
  options only, and a time in `filter` without a zone is in the zone of Spark's session, as it is
  in `.where(...)`. The option is `timeZone`, as in Spark's own sources; setting it after `format`
  overrides it.
- `DataFrameWriter.save`, `saveAsTable`, `DataStreamWriter.start` and `toTable` activate the session
  of their frame. They look up formats in the active session of the calling thread, and a thread
  that Python starts has none, so Spark does not find the format there.

`fluss_spark.refreshed_views` extends further methods in the same way, with `patch`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Final

from fluss_spark.data_source import FlussDataSource
from fluss_spark.spark_options import TIME_ZONE

_LOG = logging.getLogger("fluss.spark")
_SETTING: Final = "spark.sql.session.timeZone"
_LOOKS_UP: Final = {
    "DataFrameWriter": ("save", "saveAsTable"),
    "DataStreamWriter": ("start", "toTable"),
}
_MARK: Final = "_extended_by_fluss"


def patch(owner: type, name: str, extend: Callable[[Callable[..., Any]], Any]) -> None:
    """Replace a method by an extended one. Idempotent.

    Args:
        owner: The class.
        name: The method.
        extend: Takes the method and returns a function to call in its place.
    """
    method = getattr(owner, name)
    if not hasattr(method, _MARK):
        call = wraps(method)(extend(method))
        setattr(call, _MARK, True)
        setattr(owner, name, call)


def give_time_zone() -> None:
    """Make `spark.read.format("fluss")` carry the session's time zone. Idempotent."""
    from pyspark.sql.readwriter import DataFrameReader

    patch(DataFrameReader, "format", _with_time_zone)


def zone_of_session(spark: Any) -> str:
    """The time zone that a session is set to."""
    return str(spark.conf.get(_SETTING))


def activate_in_all_threads() -> None:
    """Make Spark's writers activate a session where their thread has none. Idempotent."""
    from pyspark.sql.readwriter import DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for writer in (DataFrameWriter, DataStreamWriter):
        for name in _LOOKS_UP[writer.__name__]:
            patch(writer, name, _activating)


def _with_time_zone(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(reader: Any, source: str) -> Any:
        made = method(reader, source)
        if str(source).lower() == FlussDataSource.name():
            with suppress(Exception):  # another Spark: times without a zone are refused then
                made = made.option(TIME_ZONE, zone_of_session(reader._spark))  # noqa: SLF001
        return made

    return call


def _activating(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(writer: Any, /, *given: Any, **named: Any) -> Any:
        with suppress(Exception):  # another Spark: the method itself reports what it lacks
            _activate(writer._spark)  # noqa: SLF001 - the session of the frame
        return method(writer, *given, **named)

    return call


def _activate(spark: Any) -> None:
    """Activate a session in this thread, unless one is active and running."""
    sessions = spark._get_j_spark_session_class(spark._jvm)  # noqa: SLF001 - as PySpark itself does
    active = sessions.getActiveSession()
    if active.isDefined() and not active.get().sparkContext().isStopped():
        return
    _LOG.debug("this thread has no active Spark session; that of the frame becomes it")
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
