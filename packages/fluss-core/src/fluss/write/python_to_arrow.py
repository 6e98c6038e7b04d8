"""Rows and columns of Python values as frames.

Where the table is known, each value is converted to its column's type by the rules of
`model.values.conversion`. So a dict means the same as to a row writer: missing values are NULL, and
errors name row and column. Where the table is to be made of the rows, Arrow infers the types. Arrow
imports pandas to infer (see `records.arrow.numpy_arrays`), so it is not asked about numbers of
numpy and values of one plain class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MappingView, Sequence
from datetime import date, datetime
from functools import cached_property
from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import DataType
from fluss.model.types.polars_types import is_from_polars
from fluss.model.types.type_to_arrow import to_wire_arrow_type
from fluss.model.values.conversion import to_physical
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.convert.from_values import array_from_values
from fluss.write.caller_rows import row_text
from fluss.write.object_columns import (
    check_nested,
    check_one_kind,
    check_read,
    holds_objects,
    may_be_mixed,
)
from fluss.write.pandas_frames import ARROW_REFUSALS, check_dtype, check_kinds
from fluss.write.polars_frames import exportable_series

ROWS_PER_BATCH = 65_536
# The types that Arrow infers for values of one class.
_PLAIN: Final[Mapping[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us"),
}
_INT64_BITS: Final = 63


class RowFrame:
    """A list of rows: dicts by column name, or values by position."""

    is_whole = True

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that occur in any row, with inferred types.

        Raises:
            InvalidValueError: There are no rows, or they do not name their columns.
        """
        if not self._rows:
            return pa.schema([])
        for row in self._rows:
            if not isinstance(row, Mapping):
                raise InvalidValueError(
                    f"A row without names cannot be used to infer columns: {row_text(row)}.",
                    hint="Give dicts, or a frame.",
                )
        return pa.schema(
            [(name, _inferred_type(self._values(self._rows, name), name)) for name in self.names]
        )

    def batches(self, types: Mapping[str, DataType]) -> Iterator[pa.RecordBatch]:
        """The rows with all these columns; one that no row has is NULL.

        Raises:
            InvalidValueError: A row is malformed, or a value does not fit; `row` and `column`
                locate it.
        """
        for start in range(0, len(self._rows), ROWS_PER_BATCH):
            rows = self._rows[start : start + ROWS_PER_BATCH]
            if all(isinstance(each, Mapping) for each in rows):
                extra = [each for each in self.names if each not in types]
                columns = {name: self._values(rows, name) for name in [*types, *extra]}
            else:
                columns = _by_position(rows, types, start)
            yield _batch(columns, types, start)

    @cached_property
    def names(self) -> list[str]:
        """The columns that occur in any row, in order of first occurrence."""
        named: dict[str, None] = {}
        for row in self._rows:
            if isinstance(row, Mapping) and not row.keys() <= named.keys():
                named.update(dict.fromkeys(row))
        return _checked_names(list(named))

    @staticmethod
    def _values(rows: Sequence[Any], name: str) -> list[Any]:
        return [row.get(name) for row in rows]


