"""Every exception that this package raises.

An error says what happened, why, and what to do next. The facts are attributes, the message is
built from them, and `hint` names the way out. Where an error happened is added by the code that
knows it, in one way: `with_context(row=5, table="db.t")`. What a hint says depends on the door at
which the error leaves (`fluss.hints`). There is a class for each reaction that a caller can have;
the class of a server's error is found by its code (`error_from_code`), never by its text. Class and
code decide whether a retry can help, in agreement with the generated table of `fluss.error_codes`.
Errors are picklable, because engines send them between processes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from fluss.error_codes import ErrorCode
from fluss.hints import Door, FrameKind, Hint, HintKey, render

CLIENT_ERROR_CODE = int(ErrorCode.CLIENT_ERROR)

# A server may answer with a page of Java; longer texts are cut.
MESSAGE_CHARS_MAX = 2_000
SERVER_TRACE_CHARS_MAX = 64 * 1024

# One hint, several that follow each other, or none.
Hints = str | Hint | Sequence[str | Hint | None] | None
_CLASS_OF_CODE: dict[int, type[FlussError]] = {}
_SENTENCE_ENDS: Final = (".", "?", "!", "…", ":")


class FlussError(Exception):
    """A failure of, or a refusal by, Fluss or this client.

    Args:
        message: What happened and why, in whole sentences.
        error_code: The server's code, or -2 where the client refused by itself.
        hint: What to do next: a text that is right at every door, or a `Hint` that has a text for
            each; several are joined.
        server_trace: The stack trace a server put into its answer; never part of the message.
        facts: What the sentence was built from; each becomes an attribute.

    Attributes:
        sentence: What happened, without the place.
        facts: The facts by name.
        door: The door through which the error left; it decides the words of the hint.
        frame: The kind of frame that the caller gave, if any.
    """

    default_code: ClassVar[int] = CLIENT_ERROR_CODE
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        error_code: int | None = None,
        *,
        hint: Hints = None,
        server_trace: str | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message)
        self.sentence = message
        self.error_code = self.default_code if error_code is None else error_code
        self.hints = _as_hints(hint)
        self.server_trace = server_trace
        self.facts = facts
        self.door: Door | None = None
        self.frame: FrameKind | None = None
        self._place: tuple[str, ...] = ()
        self._during: tuple[str, ...] = ()
        self._ending: str | None = None

    def __init_subclass__(cls, *, code: ErrorCode | None = None) -> None:
        """Make a code the default of a class, and the class that of a server's answer with it."""
        super().__init_subclass__()
        if code is not None:
            cls.default_code = int(code)
            _CLASS_OF_CODE[code] = cls

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that are not ordinary attributes. `facts` itself may be missing
        # while an unpickled error is being rebuilt.
        facts: dict[str, Any] = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # --- the message ----------------------------------------------------------------------------

    @property
    def message(self) -> str:
        """What happened and why, and where if it is known."""
        known = " ".join([*self._during, self.sentence])
        place = _place(self.facts, self._place, known)
        text = ": ".join([*self._during, *([place] if place else []), self.sentence])
        return f"{text} [{self._ending}]" if self._ending else text

    @property
    def hint(self) -> str | None:
        """What to do next, in the words of the door at which the error left."""
        texts = [render(each, self.door, self.frame).strip() for each in self.hints]
        return _joined(dict.fromkeys(filter(None, texts))) or None

    @property
    def is_retriable(self) -> bool:
        """Whether the same call may succeed when it is made again."""
        if self.error_code == self.default_code:
            return self.retriable
        return self.retriable or _known(self.error_code).is_retriable

    def __str__(self) -> str:
        if self.hint is None:
            return self.message
        return f"{self.message}\n  hint: {self.hint}"

    # --- context --------------------------------------------------------------------------------

    def with_context(self, **context: Any) -> Self:
        """Return a copy that reports where the error happened; see `add_context`.

        The copy has no traceback, so it can be raised to several callers:
        `raise error.with_context(row=5) from error`.
        """
        made = type(self)(self.sentence, self.error_code)
        made.__dict__.update({**self.__dict__, "facts": dict(self.facts)})
        if notes := getattr(self, "__notes__", None):
            made.__notes__ = list(notes)
        made.__cause__ = self.__cause__
        made.__suppress_context__ = self.__suppress_context__
        return made.add_context(**context)

    def without_context(self) -> Self:
        """Return a copy that reports only what happened: without place, ending and notes."""
        made = type(self)(self.sentence, self.error_code)
        made.hints, made.server_trace = self.hints, self.server_trace
        made.facts = dict(self.facts)
        made.door, made.frame = self.door, self.frame
        return made

    def add_context(
        self,
        *,
        during: str | None = None,
        ending: str | None = None,
        hint: Hints = None,
        door: Door | None = None,
        frame: FrameKind | None = None,
        **facts: Any,
    ) -> Self:
        """Report where the error happened, in place; adding the same again changes nothing.

        Facts become attributes. Those that name a place (`row`, `column`, `bucket`, `partition`,
        `table`, `offset`) also become the beginning of the message, unless the sentence names them
        already. A fact that is None is left out.

        Args:
            during: The operation in progress, put before the message: `during: message`.
            ending: The end of the message, in brackets; Spark shows the code there.
            hint: What to do next, in place of the hint so far; `(*error.hints, more)` adds one.
            door: The door through which the error leaves; the outermost one counts.
            frame: The kind of frame that the caller gave; the innermost one counts.
            facts: What else is known.

        Returns:
            The error itself.
        """
        known = {name: value for name, value in facts.items() if value is not None}
        self.facts.update(known)
        self._place += tuple(each for each in known if each in _PLACES and each not in self._place)
        if during is not None and during not in self._during:
            self._during = (during, *self._during)
        self._ending = ending or self._ending
        if hint is not None:
            self.hints = _as_hints(hint)
        self.door = door or self.door
        self.frame = self.frame or frame
        self.args = (self.message,)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in self.__dict__.items() if name != "error_code"}
        state["__notes__"] = list(getattr(self, "__notes__", []))
        return (type(self), (self.message, self.error_code), state)


