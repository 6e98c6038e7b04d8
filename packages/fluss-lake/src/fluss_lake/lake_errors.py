"""The errors of tiering that a caller can handle; all other errors are those of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError

if TYPE_CHECKING:
    from pyiceberg.table import Table


class LakeConflictError(FlussError):
    """Another program has committed to the lake meanwhile; this round committed nothing."""


class LakeMismatchError(FlussError):
    """The table of the lake is not the one that Fluss made, or not in the state Fluss knows."""


class TieringFencedError(FlussError):
    """The coordinator has given the table to another worker; nothing may be committed."""

    default_code = int(ErrorCode.FENCED_TIERING_EPOCH_EXCEPTION)


def check_base_is_there(table: Table, base_id: int | None, error: Exception) -> None:
    """Raise a conflict after an error if another program has removed the snapshot and its files.

    Raises:
        LakeConflictError: The snapshot has been removed.
    """
    table.refresh()
    if base_id is not None and table.snapshot_by_id(base_id) is None:
        raise conflict(table, f"the snapshot {base_id} has been removed") from error


def conflict(table: Table, why: str) -> LakeConflictError:
    """The error of a commit that conflicts with another one."""
    name = ".".join(table.name())
    return LakeConflictError(
        f"The lake of {name} has another snapshot than the one this round started with: {why}.",
        hint="Nothing was committed. The next round starts from the new snapshot.",
        table=name,
    )
