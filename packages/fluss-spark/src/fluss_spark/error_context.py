"""Errors as Spark shows them: what went wrong, where, by which code, and what to do, in one text.

Spark keeps an error's text and loses its type, and it is read far from the line that caused it. So
the table, the bucket and the code are put into the text where they are missing, hints speak of
frames and queries, and what leads from one line of ours to the next is left out. What happened is
said by whoever noticed it; nothing is caught here. What is logged would be logged again by each
micro-batch: `is_news` tells what has been said lately.
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
# What to do when what hindered is over, by what was under way.
READ_AGAIN: Final = "When that is over, run the query again."
RUN_AGAIN: Final = "When that is over, run it again: nothing has been written."
START_AGAIN: Final = (
    "When that is over, start the query again with the same checkpoint: it goes on where it was."
)
UPSERT_AGAIN: Final = (
    "When that is over, write the frame again: what is there already changes nothing."
)
APPEND_AGAIN: Final = (
    "Spark repeats a task (spark.task.maxFailures; never in local[n]) and has each row once; but "
    "what a write that ended with an error has written stays, and a second one adds all rows again."
)
_RUNTIME, _WORKER = "SPARK_PYTHON_RUNTIME", "PYTHON_WORKER"
_COLLECTS: Final = "PYSPARK_SPARK_SESSION_UUID"
_HIDES_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
# How long a process does not repeat what it has logged, and of how much it remembers that.
SILENT_S: Final = 3600.0
_SILENT_MAX: Final = 1_024
_silent_until: dict[tuple[str, ...], float] = {}
_VALUES: Final = (
    "leave such rows out, .where(...), or change them, coalesce(...), try_cast(...), before they "
    "are written"
)


@dataclass(frozen=True)
class ErrorContext:
    """Completes what an error says on its way out: `with telling: ...`, any number of times.

    Args:
        table: The table, as messages name it.
        again: What to do when trying again may help.
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
            self.tell(error)
            # Spark prints all of it, twice, before the sentence that counts.
            error.__traceback__ = error.__cause__ = None
            error.__suppress_context__ = True
            _begin_with_the_sentence()

    def tell(self, error: FlussError) -> None:
        """Complete it, in place; once is enough, and twice is the same."""
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


def _begin_with_the_sentence() -> None:
    """Have the worker that is about to end report the error without a traceback before it.

    The traceback is of Spark's workers and of this package, and the error has everything that its
    reader can use. Spark reads the variable when it reports an error, and ends the worker then.
    """
    if os.environ.get(_RUNTIME) == _WORKER:
        os.environ[_HIDES_TRACEBACK] = "1"


def log_for_spark() -> None:
    """Log what is planned and read where Spark collects what its workers log.

    That is where `spark.sql.pyspark.worker.logging.enabled` is true; the table function
    `python_worker_logs()` has it then.
    """
    if _COLLECTS in os.environ:
        logging.getLogger("fluss.spark").setLevel(logging.INFO)


def is_news(*said: str) -> bool:
    """Whether this process has not logged it lately: Spark makes a sink for each micro-batch."""
    now = time.monotonic()
    if now < _silent_until.get(said, now):
        return False
    if len(_silent_until) >= _SILENT_MAX:
        _silent_until.clear()
    _silent_until[said] = now + SILENT_S
    return True


class Tells(Protocol):
    """What has methods that Spark calls."""

    @property
    def telling(self) -> ErrorContext:
        """How their errors are completed."""


S = TypeVar("S", bound=Tells)


def told(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method whose errors are completed; what it returns may be no generator."""

    @wraps(method)
    def call(self: S, /, *given: P.args, **named: P.kwargs) -> R:
        with self.telling:
            return method(self, *given, **named)

    return call


def _name(error: FlussError) -> str:
    if isinstance(error, UnsupportedOperationError):
        return "UNSUPPORTED_OPERATION"  # Fluss's name of this code is about tables without a key
    try:
        return ErrorCode(error.error_code).name
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR.name
