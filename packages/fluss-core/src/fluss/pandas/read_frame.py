"""`pd.read_fluss`: reads a scan as a DataFrame, or as an iterator of DataFrames.

The scan is pinned when the function is called: all chunks together are the rows of that moment. An
iterator that is not read to its end stops reading when it is closed or garbage-collected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal, Self, Unpack, get_args, overload

import pandas as pd
import pyarrow as pa

from fluss.doors import at_door
from fluss.errors import ClosedError, InvalidValueError, SchemaMismatchError
from fluss.hints import Door
from fluss.model.did_you_mean import did_you_mean
from fluss.scan import (
    Progress,
    ProgressDisplay,
    Scan,
    ScanArguments,
    TableName,
    open_scan,
    shows_options,
)

IndexColumns = str | Sequence[str] | None


@overload
def read_fluss(
    table: TableName | Scan,
    *,
    config: Any = ...,
    dtype_backend: DtypeBackend = ...,
    index_col: IndexColumns = ...,
    chunksize: None = ...,
    progress: Progress = ...,
    **options: Unpack[ScanArguments],
) -> pd.DataFrame: ...


@overload
def read_fluss(
    table: TableName | Scan,
    *,
    config: Any = ...,
    dtype_backend: DtypeBackend = ...,
    index_col: IndexColumns = ...,
    chunksize: int,
    progress: Progress = ...,
    **options: Unpack[ScanArguments],
) -> Chunks: ...


@at_door(Door.PANDAS)
@shows_options()
def read_fluss(
    table: TableName | Scan,
    *,
    config: Any = None,
    dtype_backend: DtypeBackend = "pyarrow",
    index_col: IndexColumns = None,
    chunksize: int | None = None,
    progress: Progress = None,
    **options: Unpack[ScanArguments],
) -> pd.DataFrame | Chunks:
    """Read a Fluss table: a log, or the rows of a primary-key table as they are now.

    Args:
        table: `"database.table"`, `"database.table$changelog"` or `"database.table$binlog"`, a
            `fluss://` URL, a `Table`, or a `Scan`.
        config: How to reach the cluster; the URL, the active session, the environment or the
            profile otherwise.
        dtype_backend: `"pyarrow"` keeps every value and copies none; `"numpy_nullable"` and
            `"numpy"` are for libraries that do not know Arrow's dtypes.
        index_col: The columns that become the index.
        chunksize: The rows of each DataFrame of an iterator.
        progress: Whether a bar is shown during a long read; by default in terminals and notebooks.
            Or a function of the rows read and their upper bound.
        **options: The options of the scan.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
        ConfigError: An option is unknown; the hint names the nearest.
        InvalidValueError: A value does not fit its option, or two contradict each other.

    Example:
        >>> pd.read_fluss("sales.orders", columns=["id"], tail=5)  # doctest: +SKIP
    """
    check_backend(dtype_backend)
    _check_chunksize(chunksize)
    scan = open_scan(table, config=config, **options)
    index = _index_columns(index_col, scan)
    if chunksize is not None:
        return Chunks(
            scan, chunksize=chunksize, backend=dtype_backend, index=index, progress=progress
        )
    rows = scan.to_arrow(progress=progress)
    return _indexed(to_frame(rows, dtype_backend), index)


@at_door(Door.PANDAS)
class Chunks:
    """An iterator of DataFrames of one size, but for the last; `read_fluss(chunksize=…)` makes it.

    For one thread at a time. Use it with `with`, or read it to its end.

    Args:
        scan: The scan to read.
        chunksize: How many rows a DataFrame has.
        backend: The dtype backend.
        index: The columns that become the index.
        progress: See `read_fluss`.
    """

    def __init__(
        self,
        scan: Scan,
        *,
        chunksize: int,
        backend: DtypeBackend,
        index: list[str],
        progress: Progress,
    ) -> None:
        self._scan = scan
        self._display = ProgressDisplay(scan.name, scan.stats.amount, progress)
        self._frames = self._read(chunksize, backend, index)
        self._closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pd.DataFrame:
        if self._closed:
            raise ClosedError("The chunks have been closed.", hint="call read_fluss again")
        return next(self._frames)

    def close(self) -> None:
        """Stop reading. Idempotent."""
        self._closed = True
        self._frames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(
        self, chunksize: int, backend: DtypeBackend, index: list[str]
    ) -> Generator[pd.DataFrame, None, None]:
        with self._display:
            for rows in _chunked(self._scan.read(), chunksize):
                yield _indexed(to_frame(rows, backend), index)


def _chunked(reader: pa.RecordBatchReader, rows_max: int) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        waiting.append(batch)
        rows += batch.num_rows
        if rows < rows_max:
            continue
        table = pa.Table.from_batches(waiting)
        whole = rows - rows % rows_max
        for start in range(0, whole, rows_max):
            yield table.slice(start, rows_max)
        waiting, rows = table.slice(whole).to_batches(), rows - whole
    if rows:
        yield pa.Table.from_batches(waiting)


def _check_chunksize(chunksize: object) -> None:
    if chunksize is None:
        return
    if isinstance(chunksize, bool) or not isinstance(chunksize, int) or chunksize < 1:
        raise InvalidValueError(
            f"chunksize={chunksize!r} is not a positive number of rows.", option="chunksize"
        )


def _index_columns(index_col: IndexColumns, scan: Scan) -> list[str]:
    if index_col is None:
        return []
    given: Any = index_col
    names = [given] if isinstance(given, str) or not isinstance(given, Sequence) else list(given)
    known = scan.schema.names
    for name in names:
        if name not in known:
            nearest = did_you_mean(str(name), known)
            raise SchemaMismatchError(
                f"index_col={name!r} is not a column of the scan.",
                hint=nearest or f"its columns are {', '.join(known)}",
                column=name,
            )
    return names


def _indexed(frame: pd.DataFrame, index: list[str]) -> pd.DataFrame:
    return frame.set_index(index) if index else frame


DtypeBackend = Literal["pyarrow", "numpy_nullable", "numpy"]

_NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.float32(): pd.Float32Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.string(): pd.StringDtype(),
}
_NANOSECONDS = pa.time64("ns")


def check_backend(name: str) -> None:
    """Refuse an unknown dtype backend.

    Raises:
        InvalidValueError: It is unknown; the hint names the nearest.
    """
    known = get_args(DtypeBackend)
    if name not in known:
        raise InvalidValueError(
            f"dtype_backend={name!r} is unknown.",
            hint=did_you_mean(str(name), known) or f"use one of {', '.join(known)}",
            option="dtype_backend",
        )


def to_frame(table: pa.Table, backend: DtypeBackend) -> pd.DataFrame:
    """Convert rows to a DataFrame with a plain index."""
    types = _MAPPERS[backend]
    # Integers and booleans with NULL become objects: as floats they could change their value.
    frame: pd.DataFrame = table.to_pandas(types_mapper=types, integer_object_nulls=True)
    return frame


def _nullable(arrow: pa.DataType) -> Any:
    return _NULLABLE.get(arrow) or _numpy(arrow)


def _numpy(arrow: pa.DataType) -> Any:
    return pd.ArrowDtype(arrow) if arrow == _NANOSECONDS else None


_MAPPERS: dict[str, Callable[[pa.DataType], Any]] = {
    "pyarrow": pd.ArrowDtype,
    "numpy_nullable": _nullable,
    "numpy": _numpy,
}
