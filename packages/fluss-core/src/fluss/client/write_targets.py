"""Which columns of a primary-key table a writer may write, and in which layout it encodes them."""

from __future__ import annotations

from collections.abc import Sequence

from fluss.errors import SchemaMismatchError
from fluss.model.table_info import TableInfo
from fluss.records.layout import BatchLayout


def check_target_columns(table: TableInfo, columns: Sequence[int] | None) -> tuple[int, ...]:
    """The columns to write, by rising position; empty for all.

    A table with an auto-increment column is written without that column, whose values the server
    gives.

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
    for each in targets:
        if each in counted:
            raise SchemaMismatchError(
                f"The column {names[each]!r} is counted up by the server and cannot be written.",
                hint="Leave it out.",
                column=names[each],
            )
    _check_left_out(table, targets, counted)
    return targets if len(targets) < len(names) else ()


def nullable_layout(table: TableInfo) -> BatchLayout:
    """The layout of rows with holes: what is not written is NULL, whatever the schema says."""
    keys = set(table.schema.primary_key_indexes)
    types = [
        each if place in keys else each.as_nullable()
        for place, each in enumerate(table.schema.column_types)
    ]
    return BatchLayout.of(table.schema.column_names, types)


def _check_left_out(table: TableInfo, targets: tuple[int, ...], counted: set[int]) -> None:
    schema = table.schema
    free = set(schema.primary_key_indexes) | counted
    if len(targets) == len(schema.columns):
        return
    for place, column in enumerate(schema.columns):
        # The server asks this of all columns beside the key, of those that are written too.
        if place not in free and not column.data_type.nullable:
            raise SchemaMismatchError(
                f"{table.table_path} cannot be written in part: the column {column.name!r} is "
                "NOT NULL, and a new row would have no value for it.",
                hint="Write all columns.",
                column=column.name,
            )
