"""What a session writes by the names of tables: rows, and tables that are missing for them.

Each method does what the method of the same name of a `Table` does. A table that many small frames
are written to is not looked up for each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from fluss.connection.connection import ClientConnection
from fluss.doors import at_door
from fluss.hints import Door
from fluss.model.options.argument_types import Condition
from fluss.model.paths import TablePath
from fluss.progress import Progress
from fluss.scan.table_source import without_view
from fluss.session.creating import NewTable, check_how, ensured_table, table_for_frame
from fluss.session.table import Table
from fluss.write.caller_rows import naming_frame
from fluss.write.frame_writer import write_to_recent_table
from fluss.write.write_tally import WriteReport


@at_door(Door.SESSION)
class SessionWrites(ABC):
    """The writing methods of a `Session`."""

    @abstractmethod
    def table(self, name: TablePath | str | None = None) -> Table: ...

    @abstractmethod
    def path_of(self, name: TablePath | str | None = None) -> TablePath: ...

    @abstractmethod
    def create_table(
        self, name: TablePath | str, schema: Any, *, ignore_if_exists: bool = False
    ) -> Table: ...

    @abstractmethod
    def _open_connection(self) -> ClientConnection: ...

    def ensure_table(
        self, name: TablePath | str, schema: Any, *, rows: Any = None, **how: Unpack[NewTable]
    ) -> Table:
        """The table of this name, created where it does not exist.

        Args:
            name: `"database.table"`.
            schema: As of `create_table`; not looked at where the table exists.
            rows: Rows that will be written to it next: a table that cannot take them is not
                created.
            **how: As of `create_table`. Keys, partitions and buckets that are given are compared
                with those of a table that exists.

        Raises:
            SchemaMismatchError: It exists with another key, other partitions or buckets.
            InvalidSchemaError: The description contradicts itself or Fluss's rules.
        """
        return ensured_table(self, name, schema, rows, how)

    def append(
        self,
        name: TablePath | str,
        data: Any,
        *,
        create: bool = False,
        progress: Progress = None,
        **how: Unpack[NewTable],
    ) -> WriteReport:
        """Append rows to a log table; see `Table.append`.

        Args:
            name: `"database.table"`.
            data: Anything tabular.
            create: Whether the table is made from the frame where it does not exist. The frame is
                checked before.
            progress: Whether a bar is shown during a long write; by default in terminals and
                notebooks. Or a function of the rows acknowledged and their number.
            **how: What `create_table` takes. Of a table that exists, its keys, partitions and
                buckets are compared with those given.
        """
        return self._write(name, data, how, mode="append", create=create, progress=progress)

    def upsert(
        self,
        name: TablePath | str,
        data: Any,
        *,
        create: bool = False,
        progress: Progress = None,
        **how: Unpack[NewTable],
    ) -> WriteReport:
        """Insert or replace rows by key; see `Table.upsert`, and `append` for the arguments."""
        return self._write(name, data, how, mode="upsert", create=create, progress=progress)

    def update(
        self,
        name: TablePath | str,
        data: Any,
        *,
        columns: Sequence[str] | None = None,
        progress: Progress = None,
    ) -> WriteReport:
        """Write some columns of rows by key; see `Table.update`.

        Args:
            name: `"database.table"`.
            data: Anything tabular with the key's columns.
            columns: Which columns are written; those of the frame by default.
            progress: See `append`.
        """
        return self.table(name).update(data, columns=columns, progress=progress)

    def delete(
        self,
        name: TablePath | str,
        keys: Any = None,
        *,
        where: Condition | None = None,
        progress: Progress = None,
    ) -> WriteReport:
        """Delete rows by key, or those that fulfil a condition; see `Table.delete`.

        Args:
            name: `"database.table"`.
            keys: As of `lookup`; a key without a row is no error.
            where: The condition, such as `"id > 5 AND kind = 'a'"`.
            progress: See `append`.
        """
        return self.table(name).delete(keys, where=where, progress=progress)

    def _write(
        self,
        name: TablePath | str,
        data: Any,
        how: Mapping[str, Any],
        *,
        mode: Literal["append", "upsert"],
        create: bool,
        progress: Progress,
    ) -> WriteReport:
        check_how(how, create=create, function=mode)
        if create:
            with naming_frame(data):
                table, frame = table_for_frame(self, name, data, mode=mode, how=how)
                write = table.append if mode == "append" else table.upsert
                return write(frame, progress=progress)
        connection = self._open_connection()
        path = self.path_of(without_view(name)[0] if isinstance(name, str) else name)
        return write_to_recent_table(connection, path, data, mode=mode, progress=progress)
