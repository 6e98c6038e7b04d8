"""The one sentence in which this room says that a batch is damaged.

Every reader here refuses bytes in the same words and with the same facts, so that whoever catches
the error can tell which file or bucket to look at. What counts as damaged the readers decide.
"""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptBatchError


def corrupt_batch(
    what: str, *, at: int, why: str, code: ErrorCode = ErrorCode.CORRUPT_RECORD_EXCEPTION
) -> CorruptBatchError:
    """The error for `what`, which begins at byte `at` of the bytes given to the reader."""
    return CorruptBatchError(
        f"{what[0].upper()}{what[1:]} at byte {at} cannot be read: {why}.",
        int(code),
        what=what,
        at=at,
        why=why,
    )
