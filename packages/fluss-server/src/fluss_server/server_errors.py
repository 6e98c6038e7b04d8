"""Why a request is refused, as clients are told: a code of the protocol and a sentence.

Everything below raises the package's own errors. What those mean to a client on the wire is
decided here, once: errors that carry a server's code keep it, those that a client raises against
itself get the code that Fluss's own server would answer, and what nobody foresaw is -1 without
details.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import (
    CLIENT_ERROR_CODE,
    ConfigError,
    CorruptDataError,
    FlussError,
    InvalidNameError,
    InvalidSchemaError,
    InvalidValueError,
    LimitExceededError,
    LocalServerError,
    SchemaMismatchError,
    UnsupportedTypeError,
    error_from_code,
)

_OUT_OF_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

# For errors that a client raises against itself and that name no code of the protocol.
_CODES: Final[tuple[tuple[type[FlussError], ErrorCode], ...]] = (
    (ConfigError, ErrorCode.INVALID_CONFIG_EXCEPTION),
    (InvalidNameError, ErrorCode.INVALID_TABLE_EXCEPTION),
    (InvalidSchemaError, ErrorCode.INVALID_TABLE_EXCEPTION),
    (UnsupportedTypeError, ErrorCode.INVALID_TABLE_EXCEPTION),
    (SchemaMismatchError, ErrorCode.INVALID_COLUMN_PROJECTION),
    (InvalidValueError, ErrorCode.CORRUPT_RECORD_EXCEPTION),
    (CorruptDataError, ErrorCode.CORRUPT_RECORD_EXCEPTION),
    (LimitExceededError, ErrorCode.RECORD_TOO_LARGE_EXCEPTION),
    (LocalServerError, ErrorCode.STORAGE_EXCEPTION),
)


def refuse(
    code: ErrorCode, message: str, *, hint: str | None = None, **facts: object
) -> FlussError:
    """The error that a client shall be told with this code."""
    return error_from_code(int(code), message, hint=hint, **facts)


def with_code(error: FlussError, code: ErrorCode) -> FlussError:
    """The same sentence under the code that Fluss's server gives it in this place."""
    return refuse(code, error.message, hint=error.hint)


def code_and_text(error: BaseException) -> tuple[int, str]:
    """What a client is told about an error."""
    match error:
        case FlussError():
            return _code_of(error), str(error)
        case OSError() if error.errno in _OUT_OF_SPACE:
            text = f"The server's disk is full: {error}. Nothing of the request was kept."
            return int(ErrorCode.STORAGE_EXCEPTION), text
        case OSError() | sqlite3.Error():
            return int(ErrorCode.STORAGE_EXCEPTION), f"The server's disk refused: {error}."
        case _:
            # The details are for the server's log, and for nobody who merely sent a request.
            text = f"The server failed in a way it did not foresee ({type(error).__name__})."
            return int(ErrorCode.UNKNOWN_SERVER_ERROR), text


def _code_of(error: FlussError) -> int:
    if error.error_code != CLIENT_ERROR_CODE:
        return error.error_code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return int(code)
    return int(ErrorCode.UNKNOWN_SERVER_ERROR)
