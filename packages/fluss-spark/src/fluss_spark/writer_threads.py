"""Writing from any thread: Spark looks for a Python format in the session that is active there.

`DataFrameWriter.save`, `saveAsTable`, `DataStreamWriter.start` and `toTable` ask the active session
of the calling thread which formats there are, and not the session of the frame. A thread that
Python starts has none, so Spark does not find the format there. `enable` therefore makes these four
methods activate the session of the frame first, where the thread has no session that is usable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_LOG = logging.getLogger("fluss.spark")
_LOOKS_UP: Final = {
    "DataFrameWriter": ("save", "saveAsTable"),
    "DataStreamWriter": ("start", "toTable"),
}
_MARK: Final = "_activates_a_session"


def activate_in_all_threads() -> None:
    """Make Spark's writers activate a session where their thread has none. Twice is once."""
    from pyspark.sql.readwriter import DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for writer in (DataFrameWriter, DataStreamWriter):
        for name in _LOOKS_UP[writer.__name__]:
            method = getattr(writer, name)
            if not hasattr(method, _MARK):
                setattr(writer, name, _activating(method))


def _activating(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    @wraps(method)
    def call(writer: Any, /, *given: P.args, **named: P.kwargs) -> R:
        with suppress(Exception):  # another Spark: the method itself reports what it lacks
            _activate(writer._spark)  # noqa: SLF001 - the session of the frame
        return method(writer, *given, **named)

    setattr(call, _MARK, True)
    return call


def _activate(spark: Any) -> None:
    """Activate a session in this thread, unless one is active and runs."""
    sessions = spark._get_j_spark_session_class(spark._jvm)  # noqa: SLF001 - as PySpark itself does
    active = sessions.getActiveSession()
    if active.isDefined() and not active.get().sparkContext().isStopped():
        return
    _LOG.debug("this thread has no active Spark session; that of the frame becomes it")
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
