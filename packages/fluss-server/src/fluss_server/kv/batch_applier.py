"""Applies the records of one batch, in order, to the rows of their keys. Keeps no state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import DeleteBehavior
from fluss.records.kv.kv_batch import KvBatch
from fluss_server.kv.auto_increment import NumberSequence
from fluss_server.kv.changelog_batches import Changes
from fluss_server.kv.merge_engines import KeepNew, RowMerger
from fluss_server.kv.stored_row_codec import schema_prefix
from fluss_server.server_errors import request_error

# A key, and its new stored row; None to delete it.
Record = tuple[bytes, bytes | None]


def apply_records(
    records: Sequence[Record],
    changes: Changes,
    *,
    merger: RowMerger,
    behavior: DeleteBehavior,
    present: dict[bytes, bytes | None],
    number: Callable[[bytes], bytes] | None,
    is_blind: bool,
) -> None:
    """Apply records in order; each one sees the changes of those before it.

    Args:
        records: Keys and rows.
        changes: Receives the changes.
        merger: Combines old and new rows.
        behavior: What a delete does.
        present: The row of each key; updated to the rows afterwards.
        number: Sets the auto-increment column of an inserted row.
        is_blind: Whether upserts ignore the old rows, which are then not in `present`.

    Raises:
        FlussError: The batch has a delete and deletes are disabled; `changes` is void then.
    """
    is_plain = isinstance(merger, KeepNew) and number is None and not is_blind
    if is_plain and _apply_bulk(records, changes, present):
        return
    for key, row in records:
        if row is None:
            if behavior is DeleteBehavior.ALLOW:
                _delete(key, changes, merger, present)
            elif behavior is DeleteBehavior.DISABLE:
                raise _deletes_disabled()
        elif is_blind:
            changes.update(key, None, row)
            present[key] = row
        elif (old := present[key]) is None:
            new = merger.merge(None, row)
            new = new if number is None else number(new)
            changes.insert(key, new)
            present[key] = new
        elif (merged := merger.merge(old, row)) is not old:
            changes.update(key, old, merged)
            present[key] = merged


def _apply_bulk(
    records: Sequence[Record], changes: Changes, present: dict[bytes, bytes | None]
) -> bool:
    """Apply the common case without a step for each row: upserts of different keys.

    Returns:
        Whether the batch is such a case: its keys are distinct, and all new or all known.
    """
    if len(present) != len(records):
        return False  # a second record of a key sees the change of the first
    rows = [(key, row) for key, row in records if row is not None]
    if len(rows) != len(records):
        return False
    olds = [old for key, _ in rows if (old := present[key]) is not None]
    if not olds:
        changes.insert_all(rows)
    elif len(olds) == len(rows):
        changes.update_all(rows, olds)
    else:
        return False
    present.update(rows)
    return True


def _delete(
    key: bytes, changes: Changes, merger: RowMerger, present: dict[bytes, bytes | None]
) -> None:
    old = present[key]
    if old is None:
        return
    new = merger.delete(old)
    if new is None:
        changes.delete(key, old)
    else:
        changes.update(key, old, new)
    present[key] = new


def records_of(batch: KvBatch) -> list[Record]:
    """Return the records of a received batch, with rows in their stored form."""
    data = batch.keys.data.tobytes()
    prefix = schema_prefix(batch.schema_id)
    locations = zip(
        batch.keys.starts.tolist(),
        batch.keys.ends.tolist(),
        batch.rows.ends.tolist(),
        strict=True,
    )
    return [
        (data[start:end], prefix + data[end:row_end] if row_end > end else None)
        for start, end, row_end in locations
    ]


def key_positions(schema: Schema) -> list[int]:
    """Return the positions of the primary-key columns."""
    names = schema.column_names
    return [names.index(each) for each in schema.primary_keys]


def check_numbered(schema: Schema, numbers: NumberSequence, target_columns: Sequence[int]) -> None:
    """Refuse to write a column whose numbers the server assigns.

    Raises:
        FlussError: INVALID_TARGET_COLUMN: it is a target column, or no target columns are named.
    """
    if not target_columns:
        raise request_error(
            ErrorCode.INVALID_TARGET_COLUMN,
            f"The table contains an auto-increment column [{numbers.column}], but update target "
            "columns are not explicitly specified.",
            hint="Specify the update target columns and exclude the auto-increment column.",
        )
    position = schema.column_names.index(numbers.column)
    if position in target_columns:
        raise request_error(
            ErrorCode.INVALID_TARGET_COLUMN,
            f"Auto-increment column [{numbers.column}] at index {position} must not be included "
            "in target columns.",
        )


def _deletes_disabled() -> FlussError:
    return request_error(
        ErrorCode.DELETION_DISABLED_EXCEPTION,
        "Delete operations are disabled for this table. "
        "The table.delete.behavior is set to 'disable'.",
    )
