"""Frames of Polars in types that Arrow has.

Polars hands two kinds of columns over as something else: an Object column as the addresses of its
objects, which are refused, and integers of 128 bits in a type of its own, which become decimals.
Everything else is exported as Arrow, lazily and without copying. Polars is imported only where a
frame of it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluss.errors import InvalidValueError, UnsupportedTypeError
from fluss.model.types import PRECISION_MAX_DECIMAL

if TYPE_CHECKING:
    import polars as pl


def is_from_polars(data: Any) -> bool:
    """Whether this is a frame or a series of Polars."""
    return type(data).__module__.partition(".")[0] == "polars"


def exportable_schema(schema: pl.Schema) -> pl.Schema:
    """The schema with which `exportable` gives a frame of this one.

    Raises:
        UnsupportedTypeError: A column holds Python objects.
    """
    import polars as pl

    return pl.Schema({name: _exportable(dtype, name) for name, dtype in schema.items()})


def exportable(frame: pl.DataFrame, *, first_row: int = 0) -> pl.DataFrame:
    """The frame with types that Arrow has; itself where it has them already.

    Args:
        frame: The frame.
        first_row: The number of its first row, for errors.

    Raises:
        UnsupportedTypeError: A column holds Python objects.
        InvalidValueError: An integer has more than 38 digits; `row` and `column` say where.
    """
    wanted = exportable_schema(frame.schema)
    changed = [name for name, dtype in frame.schema.items() if wanted[name] != dtype]
    if not changed:
        return frame
    return frame.with_columns(
        _cast(frame.get_column(name), wanted[name], first_row) for name in changed
    )


def exportable_series(series: pl.Series, name: str) -> pl.Series:
    """A column that stands alone; see `exportable`."""
    return exportable(series.rename(name).to_frame()).get_column(name)


def _exportable(dtype: Any, column: str) -> Any:
    """The type of Polars that stands for this one in Arrow."""
    import polars as pl

    if dtype == pl.Object:
        raise UnsupportedTypeError(
            f"The column {column!r} of the Polars frame is of type Object: it holds Python objects, "
            "of which Polars gives nothing but the addresses.",
            hint="Make values of a type of Polars of them, for example with "
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


def _cast(series: pl.Series, dtype: Any, first_row: int) -> pl.Series:
    import polars as pl

    try:
        return series.cast(dtype)
    except pl.exceptions.InvalidOperationError as error:
        low, high = 0, len(series)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                series.slice(low, middle - low).cast(dtype)
                low = middle
            except pl.exceptions.InvalidOperationError:
                high = middle
        raise InvalidValueError(
            f"The column {series.name!r} cannot take {series.slice(low, 1).to_list()[0]}: a whole "
            f"number has at most {PRECISION_MAX_DECIMAL} digits.",
            hint=f"Write it as text: pl.col({series.name!r}).cast(pl.String).",
            column=series.name,
        ).add_context(row=first_row + low) from error
