"""Types of Polars that Arrow does not have, and their substitutes.

Polars exports an Object column as the addresses of its objects, so it is refused, and integers of
128 bits as a type of its own, so they become decimals. Polars is imported only for its own types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluss.errors import UnsupportedTypeError
from fluss.model.types.data_type import PRECISION_MAX_DECIMAL

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def is_from_polars(given: Any) -> bool:
    """Return whether this is a frame, series, schema or type of Polars."""
    return type(given).__module__.partition(".")[0] == "polars"


def exportable_schema(schema: pl.Schema) -> pl.Schema:
    """Return the same columns with types that Arrow has.

    Raises:
        UnsupportedTypeError: A column holds Python objects.
    """
    import polars as pl

    return pl.Schema({name: _exportable(dtype, name) for name, dtype in schema.items()})


def arrow_type_of(dtype: Any, column: str) -> pa.DataType:
    """Return the Arrow type of a type of Polars, or of a class of them.

    Raises:
        UnsupportedTypeError: It holds Python objects.
    """
    import polars as pl
    import pyarrow as pa

    exported = pl.Series(column, [], dtype=_exportable(dtype, column)).to_frame()
    return pa.RecordBatchReader.from_stream(exported).schema.field(0).type


def _exportable(dtype: Any, column: str) -> Any:
    """Return the type of Polars that replaces this one in Arrow."""
    import polars as pl

    if dtype == pl.Object:
        raise UnsupportedTypeError(
            f"The column {column!r} is of Polars' type Object: it holds Python objects, of which "
            "Polars gives nothing but the addresses.",
            hint="Make values of another type of them, for example with "
            f"pl.Series({column!r}, [str(each) for each in frame[{column!r}]]).",
            column=column,
        )
    if dtype in (pl.Int128, pl.UInt128):
        return pl.Decimal(PRECISION_MAX_DECIMAL, 0)
    if isinstance(dtype, pl.List):
        return pl.List(_exportable(dtype.inner, column))
    if isinstance(dtype, pl.Array):
        return pl.Array(_exportable(dtype.inner, column), dtype.size)
    if isinstance(dtype, pl.Struct):
        return pl.Struct(
            [pl.Field(each.name, _exportable(each.dtype, column)) for each in dtype.fields]
        )
    return dtype
