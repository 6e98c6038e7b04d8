"""Rows of a class to columns of values, and batches of Arrow to rows of a class.

Both directions work column by column: a column of values is taken out of all rows, or converted,
by one loop, and rows are made by one more. `write.class_frames` makes Arrow of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from fluss.errors import FlussError, InvalidValueError, SchemaMismatchError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.types.data_type import DataType
from fluss.model.values.target import shown
from fluss.records.convert.to_python import python_values
from fluss.typed.class_fields import ClassKind, kind_of
from fluss.typed.field_types import RowClass, RowField, row_class_of
from fluss.typed.field_values import (
    FieldCodec,
    codec_of,
    constructor_of,
    is_positional,
    not_made,
    null_refused,
)

_NO_COLUMN: Final = (
    "`session.apply_tables` adds columns, fluss.ColumnName names one, and fluss.NotStored marks a "
    "field that has none."
)


class RowCodec:
    """Converts rows of one class; any thread may use it.

    Args:
        row: The class.
        types: The columns of the table.
        table: The table, for errors.

    Raises:
        SchemaMismatchError: A field has no column, or one of another type.
    """

    def __init__(self, row: RowClass, types: Mapping[str, DataType], table: str) -> None:
        self.row = row
        self._types = types
        for field in row.fields:
            if field.column not in types:
                raise _no_column(row, field, types, table)
        self.fields = {each.column: each for each in row.fields}
        self._codecs = {
            name: _codec(row, field, types[name], table) for name, field in self.fields.items()
        }

    # --- rows to columns ----------------------------------------------------------------------

    def check_rows(self, rows: Sequence[Any], first: int = 0) -> None:
        """Refuse what is no row of the class.

        Raises:
            InvalidValueError: There is something else, or a dict that the TypedDict does not allow.
        """
        check_rows(self.row, rows, first)

    def values(self, rows: Sequence[Any], column: str, first: int = 0) -> list[Any]:
        """Return what a column takes of the rows.

        Raises:
            InvalidValueError: A value does not fit its field; `row` and `column` locate it.
        """
        field = self.fields[column]
        if kind_of(self.row.cls) is ClassKind.TYPED_DICT:
            values = [each.get(field.name) for each in rows]
        else:
            values = list(map(attrgetter(field.name), rows))
        write = self._codecs[column].write
        return values if write is None else _each(write, values, column, first)

    def check_none(self, array: pa.Array, column: str, first: int) -> None:
        """Refuse a value None in a field that does not take it.

        Raises:
            InvalidValueError: There is one.
        """
        field = self.fields[column]
        if not array.null_count or field.type.takes_none or field.declared.may_be_missing:
            return
        place = f"{self.row.name}.{field.name}"
        row = first + array.is_null().to_pylist().index(True)
        raise null_refused(place, field.type.text, is_written=True).with_context(
            row=row, column=column
        )

    # --- columns to rows ----------------------------------------------------------------------

    def reader(self, columns: Sequence[str]) -> Callable[[pa.RecordBatch], list[Any]]:
        """Return a function that makes rows of batches with these columns, and maybe others.

        Raises:
            SchemaMismatchError: A field that is not read has no default.
        """
        fields = [each for name, each in self.fields.items() if name in columns]
        make = _maker(self.row, fields)

        def read(batch: pa.RecordBatch) -> list[Any]:
            made = [self._read(batch.column(each.column), each) for each in fields]
            return make(made)

        return read

    def _read(self, array: pa.Array, field: RowField) -> list[Any]:
        values = python_values(array, self._types[field.column])
        read = self._codecs[field.column].read
        if read is not None:
            values = _each(read, values, field.column, 0)
        if not array.null_count or field.type.takes_none or field.declared.may_be_missing:
            return values
        default = field.declared.default
        if default is None:
            place = f"{self.row.name}.{field.name}"
            row = array.is_null().to_pylist().index(True)
            raise null_refused(place, field.type.text).with_context(row=row, column=field.column)
        return [default() if each is None else each for each in values]


def row_codec_of(cls: type, types: Mapping[str, DataType], table: str) -> RowCodec:
    """Return the codec of a class and the columns of a table."""
    return RowCodec(row_class_of(cls), types, table)


def check_rows(row: RowClass, rows: Sequence[Any], first: int = 0) -> None:
    """Refuse what is no row of a class; see `RowCodec.check_rows`."""
    cls = row.cls
    if kind_of(cls) is ClassKind.TYPED_DICT:
        _check_dicts(row, rows, first)
        return
    kinds = set(map(type, rows)) - {cls}
    strange = tuple(each for each in kinds if not issubclass(each, cls))
    if strange:
        index = next(place for place, each in enumerate(rows) if type(each) in strange)
        raise _no_row(row, rows[index], first + index)


def _check_dicts(row: RowClass, rows: Sequence[Any], first: int) -> None:
    fields = (*row.fields, *row.others)
    known = frozenset(each.name for each in fields)
    required = frozenset(each.name for each in fields if not each.declared.may_be_missing)
    for index, item in enumerate(rows):
        if not isinstance(item, Mapping):
            raise _no_row(row, item, first + index)
        keys = item.keys()
        if not keys <= known:
            name = next(name for name in keys if name not in known)
            hint = did_you_mean(str(name), known)
            raise _no_row(row, item, first + index, f"it has no field {name!r}", hint)
        if not required <= keys:
            name = next(name for name in sorted(required) if name not in keys)
            raise _no_row(row, item, first + index, f"its field {name!r} is missing")


def _no_row(
    row: RowClass, given: Any, index: int, why: str = "", hint: str | None = None
) -> InvalidValueError:
    reason = f": {why}" if why else ""
    return InvalidValueError(
        f"Row {index} is no {row.name}, but {shown(given)} ({type(given).__name__}){reason}.",
        hint=hint or f"Give rows of {row.name}.",
        row=index,
    )


def _no_column(
    row: RowClass, field: RowField, types: Mapping[str, DataType], table: str
) -> SchemaMismatchError:
    meant = did_you_mean(field.column, types)
    return SchemaMismatchError(
        f"The field {row.name}.{field.name} has no column in {table}, which has "
        f"{', '.join(types)}.",
        hint=(
            meant,
            _NO_COLUMN,
        ),
        column=field.column,
    )


def _codec(row: RowClass, field: RowField, data_type: DataType, table: str) -> FieldCodec:
    try:
        return codec_of(field.type, data_type, f"{row.name}.{field.name}")
    except SchemaMismatchError as error:
        raise error.with_context(column=field.column, table=table) from None


def _each(
    convert: Callable[[Any], Any], values: Sequence[Any], column: str, first: int
) -> list[Any]:
    made: list[Any] = []
    try:
        for value in values:
            made.append(None if value is None else convert(value))  # noqa: PERF401 - its length is the row that failed
    except InvalidValueError as error:
        raise error.with_context(row=first + len(made), column=column) from None
    return made


def _maker(
    row: RowClass, fields: Sequence[RowField]
) -> Callable[[Sequence[Sequence[Any]]], list[Any]]:
    """Return a function that makes rows of columns of values."""
    make_one = constructor_of(row, fields)
    cls: Any = row.cls
    kind = kind_of(cls)
    is_whole = is_positional(row, fields) and kind is not ClassKind.PYDANTIC

    def make(columns: Sequence[Sequence[Any]]) -> list[Any]:
        made: list[Any] = []
        try:
            # `extend` keeps the rows before the one that fails.
            made.extend(
                map(cls, *columns) if is_whole else map(make_one, zip(*columns, strict=True))
            )
        except (FlussError, MemoryError):
            raise
        except Exception as error:
            raise not_made(row, error).with_context(row=len(made)) from error
        return made

    return make


@contextmanager
def naming_class(row: RowClass, *, first: int = 0) -> Iterator[None]:
    """Add the class and the field to errors that leave the block.

    Args:
        row: The class.
        first: How many rows come before those that the block counts.
    """
    try:
        yield
    except FlussError as error:
        column, index = str(error.facts.get("column", "")), error.facts.get("row")
        field = _field_at(row, column)
        place = row.name
        if field is not None:
            place = f"{row.name}.{field.name}{column[len(field.column) :]}"
        if place not in error.message and (field is not None or index is not None):
            error.add_context(during=place)
        if first and isinstance(index, int):
            error.add_context(row=index + first)
        error.add_context(row_class=row.name, field=None if field is None else field.name)
        raise


def _field_at(row: RowClass, column: str) -> RowField | None:
    """Return the field of a column, or of a part of one, as `address.street` and `tags[]` are."""
    for field in row.fields:
        if column == field.column:
            return field
    parts = (
        each for each in row.fields if column.startswith((f"{each.column}.", f"{each.column}["))
    )
    return next(parts, None)
