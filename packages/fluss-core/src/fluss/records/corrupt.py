"""The error with which this room reports a damaged batch.

Every reader here reports damage in the same words and with the same facts, so that the file or
bucket can be found. The readers decide what counts as damaged.
"""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptBatchError


def corrupt_batch(
    what: str, *, at: int, why: str, code: ErrorCode = ErrorCode.CORRUPT_RECORD_EXCEPTION
) -> CorruptBatchError:
    """Return the error for `what`, which begins at byte `at` of the bytes given to the reader."""
    return CorruptBatchError(
        f"{what[0].upper()}{what[1:]} at byte {at} cannot be read: {why}.",
        int(code),
        what=what,
        at=at,
        why=why,
    )