# --- the place of an error ----------------------------------------------------------------------

# From the inside out; "In row 5 of bucket 3 of db.t at offset 7".
_PLACES: Final = {
    "row": "row {}",
    "column": "column {!r}",
    "inside": "{}",
    "bucket": "bucket {}",
    "partition": "partition {!r}",
    "table": "{}",
    "offset": "offset {}",
}


def _place(facts: dict[str, Any], named: tuple[str, ...], known: str) -> str:
    """Return the beginning of a message: the parts of the place that the sentence lacks."""
    shown = {
        name: text.format(getattr(facts[name], "bucket_id", facts[name]))
        for name, text in _PLACES.items()
        if name in named
    }
    # Each caller counts rows by itself; a number in the sentence may be that of an element.
    shown = {name: each for name, each in shown.items() if name == "row" or not _has(known, each)}
    at = shown.pop("offset", None)
    if not shown:
        return "" if at is None else f"At {at}"
    return f"In {' of '.join(shown.values())}{'' if at is None else f' at {at}'}"


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(words)}(?!\w)", text) is not None


def _as_hints(hint: Hints) -> tuple[str | Hint, ...]:
    if isinstance(hint, str | Hint) or hint is None:
        hint = (hint,)
    return tuple(dict.fromkeys(each for each in hint if each))


def _joined(texts: Sequence[str] | dict[str, None]) -> str:
    """Hints as one text: each but the last is closed like a sentence."""
    *first, last = texts or [""]
    closed = [each if each.endswith(_SENTENCE_ENDS) else f"{each}." for each in first]
    return " ".join([*closed, last])


# --- requests that cannot be fulfilled --------------------------------------------------------


class InvalidNameError(FlussError):
    """A database, table, column or partition name breaks Fluss's rules."""


class InvalidSchemaError(FlussError):
    """A schema or table descriptor contradicts itself or Fluss's rules."""


