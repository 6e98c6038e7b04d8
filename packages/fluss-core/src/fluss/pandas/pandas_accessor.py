"""`df.fluss`: writes the rows of a DataFrame to a table of Fluss.

All rows are checked before the first is written. An index that has a name is written like a column,
so that a frame read with `index_col` can be written back; an index without a name is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fluss.hints import Door
from fluss.session import Table
from fluss.session.frame_verbs import FrameVerbs
from fluss.write.pandas_frames import index_names, with_index


@pd.api.extensions.register_dataframe_accessor("fluss")
class FlussAccessor(FrameVerbs, door=Door.PANDAS):
    """Writes a DataFrame; `df.fluss` makes it.

    In columns with dtypes of numpy and with nullable dtypes, NaN is NULL, as everywhere in pandas;
    in columns with Arrow's dtypes, NaN is NaN.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def _rows(self, table: Table) -> Any:
        frame = self._frame
        names = index_names(frame)
        return _with_nested(frame, with_index(frame, names), table.schema)

    def _rows_for_new_table(self) -> pd.DataFrame:
        return self._frame


def _with_nested(given: pd.DataFrame, frame: pd.DataFrame, schema: pa.Schema) -> Any:
    """Return the given frame, or its columns and index if some of them hold lists and dicts.

    Those may be maps or rows, which only the table's schema tells; Arrow would guess from the
    values.
    """
    nested = {
        name
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if pd.api.types.is_object_dtype(dtype)
        and name in schema.names
        and pa.types.is_nested(schema.field(name).type)
    }
    if not nested:
        return given
    return {
        str(name): [_plain(value) for value in values.where(values.notna(), None)]
        if name in nested
        else values
        for name, values in frame.items()
    }


def _plain(value: Any) -> Any:
    """Return a nested value with lists in place of numpy's arrays."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return (
            type(value)(map(_plain, value)) if isinstance(value, tuple) else [*map(_plain, value)]
        )
    return value.item() if isinstance(value, np.generic) else value
