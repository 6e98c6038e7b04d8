"""Casts the columns of Polars frames that have no Arrow type.

`model.types.polars_types` lists these types. All others are exported as Arrow without copying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import PRECISION_MAX_DECIMAL
from fluss.model.types.polars_types import exportable_schema

if TYPE_CHECKING:
    import polars as pl


def exportable(frame: pl.DataFrame, *, first_row: int = 0) -> pl.DataFrame:
    """The frame with Arrow types; the frame itself where it has them already.

    Args:
        frame: The frame.
        first_row: The number of its first row, for errors.

    Raises:
        UnsupportedTypeError: A column holds Python objects.
        InvalidValueError: An integer has more than 38 digits; `row` and `column` locate it.
    """
    target = exportable_schema(frame.schema)
    changed = [name for name, dtype in frame.schema.items() if target[name] != dtype]
    if not changed:
        return frame
    return frame.with_columns(
        _cast(frame.get_column(name), target[name], first_row) for name in changed
    )


def exportable_series(series: pl.Series, name: str) -> pl.Series:
    """The same for a single column."""
    return exportable(series.rename(name).to_frame()).get_column(name)


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
