"""The errors of tiering that a caller can handle; all other errors are those of the client."""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError


class LakeConflictError(FlussError):
    """Another program has committed to the lake meanwhile; this round committed nothing."""


class LakeMismatchError(FlussError):
    """The table of the lake is not the one that Fluss made, or not in the state Fluss knows."""


class TieringFencedError(FlussError):
    """The coordinator has given the table to another worker; nothing may be committed."""

    default_code = int(ErrorCode.FENCED_TIERING_EPOCH_EXCEPTION)
