"""What may be written to a table, by which columns, and in which layout rows are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from fluss.errors import InvalidValueError, SchemaMismatchError, UnsupportedOperationError
from fluss.hints import Hint, HintKey
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import DeleteBehavior, MergeEngine
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.numpy_arrays import to_numpy
from fluss.rows.buffers.columns import BoolArray

# The id of a table that is checked before it is created.
NO_TABLE_YET: Final = -1
_WITHOUT_KEY: Final = {"deleted": HintKey.NO_KEY_TO_DELETE_BY}


def check_appends(table: TableInfo) -> None:
    """Refuse a table whose rows are not appended."""
    if table.has_primary_key():
        hint = Hint(HintKey.UPSERT_INSTEAD, table=str(table.table_path))
        raise _unsupported(table, "has a primary key; rows are not appended to it.", hint)


def check_upserts(table: TableInfo, *, done: str = "replaced") -> None:
    """Refuse a table whose rows have no key to find them by.

    Args:
        table: The table.
        done: What the write does to the rows of a key: "replaced", "updated" or "deleted".
    """
    if not table.has_primary_key():
        is_new = table.table_id == NO_TABLE_YET
        key = HintKey.NO_KEY_YET if is_new else _WITHOUT_KEY.get(done, HintKey.APPEND_INSTEAD)
        facts = {"table": str(table.table_path)} if key is HintKey.APPEND_INSTEAD else {}
        raise _unsupported(
            table, f"has no primary key; its rows cannot be {done}.", Hint(key, **facts)
        )


def check_target_columns(table: TableInfo, columns: Sequence[int] | None) -> tuple[int, ...]:
    """The positions of the columns to write, rising; empty for all.

    An auto-increment column is never written: the server assigns its values.

    Raises:
        SchemaMismatchError: The columns are not the table's, lack a part of the key, contain what
            only the server may write, or leave out a column that must have a value.
    """
    schema = table.schema
    names = schema.column_names
    counted = set(schema.column_indexes(schema.auto_increment_columns))
    if columns is None:
        if not counted:
            return ()
        return tuple(each for each in range(len(names)) if each not in counted)
    targets = tuple(sorted(set(columns)))
    if any(not 0 <= each < len(names) for each in targets):
        raise SchemaMismatchError(
            f"The columns to write are {list(columns)}; {table.table_path} has the positions 0 to "
            f"{len(names) - 1}.",
        )
    missing = [names[each] for each in schema.primary_key_indexes if each not in targets]
    if missing:
        raise SchemaMismatchError(
            f"The columns to write lack {', '.join(missing)}, which belongs to the primary key.",
            hint=f"Add the whole key: {', '.join(schema.primary_keys)}.",
            column=missing[0],
        )
    for position in targets:
        if position in counted:
            raise SchemaMismatchError(
                f"The column {names[position]!r} is counted up by the server and cannot be written.",
                hint="Leave it out.",
                column=names[position],
            )
    _check_left_out(table, targets, counted)
    return targets if len(targets) < len(names) else ()


def check_partial_writes(table: TableInfo) -> None:
    """Refuse partial updates where the merge engine takes whole rows only.

    Servers refuse them too, but with the unspecific error code, after which it is not known what
    was written.

    Raises:
        UnsupportedOperationError: The merge engine is FIRST_ROW or VERSIONED.
    """
    engine = table.options.merge_engine
    if engine in {MergeEngine.FIRST_ROW, MergeEngine.VERSIONED}:
        why = f"has the merge engine {engine.value.lower()}, which takes whole rows only. Nothing was written."
        raise _unsupported(table, why, "Upsert whole rows.").add_context(in_doubt=False)


def check_row_deletes(table: TableInfo, row: int | None = None) -> None:
    """Refuse to delete rows of a table with an auto-increment column.

    Servers accept only partial updates of such a table. A delete then clears the other columns and
    keeps the row.

    Args:
        table: The table.
        row: The first delete of a changelog.

    Raises:
        UnsupportedOperationError: The table has an auto-increment column.
    """
    for name in table.schema.auto_increment_columns:
        error = UnsupportedOperationError(
            f"Rows of {table.table_path} cannot be deleted: servers would empty the columns beside "
            f"the auto-increment column {name!r}, and keep the row.",
            hint="Mark deleted rows in a column of their own, or update their columns to NULL.",
            table=str(table.table_path),
        )
        raise error.add_context(row=row)


def check_deletes(table: TableInfo) -> None:
    """Refuse to delete rows of a table that does not allow it."""
    if table.options.effective_delete_behavior is DeleteBehavior.DISABLE:
        hint = "Its 'table.delete.behavior' is 'disable'."
        raise _unsupported(table, "does not allow deletes.", hint)


def whole_layout(table: TableInfo) -> BatchLayout:
    """The layout of whole rows."""
    return BatchLayout.of_schema(table.schema, limits=table.value_limits)


def nullable_layout(table: TableInfo) -> BatchLayout:
    """The layout of partial rows: columns that are not written are NULL, even NOT NULL ones."""
    keys = set(table.schema.primary_key_indexes)
    types = [
        data_type if position in keys else data_type.as_nullable()
        for position, data_type in enumerate(table.schema.column_types)
    ]
    return BatchLayout.of(table.schema.column_names, types, limits=table.value_limits)


def check_changes(table: TableInfo, rows: pa.RecordBatch, deletes: BoolArray) -> None:
    """Refuse changes with NULL in a NOT NULL column. Of a delete, only the key counts.

    Args:
        table: The table.
        rows: The rows, in a `nullable_layout`.
        deletes: Which of them delete.

    Raises:
        InvalidValueError: A NOT NULL column has no value; `row` is the row.
    """
    for name in rows.schema.names:
        if table.schema.column(name).data_type.nullable or not rows.column(name).null_count:
            continue
        missing = to_numpy(rows.column(name).is_null()) & ~deletes
        if missing.any():
            row = int(missing.argmax())
            raise InvalidValueError(
                f"The column {name!r} cannot take None: it may not be NULL.",
                hint="Fill it; only a row that deletes its key may leave it out.",
                column=name,
            ).add_context(row=row)


def _check_left_out(table: TableInfo, targets: tuple[int, ...], counted: set[int]) -> None:
    schema = table.schema
    free = set(schema.primary_key_indexes) | counted
    if len(targets) == len(schema.columns):
        return
    for position, column in enumerate(schema.columns):
        # The server requires this of all columns except the key, also of those that are written.
        if position not in free and not column.data_type.nullable:
            raise SchemaMismatchError(
                f"{table.table_path} cannot be written in part: the column {column.name!r} is "
                "NOT NULL, and a new row would have no value for it.",
                hint="Write all columns; a column of rows that are written in part may be NULL.",
                column=column.name,
            )


def _unsupported(table: TableInfo, why: str, hint: str | Hint) -> UnsupportedOperationError:
    name = str(table.table_path)
    return UnsupportedOperationError(f"{name} {why}", hint=hint, table=name)
