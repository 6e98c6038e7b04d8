"""The four write verbs of a dataframe library's accessor: `df.fluss.append("db.table")` and others.

Columns are matched by name and cast where no value changes. What rows a frame has, and whether all
of them are checked before the first is written, is up to the accessor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from fluss.connection.config_sources import Settings
from fluss.doors import at_door
from fluss.hints import Door
from fluss.scan import Progress, TableName, source_of
from fluss.session.creating import NewTable, check_how, created_for_frame, table_if_there
from fluss.session.first_connection import session_for
from fluss.session.show import verbs_html
from fluss.session.table import Table, open_table
from fluss.write.caller_rows import naming_frame
from fluss.write.write_tally import WriteReport

_VERBS = ("append", "upsert", "delete", "update")


class FrameVerbs(ABC):
    """Writes a frame; a subclass names its door: `class Accessor(FrameVerbs, door=Door.PANDAS)`."""

    def __init_subclass__(cls, door: Door | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if door is not None:
            for verb in _VERBS:
                setattr(cls, verb, at_door(door)(getattr(cls, verb)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {', '.join(_VERBS)} the rows of a frame"

    def _repr_html_(self) -> str:
        does = {
            verb: (getattr(type(self), verb).__doc__ or "").partition("\n")[0] for verb in _VERBS
        }
        calls = {f'{verb}("database.table")': text for verb, text in does.items()}
        return verbs_html(type(self).__name__, calls)

    @abstractmethod
    def _rows(self, table: Table) -> Any:
        """Return the frame's rows for a table, as anything tabular."""

    @abstractmethod
    def _rows_for_new_table(self) -> Any:
        """Return the frame's rows for a table that is created from them, as anything tabular."""

    def append(
        self,
        table: TableName,
        *,
        config: Settings = None,
        create: bool = False,
        progress: Progress = None,
        **how: Unpack[NewTable],
    ) -> WriteReport:
        """Append the rows to a log table, and wait until the servers have them.

        Args:
            table: `"database.table"`, a `fluss://` URL, or a `Table`.
            config: How to reach the cluster; the URL, the active session, the environment or the
                profile otherwise.
            create: Whether the table is made from the frame where it does not exist. The frame is
                checked before.
            progress: Whether a bar is shown during a long write; by default in terminals and
                notebooks. Or a function of the rows acknowledged and their number.
            **how: With `create`, what `Session.create_table` takes: primary_key, partition_by,
                bucket_key, buckets, auto_increment, properties, comment. Of a table that exists,
                its keys, partitions and buckets are compared with those given.

        Returns:
            How many rows there were, and the last offset of each bucket.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column.

        Example:
            >>> df.fluss.append("sales.orders", create=True)  # doctest: +SKIP
        """
        opened, rows = self._opened(table, config, create=create, mode="append", how=how)
        return opened.append(rows, progress=progress)

    def upsert(
        self,
        table: TableName,
        *,
        config: Settings = None,
        merge_mode: Literal["default", "overwrite"] | None = None,
        create: bool = False,
        progress: Progress = None,
        **how: Unpack[NewTable],
    ) -> WriteReport:
        """Insert the rows, or replace those with the same keys; see `append`.

        A frame with a column `_change_type` is applied as a changelog.

        Args:
            table: See `append`.
            config: See `append`.
            merge_mode: `overwrite` to replace aggregated values instead of merging into them.
            create: See `append`; `primary_key` is necessary then.
            progress: See `append`.
            **how: See `append`.
        """
        opened, rows = self._opened(table, config, create=create, mode="upsert", how=how)
        return opened.upsert(rows, merge_mode=merge_mode, progress=progress)

    def delete(
        self, table: TableName, *, config: Settings = None, progress: Progress = None
    ) -> WriteReport:
        """Delete the rows with these keys; columns outside the key are ignored.

        Args:
            table: See `append`.
            config: See `append`.
            progress: See `append`.
        """
        opened = open_table(table, config=config)
        return opened.delete(self._rows(opened), progress=progress)

    def update(
        self,
        table: TableName,
        *,
        columns: Sequence[str] | None = None,
        config: Settings = None,
        progress: Progress = None,
    ) -> WriteReport:
        """Write some columns of rows by key; the others keep their values.

        Args:
            table: See `append`.
            columns: Which columns are written; those of the frame by default.
            config: See `append`.
            progress: See `append`.
        """
        opened = open_table(table, config=config)
        return opened.update(self._rows(opened), columns=columns, progress=progress)

    def _opened(
        self,
        table: TableName,
        config: Settings,
        *,
        create: bool,
        mode: Literal["append", "upsert"],
        how: Mapping[str, Any],
    ) -> tuple[Table, Any]:
        """The table and the rows for it."""
        check_how(how, create=create, function=mode)
        if not create:
            opened = open_table(table, config=config)
            return opened, self._rows(opened)
        source = source_of(table, config=config)
        session = session_for(source.config)
        found = table_if_there(session, source.path, how)
        if found is not None:
            return found, self._rows(found)
        rows = self._rows_for_new_table()
        with naming_frame(rows):
            return created_for_frame(session, source.path, rows, mode=mode, how=how)
