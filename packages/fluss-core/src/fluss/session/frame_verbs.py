"""The four write verbs of a dataframe library's accessor: `df.fluss.append("db.table")` and others.

Columns are matched by name and cast where no value changes. What rows a frame has, and whether all
of them are checked before the first is written, is up to the accessor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from fluss.doors import at_door
from fluss.hints import Door
from fluss.scan import TableName
from fluss.session.table import Table, open_table
from fluss.write.write_report import WriteReport

_VERBS = ("append", "upsert", "delete", "update")


class FrameVerbs(ABC):
    """Writes a frame; a subclass names its door: `class Accessor(FrameVerbs, door=Door.PANDAS)`."""

    def __init_subclass__(cls, door: Door | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if door is not None:
            for verb in _VERBS:
                setattr(cls, verb, at_door(door)(getattr(cls, verb)))

    @abstractmethod
    def _rows(self, table: Table) -> Any:
        """Return the frame's rows for a table, as anything tabular."""

    def append(self, table: TableName, *, config: Any = None) -> WriteReport:
        """Append the rows to a log table, and wait until the servers have them.

        Args:
            table: `"database.table"`, a `fluss://` URL, or a `Table`.
            config: How to reach the cluster; the URL, the active session, the environment or the
                profile otherwise.

        Returns:
            How many rows there were, and the last offset of each bucket.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column.

        Example:
            >>> df.fluss.append("sales.orders")  # doctest: +SKIP
        """
        opened = open_table(table, config=config)
        return opened.append(self._rows(opened))

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
            merge_mode: `overwrite` to replace aggregated values instead of merging into them.
        """
        opened = open_table(table, config=config)
        return opened.upsert(self._rows(opened), merge_mode=merge_mode)

    def delete(self, table: TableName, *, config: Any = None) -> WriteReport:
        """Delete the rows with these keys; columns outside the key are ignored.

        Args:
            table: See `append`.
            config: See `append`.
        """
        opened = open_table(table, config=config)
        return opened.delete(self._rows(opened))

    def update(
        self, table: TableName, *, columns: Sequence[str] | None = None, config: Any = None
    ) -> WriteReport:
        """Write some columns of rows by key; the others keep their values.

        Args:
            table: See `append`.
            columns: Which columns are written; those of the frame by default.
            config: See `append`.
        """
        opened = open_table(table, config=config)
        return opened.update(self._rows(opened), columns=columns)
