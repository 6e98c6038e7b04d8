"""`df.fluss`: a DataFrame's rows written to a table of Fluss.

Columns are matched by name and cast where no value changes; everything is checked before any of it
is written. An index that has a name is written like a column, so that what was read with
`index_col` can be written back; one without a name is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from fluss.doors import at_door
from fluss.hints import Door
from fluss.session import Table, TableName, source_of
from fluss.write.pandas_frames import index_names, with_index
from fluss.write.write_report import WriteReport


@pd.api.extensions.register_dataframe_accessor("fluss")
@at_door(Door.PANDAS)
class FlussAccessor:
    """Writes a DataFrame; `df.fluss` makes it.

    In columns of numpy's and of nullable dtypes, NaN is NULL, as everywhere in pandas; in columns
    of Arrow's dtypes, NaN is NaN.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def append(self, table: TableName, *, config: Any = None) -> WriteReport:
        """Append the rows to a log table, and wait until the servers have them.

        Args:
            table: `"database.table"`, a `fluss://` URL, or a `Table`.
            config: How to reach the cluster; see `read_fluss`.

        Returns:
            How many rows there were, and the last offset of each bucket.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column.

        Example:
            >>> df.fluss.append("sales.orders")  # doctest: +SKIP
        """
        found = _table(table, config)
        return found.append(self._rows(found))

    def upsert(
        self,
        table: TableName,
        *,
        config: Any = None,
        merge_mode: Literal["default", "overwrite"] | None = None,
    ) -> WriteReport:
        """Insert the rows, or replace those with the same keys; see `append`.

        A frame with a column `_change_type` is applied as a changelog.

        Args:
            table: See `append`.
            config: See `append`.
            merge_mode: `overwrite` to put values in the place of aggregated ones.
        """
        found = _table(table, config)
        return found.upsert(self._rows(found), merge_mode=merge_mode)

    def delete(self, table: TableName, *, config: Any = None) -> WriteReport:
        """Delete the rows of these keys; columns beside the key are not looked at.

        Args:
            table: See `append`.
            config: See `append`.
        """
        found = _table(table, config)
        return found.delete(self._rows(found))

    def update(
        self, table: TableName, *, columns: Sequence[str] | None = None, config: Any = None
    ) -> WriteReport:
        """Write some columns of rows by key; the others keep their values.

        Args:
            table: See `append`.
            columns: Which columns are written; those of the frame by default.
            config: See `append`.
        """
        found = _table(table, config)
        return found.update(self._rows(found), columns=columns)

    def _rows(self, table: Table) -> Any:
        frame = self._frame
        names = index_names(frame)
        return _with_nested(frame, with_index(frame, names), table.schema)


def _table(table: TableName, config: Any) -> Table:
    return source_of(table, config=config).open()


def _with_nested(given: pd.DataFrame, frame: pd.DataFrame, schema: pa.Schema) -> Any:
    """The frame that was given; as columns of it with its index, where some hold lists and dicts.

    Those may be maps or rows, which only the table can tell: Arrow would take them for what they
    look like.
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
        str(name): [_plain(each) for each in values.where(values.notna(), None)]
        if name in nested
        else values
        for name, values in frame.items()
    }


def _plain(value: Any) -> Any:
    """A nested value without the arrays that numpy's dtypes hold in place of lists."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return (
            type(value)(map(_plain, value)) if isinstance(value, tuple) else [*map(_plain, value)]
        )
    return value.item() if isinstance(value, np.generic) else value