class UnsupportedTypeError(FlussError):
    """A data type has no counterpart in the other system."""


class SchemaMismatchError(FlussError):
    """Data does not fit the table: a column is missing, unknown, or of another type."""


class InvalidValueError(FlussError):
    """One value does not fit its column; `column` and, where known, `row` say which."""


class ConfigError(FlussError):
    """A configuration key or value is unknown or out of range."""


class LimitExceededError(FlussError):
    """Something is larger than the limit set for it; both numbers are in the message."""


class UnsupportedOperationError(FlussError, code=ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION):
    """The table, or the cluster as it is set up, does not offer this."""


class ClosedError(FlussError):
    """The connection, scanner or writer has been closed."""


class MissingExtraError(FlussError, ImportError):
    """An optional package is not installed; the hint is the pip command."""


# --- a server on this machine -------------------------------------------------------------------


class LocalServerError(FlussError):
    """A server on this machine could not be started, used or stopped."""


class MissingRuntimeError(LocalServerError):
    """A requirement of a local server is missing: Java, or the server's own jar."""


# --- damaged bytes ------------------------------------------------------------------------------


class CorruptDataError(FlussError):
    """Bytes cannot be read: `what` was read, at byte `at`, and `why` it fails."""

    default_code: ClassVar[int] = 14


class CorruptBatchError(CorruptDataError):
    """A log or KV record batch is damaged."""


class ProtocolError(CorruptDataError):
    """A peer broke the rules of the wire: a frame or message that cannot be read."""

    default_code: ClassVar[int] = 3


# --- the network and the cluster ----------------------------------------------------------------


class ConnectError(FlussError, code=ErrorCode.NETWORK_EXCEPTION):
    """A server could not be reached, or closed the connection."""

    retriable: ClassVar[bool] = True
    refresh_metadata: ClassVar[bool] = True


class RequestTimeoutError(FlussError, code=ErrorCode.REQUEST_TIME_OUT):
    """No answer within the deadline."""

    retriable: ClassVar[bool] = True


class AuthenticationError(FlussError, code=ErrorCode.AUTHENTICATE_EXCEPTION):
    """The server did not accept the user or the password."""


class RetriableAuthenticationError(
    AuthenticationError, code=ErrorCode.RETRIABLE_AUTHENTICATE_EXCEPTION
):
    """The server could not check the credentials now; the exchange may be started again."""

    retriable: ClassVar[bool] = True


class AuthorizationError(FlussError, code=ErrorCode.AUTHORIZATION_EXCEPTION):
    """The user may not do this."""


class RemoteStorageError(FlussError):
    """A file of the remote store cannot be read: `path` names it, and `code` is the store's own."""


class RemoteFileNotFoundError(RemoteStorageError):
    """The remote file, or its bucket, does not exist."""


class RemoteAccessError(RemoteStorageError):
    """The remote store refuses the credentials."""


class RemoteUnavailableError(RemoteStorageError):
    """The remote store cannot be reached, or is too busy."""

    retriable: ClassVar[bool] = True


