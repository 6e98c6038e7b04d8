"""Every exception that leaves this package is born here.

An error says what happened, why, and what to do next. The facts are attributes, the sentence is
built from them, and the way out is `hint`. Classes are cut by what a caller can do about them;
which class a server's code becomes is the generated table of `fluss.error_codes`, never its text.
Errors are picklable, because engines ship them between processes.
"""

from __future__ import annotations

from typing import Any, ClassVar

CLIENT_ERROR_CODE = -2


class FlussError(Exception):
    """Something that Fluss, or this client of it, refused or could not do.

    Args:
        message: What happened and why, in whole sentences.
        error_code: The server's code, or -2 where the client refused by itself.
        hint: What to do next.
        server_trace: The stack trace a server put into its answer; never part of the message.
        facts: What the sentence was built from; each becomes an attribute.
    """

    default_code: ClassVar[int] = CLIENT_ERROR_CODE
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        error_code: int | None = None,
        *,
        hint: str | None = None,
        server_trace: str | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = self.default_code if error_code is None else error_code
        self.hint = hint
        self.server_trace = server_trace
        self.facts = facts

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that are not ordinary attributes. `facts` itself may be missing
        # while an unpickled error is being rebuilt.
        facts: dict[str, Any] = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def is_retriable(self) -> bool:
        """Whether the same call may succeed when it is made again."""
        return self.retriable

    def __str__(self) -> str:
        if self.hint is None:
            return self.message
        return f"{self.message}\n  hint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {
            "hint": self.hint,
            "server_trace": self.server_trace,
            "facts": self.facts,
            "__notes__": list(getattr(self, "__notes__", [])),
        }
        return (type(self), (self.message, self.error_code), state)


# --- what the caller asked for cannot be done -------------------------------------------------


class InvalidNameError(FlussError):
    """A database, table, column or partition name breaks Fluss's rules."""


class InvalidSchemaError(FlussError):
    """A schema or table descriptor contradicts itself or Fluss's rules."""


class UnsupportedTypeError(FlussError):
    """A data type has no counterpart on the other side."""


class SchemaMismatchError(FlussError):
    """Data does not fit the table: a column is missing, unknown, or of another type."""


class InvalidValueError(FlussError):
    """One value does not fit its column; `column` and, where known, `row` say which."""


class ConfigError(FlussError):
    """A configuration key or value is unknown or out of range."""


class LimitExceededError(FlussError):
    """Something is larger than the limit set for it; both numbers are in the message."""


class ClosedError(FlussError):
    """The connection, scanner or writer has been closed."""


class MissingExtraError(FlussError):
    """An optional package is not installed; the hint is the pip command."""


# --- a server on this machine -------------------------------------------------------------------


class LocalServerError(FlussError):
    """A server on this machine could not be started, used as asked, or stopped."""


class MissingRuntimeError(LocalServerError):
    """What a local server runs on is not here: Java, or the server's own jar."""


# --- bytes that are not what they claim to be ---------------------------------------------------


class CorruptDataError(FlussError):
    """Bytes that are not what they should be: `what` was read, at byte `at`, and `why` it fails."""

    default_code: ClassVar[int] = 14


class CorruptBatchError(CorruptDataError):
    """A log or KV record batch is damaged."""


class ProtocolError(CorruptDataError):
    """A peer broke the rules of the wire: a frame or message that cannot be read."""

    default_code: ClassVar[int] = 3


# --- the network and the cluster ----------------------------------------------------------------


class ConnectError(FlussError):
    """A server could not be reached, or hung up."""

    default_code: ClassVar[int] = 1
    retriable: ClassVar[bool] = True
    refresh_metadata: ClassVar[bool] = True


class RequestTimeoutError(FlussError):
    """No answer within the deadline."""

    default_code: ClassVar[int] = 25
    retriable: ClassVar[bool] = True


class AuthenticationError(FlussError):
    """The server did not accept the user or the password."""

    default_code: ClassVar[int] = 46


class AuthorizationError(FlussError):
    """The user may not do this."""

    default_code: ClassVar[int] = 48


class UnsupportedVersionError(FlussError):
    """The server is too old, or too new, for what was asked."""

    default_code: ClassVar[int] = 2


class DatabaseNotFoundError(FlussError):
    """The database does not exist."""

    default_code: ClassVar[int] = 4


class DatabaseAlreadyExistsError(FlussError):
    """The database exists already."""

    default_code: ClassVar[int] = 6


class TableNotFoundError(FlussError):
    """The table does not exist."""

    default_code: ClassVar[int] = 7


class TableAlreadyExistsError(FlussError):
    """The table exists already."""

    default_code: ClassVar[int] = 8


class PartitionNotFoundError(FlussError):
    """The partition does not exist."""

    default_code: ClassVar[int] = 36


class PartitionAlreadyExistsError(FlussError):
    """The partition exists already."""

    default_code: ClassVar[int] = 42


class OffsetOutOfRangeError(FlussError):
    """An offset lies before the retained log or beyond its end."""

    default_code: ClassVar[int] = 19


class ServerError(FlussError):
    """The server refused, for a reason that has no class of its own here."""

    default_code: ClassVar[int] = -1


class RetriableServerError(ServerError):
    """The server could not do it now; the same request may succeed later."""

    retriable: ClassVar[bool] = True


class LeaderChangedError(RetriableServerError):
    """The server asked is not, or not yet, the leader of the bucket."""

    refresh_metadata: ClassVar[bool] = True
    default_code: ClassVar[int] = 12
