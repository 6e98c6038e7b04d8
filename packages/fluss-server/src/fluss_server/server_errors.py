"""Error responses: which protocol code and which text a client receives for an error.

The code below this file raises the errors of `fluss.errors`, and this file alone maps them to the
wire. Errors with a server's code keep it; errors that a client raises locally get the code that
Fluss's own server would return; an unexpected exception is -1 without details.
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

# For errors that a client raises locally, which have no code of the protocol.
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


def request_error(
    code: ErrorCode, message: str, *, hint: str | None = None, **facts: object
) -> FlussError:
    """Return the error that a client receives with this code."""
    return error_from_code(int(code), message, hint=hint, **facts)


def with_code(error: FlussError, code: ErrorCode) -> FlussError:
    """Return the same error with the code that Fluss's server uses in this case."""
    return request_error(code, error.message, hint=error.hint)


def code_and_text(error: BaseException) -> tuple[int, str]:
    """Return the code and the text of an error's response."""
    match error:
        case FlussError():
            return _code_of(error), str(error)
        case OSError() if error.errno in _OUT_OF_SPACE:
            text = f"The server's disk is full: {error}. Nothing of the request was kept."
            return int(ErrorCode.STORAGE_EXCEPTION), text
        case OSError() | sqlite3.Error():
            return int(ErrorCode.STORAGE_EXCEPTION), f"The server's disk refused: {error}."
        case _:
            # The details go to the server's log only.
            text = f"The server failed with an unexpected error ({type(error).__name__})."
            return int(ErrorCode.UNKNOWN_SERVER_ERROR), text


def _code_of(error: FlussError) -> int:
    if error.error_code != CLIENT_ERROR_CODE:
        return error.error_code
    for kind, code in _CODES:
        if isinstance(error, kind):
            return int(code)
    return int(ErrorCode.UNKNOWN_SERVER_ERROR)
