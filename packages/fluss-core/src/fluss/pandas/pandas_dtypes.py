"""Converts Arrow tables to DataFrames, with dtypes that change no value.

===============  ===============================  ============================================
dtype_backend    dtypes                           NULL
===============  ===============================  ============================================
pyarrow          Arrow's own, without a copy      NULL, and NaN is another value
numpy_nullable   Int64, Float64, boolean, …       `<NA>`; NaN of floats becomes `<NA>`, too
numpy            int64, float64, datetime64, …    NaN of floats, `None` of everything else
===============  ===============================  ============================================

Where numpy has no dtype for a column's values they are Python objects (decimals, dates, lists,
integers beside NULL); times of day in nanoseconds, for which Python has no object, stay Arrow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import pandas as pd
import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean

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
