"""Completes errors for Spark: what went wrong, where, the code and the remedy, in one text.

Spark keeps an error's text and loses its type, and shows it far from the line that caused it. So
the table, the bucket and the code are added to the text where they are missing, hints name frames
and queries, and the traceback inside this package is dropped. Nothing is caught here. Spark makes
a sink for each micro-batch, so a warning would be logged each time: `should_log` limits that.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import TracebackType
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, InvalidValueError, UnsupportedOperationError
from fluss.hints import Door

P = ParamSpec("P")
R = TypeVar("R")
# What to do about a transient error, by the operation that was in progress.
READ_AGAIN: Final = "When that is over, run the query again."
RUN_AGAIN: Final = "When that is over, run it again: nothing has been written."
START_AGAIN: Final = (
    "When that is over, start the query again with the same checkpoint: it continues where it was."
)
UPSERT_AGAIN: Final = (
    "When that is over, write the frame again: rows that are there already change nothing."
)
APPEND_AGAIN: Final = (
    "When Spark repeats a task (spark.task.maxFailures; never in local[n]), each row is there once; "
    "but rows of a write that ended with an error stay, and a second write adds all rows again."
)
_RUNTIME, _WORKER = "SPARK_PYTHON_RUNTIME", "PYTHON_WORKER"
_COLLECTS: Final = "PYSPARK_SPARK_SESSION_UUID"
_HIDES_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
# How long a process does not repeat a log record, and how many it remembers.
LOG_AGAIN_AFTER_S: Final = 3600.0
_LOGGED_MAX: Final = 1_024
_logged_until: dict[tuple[str, ...], float] = {}
_VALUES: Final = (
    "before writing, leave such rows out with .where(...), or change them with coalesce(...) or "
    "try_cast(...)"
)


@dataclass(frozen=True)
class ErrorContext:
    """Completes errors that leave a block: `with error_context: ...`. Reusable.

    Args:
        table: The table, as messages name it.
        again: The hint for errors where a retry may help.
    """

    table: str
    again: str | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if isinstance(error, FlussError):
            self.complete(error)
            # Spark prints all of it, twice, before the sentence that counts.
            error.__traceback__ = error.__cause__ = None
            error.__suppress_context__ = True
            _hide_worker_traceback()

    def complete(self, error: FlussError) -> None:
        """Complete an error in place. Idempotent."""
        error.add_context(
            door=Door.SPARK,
            ending=f"{_name(error)}, code {error.error_code}",
            table=self.table or None,
            bucket=error.facts.get("bucket"),
            hint=(*error.hints, self._hint(error)),
        )

    def _hint(self, error: FlussError) -> str | None:
        if error.is_retriable:
            return self.again
        is_of_a_row = isinstance(error, InvalidValueError) and "row" in error.facts
        return _VALUES if is_of_a_row and not error.hints else None


def _hide_worker_traceback() -> None:
    """Make the worker that is about to end report the error without a traceback before it.

    The traceback shows Spark's workers and this package only; the error has everything that a user
    needs. Spark reads the variable when it reports an error, and ends the worker then.
    """
    if os.environ.get(_RUNTIME) == _WORKER:
        os.environ[_HIDES_TRACEBACK] = "1"


def log_for_spark() -> None:
    """Enable log records about plans and reads where Spark collects the logs of its workers.

    Spark does so where `spark.sql.pyspark.worker.logging.enabled` is true, and shows them in the
    table function `python_worker_logs()`.
    """
    if _COLLECTS in os.environ:
        logging.getLogger("fluss.spark").setLevel(logging.INFO)


def should_log(*record: str) -> bool:
    """Return whether this process has not logged a record for an hour, and note that it does."""
    now = time.monotonic()
    if now < _logged_until.get(record, now):
        return False
    if len(_logged_until) >= _LOGGED_MAX:
        _logged_until.clear()
    _logged_until[record] = now + LOG_AGAIN_AFTER_S
    return True


class HasErrorContext(Protocol):
    """An object with methods that Spark calls."""

    @property
    def error_context(self) -> ErrorContext:
        """The context for errors of those methods."""


S = TypeVar("S", bound=HasErrorContext)


def with_error_context(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Wrap a method in its object's error context; it must not be a generator."""

    @wraps(method)
    def call(self: S, /, *given: P.args, **named: P.kwargs) -> R:
        with self.error_context:
            return method(self, *given, **named)

    return call


def _name(error: FlussError) -> str:
    if isinstance(error, UnsupportedOperationError):
        return "UNSUPPORTED_OPERATION"  # Fluss's name of this code is about tables without a key
    try:
        return ErrorCode(error.error_code).name
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR.name
