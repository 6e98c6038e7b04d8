"""Errors as Spark shows them: what went wrong, where, by which code, and what to do, in one text.

Spark keeps an error's text and loses its type, and it is read far from the line that caused it. So
the table, the bucket and the code are put into the text where they are missing, and hints speak of
frames and queries. What happened is said by whoever noticed it; nothing is caught here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import TracebackType
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, InvalidValueError

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
_VALUES: Final = (
    "leave such rows out, .where(...), or change them, coalesce(...), try_cast(...), before they "
    "are written"
)


@dataclass(frozen=True)
class Telling:
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

    def tell(self, error: FlussError) -> None:
        """Complete it, in place; once is enough, and twice is the same."""
        told = f"{error.message}\n{error.hint}"
        where = []
        if self.table and self.table not in told:
            where.append(self.table)
        bucket = error.facts.get("bucket")
        number = getattr(bucket, "bucket_id", bucket)
        if number is not None and f"bucket {number}" not in told and str(bucket) not in told:
            where.append(f"bucket {number}")
        if where:
            error.message = f"{', '.join(where)}: {error.message}"
        code = f"[{_name(error.error_code)}, code {error.error_code}]"
        if code not in error.message:
            error.message = f"{error.message} {code}"
        hint = self._hint(error)
        if hint is not None and hint not in (error.hint or ""):
            known = error.hint
            stop = "" if known is None or known.endswith((".", "?")) else "."
            error.hint = hint if known is None else f"{known}{stop} {hint}"

    def _hint(self, error: FlussError) -> str | None:
        if error.is_retriable:
            return self.again
        is_of_a_row = isinstance(error, InvalidValueError) and "row" in error.facts
        return _VALUES if is_of_a_row and error.hint is None else None


class Tells(Protocol):
    """What has methods that Spark calls."""

    @property
    def telling(self) -> Telling:
        """How their errors are completed."""


S = TypeVar("S", bound=Tells)


def told(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method whose errors are completed; what it returns may be no generator."""

    @wraps(method)
    def call(self: S, /, *given: P.args, **named: P.kwargs) -> R:
        with self.telling:
            return method(self, *given, **named)

    return call


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR.name