class ColumnFrame:
    """A dict of columns: sequences, numpy or Arrow arrays, or series of Polars or pandas."""

    is_whole = True

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = {name: listed(values) for name, values in columns.items()}
        self.names = _checked_names(list(columns))
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidValueError(
                "The columns have different lengths: "
                + ", ".join(f"{name!r} {length}" for name, length in lengths.items())
                + "."
            )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, with inferred types."""
        return pa.schema(
            [(name, _inferred_type(values, name)) for name, values in self._columns.items()]
        )

    def batches(self, types: Mapping[str, DataType]) -> Iterator[pa.RecordBatch]:
        """All rows as one batch.

        Raises:
            InvalidValueError: A value does not fit; `row` and `column` locate it.
        """
        yield _batch(self._columns, types, 0)


def _checked_names(names: list[str]) -> list[str]:
    """Refuse names that are no Unicode, such as texts of JSON may be."""
    try:
        "".join(map(str, names)).encode()
    except UnicodeEncodeError as error:
        column = next(
            each for each in map(str, names) if each.encode(errors="ignore").decode() != each
        )
        raise InvalidValueError(
            f"The name of the column {column!r} has half a surrogate pair.",
            hint="decode it with errors='replace' where it comes from",
            column=column,
        ) from error
    return names


def is_one_row(data: Mapping[str, Any]) -> bool:
    """Whether a dict is one row, not columns: not all of its values are sequences or arrays."""
    return any(not _is_column(each) for each in data.values())


def is_sequence(values: Any) -> bool:
    """Whether a value of Python holds others in an order: a list, a range, the keys of a dict."""
    if isinstance(values, str | bytes | bytearray | memoryview):
        return False
    return isinstance(values, Sequence | MappingView)


def listed(values: Any) -> Any:
    """A sequence of any kind as a list or an array; other values are returned as they are."""
    if isinstance(values, list) or not is_sequence(values):
        return values
    if isinstance(values, range) and all(_is_int64(each) for each in _ends_of(values)):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)
    return values if isinstance(values, tuple) else list(values)


def _ends_of(values: range) -> tuple[int, int, int]:
    return values.start, values.stop, values.step


def _is_int64(number: int) -> bool:
    return number.bit_length() <= _INT64_BITS


def _is_column(values: Any) -> bool:
    if is_sequence(values):
        return True
    return hasattr(values, "__len__") and (
        hasattr(values, "__array__") or hasattr(values, "__arrow_c_array__")
    )


def _batch(
    columns: Mapping[str, Any], types: Mapping[str, DataType], first_row: int
) -> pa.RecordBatch:
    arrays = []
    for name, values in columns.items():
        data_type = types.get(name)
        if data_type is not None and isinstance(values, list | tuple):
            arrays.append(array_of_python(values, name, data_type, first_row))
        else:
            arrays.append(_inferred(values, name))
    return pa.RecordBatch.from_arrays(arrays, names=[str(each) for each in columns])


def array_of_python(
    values: Sequence[Any], name: str, data_type: DataType, first_row: int
) -> pa.Array:
    """Make an array of values as users give them.

    NOT NULL is checked for all frames in `records.convert.cast`.

    Raises:
        InvalidValueError: A value does not fit; `row` and `column` locate it.
    """
    convert = to_physical(data_type.as_nullable(), name)
    made: list[Any] = []
    try:
        for value in values:
            made.append(convert(value))  # noqa: PERF401 - its length is the row that failed
    except InvalidValueError as error:
        raise error.with_context(row=first_row + len(made)) from None
    return array_from_values(made, data_type, to_wire_arrow_type(data_type))


def _inferred_type(values: Any, name: str) -> pa.DataType:
    if isinstance(values, list | tuple):
        kinds = set(map(type, values)) - {NoneType}
        plain = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
        if plain is not None and not _is_beyond(values, plain):
            return plain
    return _inferred(values, name).type


def _is_beyond(values: Sequence[Any], plain: pa.DataType) -> bool:
    """Whether the plain type is too small for a value: over 64 bits, or a time with a zone."""
    if pa.types.is_integer(plain):
        return any(each is not None and each.bit_length() > _INT64_BITS for each in values)
    if pa.types.is_timestamp(plain):
        return any(each is not None and each.tzinfo is not None for each in values)
    return False


def _inferred(values: Any, name: str) -> pa.Array:
    try:
        if _is_numbers(values):
            return from_numpy(values)
        if hasattr(values, "iloc"):
            check_dtype(name, values.dtype)
        if is_from_polars(values):
            values = exportable_series(values, name)
        array = _read_objects(values, name)
    except ARROW_REFUSALS as error:
        check_kinds(name, values, error)
        raise InvalidValueError(
            f"The values of the column {name!r} cannot be read as Arrow: {error}",
            hint="Give an Arrow array with an explicit type.",
            column=name,
        ) from error
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _read_objects(values: Any, name: str) -> pa.Array:
    is_from_pandas = hasattr(values, "iloc")
    if isinstance(values, list | tuple):
        check_nested(name, values)
    if not holds_objects(getattr(values, "dtype", None)):
        return pa.array(values, from_pandas=is_from_pandas or None)
    objects = np.asarray(values)
    if may_be_mixed(objects):
        check_one_kind(name, objects)
        check_nested(name, objects)
    array = pa.array(values, from_pandas=is_from_pandas or None)
    check_read(name, objects, array.type)
    return array


def _is_numbers(values: Any) -> bool:
    """Whether these are plain numbers or booleans of numpy; masked arrays are another class."""
    if type(values) is not np.ndarray or values.ndim != 1:
        return False
    return values.dtype.isnative and values.dtype.kind in "biuf"


def _by_position(
    rows: Sequence[Any], types: Mapping[str, DataType], first_row: int
) -> dict[str, list[Any]]:
    names = list(types)
    for index, row in enumerate(rows):
        if not isinstance(row, list | tuple):
            raise InvalidValueError(
                f"Row {first_row + index} is {row_text(row)}, not a dict, a list or a tuple like "
                "the others.",
                hint=f"The columns are {', '.join(names)}.",
                row=first_row + index,
            )
        if len(row) != len(names):
            raise InvalidValueError(
                f"Row {first_row + index} has {len(row)} values for {len(names)} columns.",
                hint=f"The columns are {', '.join(names)}, in this order.",
                row=first_row + index,
            )
    return {name: [row[position] for row in rows] for position, name in enumerate(names)}
