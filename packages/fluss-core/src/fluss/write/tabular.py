"""Anything tabular as a stream of Arrow batches.

Arrow, Polars, pandas, datasets and everything that exports an Arrow stream is taken as it is,
lazily where it is lazy. `write.python_to_arrow` converts rows and columns of Python values. Nothing
is cast here: writers cast columns to the types of the table (`records.convert.cast`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import DataType
from fluss.model.types.polars_types import is_from_polars
from fluss.typed.class_fields import kind_of
from fluss.write import pandas_frames
from fluss.write.class_frames import ClassFrame, class_frame_of
from fluss.write.polars_frames import exportable
from fluss.write.python_to_arrow import (
    ColumnFrame,
    RowFrame,
    is_one_row,
    is_sequence,
    listed,
)

Tabular: TypeAlias = Any  # what `frame_of` takes; there is no common type

_TAKEN = (
    "Give a pyarrow Table, RecordBatch or RecordBatchReader, a DataFrame of Polars or pandas, "
    "a list of dicts or of rows of a class, a dict of columns, or anything with __arrow_c_stream__."
)
_ONE_KEY = (str, bytes, int, float, Decimal, date, time)
_FILE = "Read a file into a frame first, and give that."


class ArrowFrame:
    """Rows that are Arrow already."""

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        is_whole: bool,
        index: Sequence[str] = (),
    ) -> None:
        self.schema = schema
        self.index = tuple(index)  # the columns that are the index of a DataFrame
        self.names: list[str] = schema.names
        self.is_whole = is_whole
        self._batches = batches

    def batches(self, types: Mapping[str, DataType]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - they have types of their own
        return iter(self._batches)


# Rows with named columns (none where rows are given by position), the schema of these, and whether
# all rows are in memory, so that they can be checked before any is used. `batches` may be called
# only once where they are not; it converts Python values to the given types of the table's columns.
Frame: TypeAlias = ArrowFrame | RowFrame | ColumnFrame | ClassFrame


def frame_of(data: Tabular) -> Frame:
    """Make a frame of anything tabular; a frame is returned itself.

    A list of dicts is rows, and so is a list of objects of a class (`fluss.typed`); a dict of lists
    or arrays is columns, a dict of anything else is one row. Levels of a pandas index that have
    names are columns, others are left out; NaN of pandas is NULL, as everywhere in pandas.

    Raises:
        InvalidValueError: It is not tabular, or Arrow cannot read it.
    """
    if isinstance(data, ArrowFrame | RowFrame | ColumnFrame | ClassFrame):
        return data
    if isinstance(data, pa.RecordBatch):
        return ArrowFrame(data.schema, [data], is_whole=True)
    if isinstance(data, pa.Table):
        return _whole(data)
    if isinstance(data, pa.RecordBatchReader):
        return _stream(data)
    if _is_from(data, "pyarrow") and hasattr(data, "to_reader"):  # a dataset's scanner
        return _stream(data.to_reader())
    if _is_from(data, "pyarrow") and hasattr(data, "scanner"):
        return _stream(data.scanner().to_reader())
    if pandas_frames.is_from_pandas(data):
        index = pandas_frames.index_names(data)
        table = pandas_frames.arrow_of(pandas_frames.with_index(data, index))
        return ArrowFrame(table.schema, table.to_batches(), is_whole=True, index=index)
    if is_from_polars(data):
        return _of_polars(data)
    _refuse_one_column(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _stream(
            pandas_frames.read_arrow(data, lambda: pa.RecordBatchReader.from_stream(data))
        )
    if hasattr(data, "__arrow_c_array__"):
        batch = pandas_frames.read_arrow(data, lambda: pa.record_batch(data))
        return ArrowFrame(batch.schema, [batch], is_whole=True)
    return _of_python(data)


def _of_polars(data: Any) -> Frame:
    if hasattr(data, "collect"):
        data = data.collect()
    if hasattr(data, "to_frame"):
        if not data.name:
            raise _one_column(data, "series.to_frame('name')")
        data = data.to_frame()
    if not hasattr(data, "schema"):
        raise _not_tabular(data)
    data = exportable(data)
    reader = pandas_frames.read_arrow(data, lambda: pa.RecordBatchReader.from_stream(data))
    return _whole(reader.read_all())


def _of_python(data: Any) -> Frame:
    if isinstance(data, Mapping):
        return RowFrame([data]) if is_one_row(data) else ColumnFrame(data)
    if is_sequence(data):
        data = listed(data)
        if not len(data) or not isinstance(data[0], pa.RecordBatch | pa.Table):
            return class_frame_of(data) or RowFrame(data)
        return _of_batches(iter(data), is_whole=True)
    if isinstance(data, Iterator):
        return _of_batches(data, is_whole=False)
    raise _not_tabular(data)


def _not_tabular(data: Any) -> InvalidValueError:
    hint = _FILE if isinstance(data, str | os.PathLike) else _TAKEN
    return InvalidValueError(
        f"Rows and columns were expected, not {type(data).__name__}.", hint=hint
    )


def _refuse_one_column(data: Any) -> None:
    """Refuse a column without its name, and say how to make a frame of it."""
    if isinstance(data, pa.Array | pa.ChunkedArray) and not pa.types.is_struct(data.type):
        raise _one_column(data, "pa.table({'name': array})")
    if _is_series(data):
        if hasattr(data, "to_frame"):
            raise _one_column(data, f"{type(data).__name__.lower()}.to_frame(name='name')")
        if getattr(data.dtype, "names", None):
            raise _one_column(data, "{name: array[name] for name in array.dtype.names}")
        raise _one_column(data, "{'name': array}")


def _one_column(data: Any, frame: str) -> InvalidValueError:
    return InvalidValueError(
        f"Rows and columns were expected, not {type(data).__name__}.",
        hint=f"Make a frame of it, with the name of its column: {frame}",
    )


def _of_batches(batches: Iterator[Any], *, is_whole: bool) -> Frame:
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        what = "nothing" if first is None else f"a {type(first).__name__} first"
        raise InvalidValueError(
            f"An iterator of batches was expected; this one gave {what}.", hint=_TAKEN
        )
    flat = chain.from_iterable(map(_batches_of, chain([first], batches)))
    return ArrowFrame(first.schema, list(flat) if is_whole else flat, is_whole=is_whole)


def _batches_of(each: Any) -> list[pa.RecordBatch]:
    if isinstance(each, pa.Table):
        batches: list[pa.RecordBatch] = each.to_batches()
        return batches
    if not isinstance(each, pa.RecordBatch):
        raise InvalidValueError(f"A {type(each).__name__} came among the batches.", hint=_TAKEN)
    return [each]


def _whole(table: pa.Table) -> Frame:
    return ArrowFrame(table.schema, table.to_batches(), is_whole=True)


def _stream(reader: pa.RecordBatchReader) -> Frame:
    return ArrowFrame(reader.schema, reader, is_whole=False)


def _is_from(data: Any, package: str) -> bool:
    return type(data).__module__.partition(".")[0] == package


def frame_of_keys(data: Any, names: Sequence[str]) -> Frame:
    """Make a frame of keys; a key of one column may be given as values or an array."""
    if len(names) == 1:
        (name,) = names
        if isinstance(data, pa.Array | pa.ChunkedArray) or _is_series(data):
            return frame_of({name: data})
        if is_sequence(data) and len(data) and _is_value((data := listed(data))[0]):
            return frame_of({name: data})
        if isinstance(data, _ONE_KEY):
            raise InvalidValueError(
                f"Keys are a list or a frame, not one {type(data).__name__}.",
                hint=f"write [{data!r:.50}]",
            )
    return frame_of(data)


def _is_value(value: Any) -> bool:
    if isinstance(value, Mapping | list | tuple | pa.RecordBatch | pa.Table):
        return False
    return kind_of(type(value)) is None


def _is_series(data: Any) -> bool:
    shape = getattr(data, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 1 and hasattr(data, "__array__")
