"""Rows of a class (`fluss.typed`) as frames, converted column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa

from fluss.model.types.data_type import DataType
from fluss.model.types.type_to_arrow import to_arrow_type
from fluss.typed.class_fields import ClassKind, kind_of
from fluss.typed.class_schema import schema_of
from fluss.typed.field_types import RowClass, row_class_of
from fluss.typed.markers import AutoIncrement
from fluss.typed.row_codec import RowCodec, check_rows, naming_class
from fluss.write.python_to_arrow import ROWS_PER_BATCH, array_of_python

_BY_NAME = (ClassKind.DATACLASS, ClassKind.ATTRS, ClassKind.PYDANTIC)


class ClassFrame:
    """Rows of one class.

    Args:
        row: The class.
        rows: The rows; an iterator is read as rows are written.
        columns: The columns that are written; None for all but those that servers count up.

    Raises:
        InvalidValueError: There is something else among the rows; `row` says where.
    """

    def __init__(
        self, row: RowClass, rows: Iterable[Any], columns: Sequence[str] | None = None
    ) -> None:
        self.is_whole = isinstance(rows, Sequence)
        if isinstance(rows, Sequence):
            check_rows(row, rows)
        self.row_class = row
        self._rows = rows
        counted = [each.column for each in row.fields if each.type.has(AutoIncrement)]
        named = [each.column for each in row.fields if each.column not in counted]
        self.names: list[str] = named if columns is None else list(columns)

    @cached_property
    def _own_types(self) -> dict[str, DataType]:
        columns = schema_of(self.row_class.cls).columns
        return {each.name: each.data_type for each in columns if each.name in self.names}

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that the class describes."""
        return pa.schema(
            [
                pa.field(name, to_arrow_type(data_type), data_type.nullable)
                for name, data_type in self._own_types.items()
            ]
        )

    def batches(self, types: Mapping[str, DataType]) -> Iterator[pa.RecordBatch]:
        """The rows with all these columns; one that the class does not have is NULL.

        Columns that the table does not have come last, for the check of the frame.

        Raises:
            SchemaMismatchError: A field has a column of another type.
            InvalidValueError: A value does not fit; `row` and `column` locate it.
        """
        with naming_class(self.row_class):
            extra = [name for name in self.names if name not in types]
            known = {**types, **({name: self._own_types[name] for name in extra} if extra else {})}
            codec = RowCodec(self.row_class.only(self.names), known, "the table")
            for start, rows in self._chunks():
                arrays = [self._array(codec, rows, name, known, start) for name in known]
                yield pa.RecordBatch.from_arrays(arrays, names=list(known))

    def _chunks(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """The rows, and which of all rows the first of them is."""
        given, start = self._rows, 0
        if isinstance(given, Sequence):
            for start in range(0, len(given), ROWS_PER_BATCH):
                yield start, given[start : start + ROWS_PER_BATCH]
            return
        remaining = iter(given)
        while rows := list(islice(remaining, ROWS_PER_BATCH)):
            check_rows(self.row_class, rows, start)
            yield start, rows
            start += len(rows)

    def _array(
        self,
        codec: RowCodec,
        rows: Sequence[Any],
        name: str,
        types: Mapping[str, DataType],
        first: int,
    ) -> pa.Array:
        if name not in codec.fields:
            return array_of_python([None] * len(rows), name, types[name], first)
        array = array_of_python(codec.values(rows, name, first), name, types[name], first)
        codec.check_none(array, name, first)
        return array


def class_frame_of(rows: Sequence[Any]) -> ClassFrame | None:
    """Return the frame of rows of a class; None where the first is none.

    Dicts and tuples are taken as such, because nothing in them names a class.
    """
    cls = type(rows[0]) if len(rows) else None
    if cls is None or kind_of(cls) not in _BY_NAME:
        return None
    return ClassFrame(row_class_of(cls), rows)
