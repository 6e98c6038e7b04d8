"""Applying the records of one batch, in order, to what their keys have; nothing is kept here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import DeleteBehavior
from fluss.records.kv.kv_batch import KvBatch
from fluss_server.kv.auto_increment import Sequence as Numbers
from fluss_server.kv.changelog_batches import Changes
from fluss_server.kv.merge_engines import KeepNew, RowMerger
from fluss_server.kv.stored_rows_codec import schema_prefix
from fluss_server.server_errors import refuse

# A key, and the stored row to put there, or None to delete.
Record = tuple[bytes, bytes | None]


def apply(
    records: Sequence[Record],
    changes: Changes,
    *,
    merger: RowMerger,
    behavior: DeleteBehavior,
    present: dict[bytes, bytes | None],
    number: Callable[[bytes], bytes] | None,
    is_blind: bool,
) -> None:
    """Apply records, each seeing what those before it did.

    Args:
        records: Keys and rows.
        changes: Where what changes is written down.
        merger: What becomes of old and new rows.
        behavior: What a delete does.
        present: What each key has; afterwards, what it has then.
        number: Sets the auto-increment column of a row that is inserted.
        is_blind: Whether upserts are not to look at what was there, which is then not in `present`.

    Raises:
        FlussError: A delete where deletes are disabled; what was written down is then void.
    """
    is_plain = isinstance(merger, KeepNew) and number is None and not is_blind
    if is_plain and _apply_at_once(records, changes, present):
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


def _apply_at_once(
    records: Sequence[Record], changes: Changes, present: dict[bytes, bytes | None]
) -> bool:
    """What most batches are, without a step for each row: upserts of different keys.

    Returns:
        Whether it is such a batch, of keys that are all new or all known.
    """
    if len(present) != len(records):
        return False  # a key that comes twice sees what it did before
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
    """The records of a batch that was received, with rows as they are stored."""
    data = batch.keys.data.tobytes()
    prefix = schema_prefix(batch.schema_id)
    places = zip(
        batch.keys.starts.tolist(),
        batch.keys.ends.tolist(),
        batch.rows.ends.tolist(),
        strict=True,
    )
    return [
        (data[start:end], prefix + data[end:row_end] if row_end > end else None)
        for start, end, row_end in places
    ]


def key_positions(schema: Schema) -> list[int]:
    """Where the columns of the primary key are."""
    names = schema.column_names
    return [names.index(each) for each in schema.primary_keys]


def check_numbered(schema: Schema, numbers: Numbers, target_columns: Sequence[int]) -> None:
    """Refuse to write a column that the server counts up by itself.

    Raises:
        FlussError: INVALID_TARGET_COLUMN: it is among the columns, or no columns were named.
    """
    if not target_columns:
        raise refuse(
            ErrorCode.INVALID_TARGET_COLUMN,
            f"The table contains an auto-increment column [{numbers.column}], but update target "
            "columns are not explicitly specified.",
            hint="Specify the update target columns and exclude the auto-increment column.",
        )
    position = schema.column_names.index(numbers.column)
    if position in target_columns:
        raise refuse(
            ErrorCode.INVALID_TARGET_COLUMN,
            f"Auto-increment column [{numbers.column}] at index {position} must not be included "
            "in target columns.",
        )


def _deletes_disabled() -> FlussError:
    return refuse(
        ErrorCode.DELETION_DISABLED_EXCEPTION,
        "Delete operations are disabled for this table. "
        "The table.delete.behavior is set to 'disable'.",
    )
