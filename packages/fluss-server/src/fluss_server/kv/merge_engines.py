"""Merge engines, partial updates and deletes: how the old and new row of a key combine.

A merger returns for each record the row that the key has afterwards. Returning the old object
itself means that nothing changed, and then no change is logged. Java decides by identity too, so
an upsert of an equal row is a change. Rows are stored rows: schema id and encoded row
(`kv.stored_row_codec`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, error_from_code
from fluss.model.schema.aggregation import AggFunction, AggFunctionType
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import DeleteBehavior, MergeEngine, TableOptions
from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    BigIntType,
    DataType,
    IntType,
    TimestampLtzType,
    TimestampType,
)
from fluss_server.kv.aggregate_functions import aggregator
from fluss_server.kv.stored_row_codec import StoredRowCodec

_AGGREGATED_BY_DEFAULT = AggFunction(AggFunctionType.LAST_VALUE_IGNORE_NULLS)


class RowMerger(ABC):
    """Combines the old and new rows of keys; may be used for one batch or many."""

    @abstractmethod
    def merge(self, old: bytes | None, new: bytes) -> bytes:
        """Return the row after an upsert; `old` itself where nothing changes."""

    def delete(self, old: bytes) -> bytes | None:  # noqa: ARG002 - partial deletes use it
        """Return the row after a delete; None where the key is deleted."""
        return None


class KeepNew(RowMerger):
    """No merge engine: the new row replaces the old one."""

    def merge(self, old: bytes | None, new: bytes) -> bytes:  # noqa: ARG002 - the old row is replaced
        """Return the new row."""
        return new


class KeepFirst(RowMerger):
    """`first_row`: the first row stays."""

    def merge(self, old: bytes | None, new: bytes) -> bytes:
        """Return the old row where there is one."""
        return new if old is None else old


class KeepNewest(RowMerger):
    """`versioned`: the row with the greater version stays; of equal versions the later row."""

    def __init__(self, rows: StoredRowCodec, version_column: str) -> None:
        self._rows = rows
        self._position = rows.latest.column_names.index(version_column)
        self._null = _least_version(rows.latest.column_types[self._position])

    def merge(self, old: bytes | None, new: bytes) -> bytes:
        """Return the row with the greater version; NULL equals the smallest value."""
        if old is None:
            return new
        return old if self._version(new) < self._version(old) else new

    def _version(self, value: bytes) -> int:
        version: int | None = self._rows.read(value)[self._position]
        return self._null if version is None else version


class PartialUpdate(RowMerger):
    """No merge engine, some columns: the other columns keep their values."""

    def __init__(self, rows: StoredRowCodec, target_columns: Sequence[int]) -> None:
        self._rows = rows
        self._targets = frozenset(target_columns)
        self._key = frozenset(_key_positions(rows.latest))
        check_target_columns(rows.latest, target_columns)

    def merge(self, old: bytes | None, new: bytes) -> bytes:
        """Return the old row with the target columns of the new one."""
        if old is not None and self._targets == self._key:
            return old
        given = self._rows.read(new)
        had = [None] * len(given) if old is None else self._rows.read(old)
        return self._rows.write(
            [given[each] if each in self._targets else value for each, value in enumerate(had)]
        )

    def delete(self, old: bytes) -> bytes | None:
        """Return the old row with its target columns set to NULL; None where no value is left."""
        had = self._rows.read(old)
        if all(value is None for each, value in enumerate(had) if each not in self._targets):
            return None
        cleared = self._targets - self._key
        return self._rows.write(
            [None if each in cleared else value for each, value in enumerate(had)]
        )


class Aggregate(RowMerger):
    """`aggregation`: each column combines its old value with the new one."""

    def __init__(self, rows: StoredRowCodec, target_columns: Sequence[int] | None) -> None:
        schema = rows.latest
        self._rows = rows
        self._partial: PartialUpdate | None = None
        targets: set[int] = set(range(len(schema.columns)))
        if target_columns is not None:
            self._partial = PartialUpdate(rows, target_columns)
            targets = set(target_columns)
        key = set(_key_positions(schema))
        self._aggregators = [
            (position, aggregator(column.aggregation or _AGGREGATED_BY_DEFAULT, column.data_type))
            for position, column in enumerate(schema.columns)
            if position in targets and position not in key
        ]

    def merge(self, old: bytes | None, new: bytes) -> bytes:
        """Combine old and new column by column; the first row of a key is stored as it is."""
        if old is None:
            return new
        had, given = self._rows.read(old), self._rows.read(new)
        for position, aggregate in self._aggregators:
            had[position] = aggregate(had[position], given[position])
        return self._rows.write(had)

    def delete(self, old: bytes) -> bytes | None:
        """Return None; with target columns, the old row without them."""
        return None if self._partial is None else self._partial.delete(old)


def _least_version(data_type: DataType) -> int:
    """Return the version that Java uses for NULL: the least value of the type's representation."""
    match data_type:
        case IntType():
            return -(2**31)
        case BigIntType():
            return -(2**63)
        case TimestampType() | TimestampLtzType():
            return -(2**63) * max(UNITS_PER_SECOND[data_type.unit] // 1000, 1)
        case _:
            raise AssertionError(f"no version can be a {data_type}")


def row_merger(
    rows: StoredRowCodec,
    options: TableOptions,
    target_columns: Sequence[int] | None,
    *,
    overwrite: bool,
) -> RowMerger:
    """Return the merger for a batch.

    Args:
        rows: The codec of the table's rows.
        options: The table's options, which name the merge engine.
        target_columns: The columns that the batch writes; None for all.
        overwrite: Whether the merge engine is bypassed, as undo recovery does.

    Raises:
        FlussError: INVALID_TARGET_COLUMN: the key is not among the columns, or others are NOT
            NULL. UNKNOWN_SERVER_ERROR: the merge engine accepts whole rows only.
    """
    engine = None if overwrite else options.merge_engine
    if target_columns is not None and engine in {MergeEngine.FIRST_ROW, MergeEngine.VERSIONED}:
        # Java has no code of its own for it either.
        raise error_from_code(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Partial update is not supported for the {engine.value.lower()} merge engine.",
            hint="write whole rows",
        )
    match engine:
        case None:
            return KeepNew() if target_columns is None else PartialUpdate(rows, target_columns)
        case MergeEngine.FIRST_ROW:
            return KeepFirst()
        case MergeEngine.VERSIONED:
            return KeepNewest(rows, str(options.version_column))
        case MergeEngine.AGGREGATION:
            return Aggregate(rows, target_columns)


def delete_behavior(options: TableOptions, *, overwrite: bool) -> DeleteBehavior:
    """Return what a delete does; an overwrite may always delete."""
    return DeleteBehavior.ALLOW if overwrite else options.effective_delete_behavior


def check_target_columns(schema: Schema, target_columns: Sequence[int]) -> None:
    """Refuse target columns without the key, and partial updates of tables with NOT NULL columns.

    Raises:
        FlussError: INVALID_TARGET_COLUMN; the message names the columns.
    """
    names = schema.column_names
    beyond = [each for each in target_columns if not 0 <= each < len(names)]
    if beyond:
        raise _invalid_target(
            f"The target columns {beyond} lie outside of the table's {len(names)} columns."
        )
    key = _key_positions(schema)
    missing = [names[each] for each in key if each not in target_columns]
    if missing:
        raise _invalid_target(
            f"The target columns {[names[each] for each in target_columns]} "
            f"must contain the primary key columns {list(schema.primary_keys)}."
        )
    for position, column in enumerate(schema.columns):
        if position not in key and not column.data_type.nullable:
            raise _invalid_target(
                "Partial update requires all columns except the primary key to be nullable, "
                f"but the column {column.name} is NOT NULL.",
                column=column.name,
            )


def _invalid_target(message: str, **facts: Any) -> FlussError:
    return error_from_code(ErrorCode.INVALID_TARGET_COLUMN, message, **facts)


def _key_positions(schema: Schema) -> list[int]:
    names = schema.column_names
    return [names.index(each) for each in schema.primary_keys]