class UnsupportedVersionError(FlussError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The server is too old, or too new, for the request."""


class DatabaseNotFoundError(FlussError, code=ErrorCode.DATABASE_NOT_EXIST):
    """The database does not exist."""


class DatabaseNotEmptyError(FlussError, code=ErrorCode.DATABASE_NOT_EMPTY):
    """The database still has tables."""


class DatabaseAlreadyExistsError(FlussError, code=ErrorCode.DATABASE_ALREADY_EXIST):
    """The database exists already."""


class TableNotFoundError(FlussError, code=ErrorCode.TABLE_NOT_EXIST):
    """The table does not exist."""


class TableAlreadyExistsError(FlussError, code=ErrorCode.TABLE_ALREADY_EXIST):
    """The table exists already."""


class PartitionNotFoundError(FlussError, code=ErrorCode.PARTITION_NOT_EXISTS):
    """The partition does not exist."""


class PartitionAlreadyExistsError(FlussError, code=ErrorCode.PARTITION_ALREADY_EXISTS):
    """The partition exists already."""


class InvalidPartitionError(FlussError, code=ErrorCode.PARTITION_SPEC_INVALID_EXCEPTION):
    """A partition's keys or values do not fit the table."""


class SnapshotNotFoundError(FlussError, code=ErrorCode.KV_SNAPSHOT_NOT_EXIST):
    """The snapshot, of a primary key table or in the lake, does not exist."""


class OffsetOutOfRangeError(FlussError, code=ErrorCode.LOG_OFFSET_OUT_OF_RANGE_EXCEPTION):
    """An offset lies before the retained log or beyond its end."""


class ServerError(FlussError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The server refused, for a reason that has no class of its own here."""


class WriterStateError(ServerError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_EXCEPTION):
    """The bucket no longer knows the writer, or misses a batch of it: records may be lost."""


class ScannerLostError(ServerError, code=ErrorCode.UNKNOWN_SCANNER_ID):
    """The server no longer holds the scan; it must be started again."""


class RetriableServerError(ServerError):
    """The server could not do it now; the same request may succeed later."""

    retriable: ClassVar[bool] = True


class LeaderChangedError(RetriableServerError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """The server is not, or not yet, the leader of the bucket or of the cluster."""

    refresh_metadata: ClassVar[bool] = True


# --- from a server's answer to an error ---------------------------------------------------------

# The codes beside the one that a class names itself. All others become ServerError or, where the
# table of codes says so, one of its retriable kinds.
_CLASS_OF_CODE |= {
    ErrorCode.RECORD_TOO_LARGE_EXCEPTION: LimitExceededError,
    ErrorCode.INVALID_TABLE_EXCEPTION: InvalidSchemaError,
    ErrorCode.INVALID_DATABASE_EXCEPTION: InvalidNameError,
    ErrorCode.INVALID_REPLICATION_FACTOR: ConfigError,
    ErrorCode.INVALID_REQUIRED_ACKS: ConfigError,
    ErrorCode.UNKNOWN_WRITER_ID_EXCEPTION: WriterStateError,
    ErrorCode.INVALID_COLUMN_PROJECTION: SchemaMismatchError,
    ErrorCode.INVALID_TARGET_COLUMN: SchemaMismatchError,
    ErrorCode.TABLE_NOT_PARTITIONED_EXCEPTION: UnsupportedOperationError,
    ErrorCode.INVALID_CONFIG_EXCEPTION: ConfigError,
    ErrorCode.LAKE_STORAGE_NOT_CONFIGURED_EXCEPTION: UnsupportedOperationError,
    ErrorCode.PARTITION_MAX_NUM_EXCEPTION: LimitExceededError,
    ErrorCode.SECURITY_DISABLED_EXCEPTION: UnsupportedOperationError,
    ErrorCode.BUCKET_MAX_NUM_EXCEPTION: LimitExceededError,
    ErrorCode.LAKE_SNAPSHOT_NOT_EXIST: SnapshotNotFoundError,
    ErrorCode.INVALID_ALTER_TABLE_EXCEPTION: UnsupportedOperationError,
    ErrorCode.DELETION_DISABLED_EXCEPTION: UnsupportedOperationError,
    ErrorCode.CONFIG_EXCEPTION: ConfigError,
    ErrorCode.SCANNER_EXPIRED: ScannerLostError,
}


# What to do after an answer with one of these codes, unless the caller knows more.
_REMEDIES: Final[Mapping[ErrorCode, HintKey]] = {
    ErrorCode.AUTHENTICATE_EXCEPTION: HintKey.LOG_IN,
    ErrorCode.DATABASE_ALREADY_EXIST: HintKey.IGNORE_EXISTING,
    ErrorCode.TABLE_ALREADY_EXIST: HintKey.IGNORE_EXISTING,
    ErrorCode.PARTITION_ALREADY_EXISTS: HintKey.IGNORE_EXISTING,
    ErrorCode.DATABASE_NOT_EMPTY: HintKey.DROP_WITH_TABLES,
}


def error_from_code(code: int, message: str | None = None, **facts: Any) -> FlussError:
    """Make the error for an error response of a server.

    Args:
        code: The number in the response. One that no server should send becomes -1, as in Fluss's
            own clients; the number itself is then the fact `server_code`.
        message: The text in the response; a Java stack trace in it becomes `server_trace`, and the
            sentence of its root cause the message.
        facts: What the caller knows (table, bucket, address, `hint`); see `FlussError`.
    """
    known = _known(code)
    if known is ErrorCode.UNKNOWN_SERVER_ERROR and code != known:
        facts["server_code"] = code
    if known in _REMEDIES:
        facts.setdefault("hint", Hint(_REMEDIES[known]))
    sentence, trace = _split_trace(message or "")
    is_unfinished = known is ErrorCode.UNKNOWN_SERVER_ERROR and _EMPTY_NODE in sentence
    error_class = RetriableServerError if is_unfinished else _class_of(known)
    return error_class(sentence or known.sentence, int(known), server_trace=trace, **facts)


def unusable_answer(api: str, why: str, **facts: Any) -> ProtocolError:
    """Make the error for an answer that can be read, and lacks or contradicts something."""
    return ProtocolError(
        f"The answer to {api} cannot be used: {why}.", what=api, at=0, why=why, **facts
    )


# Fluss 0.9.1 creates the ZooKeeper node of a table first and its contents afterwards. A request in
# between is answered with code -1 and the sentence of its JSON parser for an empty text.
_EMPTY_NODE: Final = "No content to map due to end-of-input"


def _known(code: int) -> ErrorCode:
    try:
        known = ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    # An error without a reason, or with a reason that only clients have, is a server's mistake.
    said_by_servers = known not in {ErrorCode.NONE, ErrorCode.CLIENT_ERROR}
    return known if said_by_servers else ErrorCode.UNKNOWN_SERVER_ERROR


def _class_of(code: ErrorCode) -> type[FlussError]:
    if code in _CLASS_OF_CODE:
        return _CLASS_OF_CODE[code]
    if code.refreshes_metadata:
        return LeaderChangedError
    return RetriableServerError if code.is_retriable else ServerError


_JAVA_FRAME = re.compile(r"\t+(?:at |\.\.\. |at?$|\.*$)")  # the last one may be cut off
_JAVA_CLASS = re.compile(r"(?:[a-z_][\w$]*\.)+([A-Z][\w$]*(?:Exception|Error))(?:: |$)")
_JAVA_CAUSE = "Caused by: "


def _split_trace(text: str) -> tuple[str, str | None]:
    """Take the sentence of the root cause out of a Java stack trace, if the text is one."""
    text = text[:SERVER_TRACE_CHARS_MAX].strip()
    causes: list[list[str]] = []
    is_trace = reading_sentence = False
    for line in text.split("\n"):
        if _JAVA_FRAME.match(line):
            is_trace, reading_sentence = True, False
        elif line.startswith(_JAVA_CAUSE) or not causes:
            causes.append([line.removeprefix(_JAVA_CAUSE)])
            reading_sentence = True
        elif reading_sentence:
            causes[-1].append(line)
    # Servers cut traces at a fixed length, so that the last cause may lack its sentence.
    if is_trace and reading_sentence and ": " not in causes[-1][0]:
        causes.pop()
    sentence = _without_classes("\n".join(causes[-1]).strip())
    if len(sentence) > MESSAGE_CHARS_MAX:
        sentence = f"{sentence[:MESSAGE_CHARS_MAX]}..."
    return sentence, text if is_trace else None


def _without_classes(sentence: str) -> str:
    """Drop the exceptions' names before a sentence; one that has no sentence is its own."""
    at = 0
    while found := _JAVA_CLASS.match(sentence, at):
        if found.end() == len(sentence):
            return found.group(1)
        at = found.end()
    return sentence[at:]
