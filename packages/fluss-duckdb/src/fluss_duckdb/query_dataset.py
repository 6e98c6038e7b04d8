"""A table of Fluss as a dataset for DuckDB, which trusts it to filter and project exactly.

DuckDB asks a dataset for its schema once and for a scanner at each scan, and pulls the stream of a
scanner from several threads, one at a time. So the table is looked up again at each scan: added
columns are not seen before the table is attached again, and a dropped column is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fluss.errors import SchemaMismatchError
from fluss.scan import FlussDataset, Scan, TableSource
from fluss_duckdb.statements import Statement, Statements


class ScannedTable(FlussDataset):
    """The dataset that is registered with DuckDB for one table and one set of options.

    Args:
        source: The table and the options.
        scan: A scan of the table, as it is now.
        statements: The statements that may read it.
    """

    def __init__(self, source: TableSource, scan: Scan, statements: Statements) -> None:
        super().__init__(scan)
        self._source = source
        self._schema = schema = scan.dictionary_schema
        self._dictionaries = [each.name for each in schema if pa.types.is_dictionary(each.type)]
        self._statements = statements

    @property
    def version(self) -> tuple[int, int]:
        """The ids of the table and of its schema."""
        return version_of(self._scan)

    @property
    def schema(self) -> pa.Schema:
        """The columns that DuckDB knows: all streams have these types, whatever the table becomes.

        DuckDB takes texts over from dictionaries without converting each. They are VARCHAR to it.
        """
        return self._schema

    def scanner(
        self,
        columns: Any = None,
        filter: ds.Expression | None = None,  # noqa: A002 - Arrow's name
        **_: Any,
    ) -> Any:
        return _Scanner(self, columns, filter)

    def stream(
        self, columns: Sequence[str] | None, condition: ds.Expression | None
    ) -> pa.RecordBatchReader:
        """Read the requested rows for the running statement."""
        running = self._statements.now()
        # It may be for any of several statements: it shares no offsets and is cancelled with each.
        statement = running[0] if len(running) == 1 else Statement()
        for other in running:
            if other is not statement:
                other.cancellation.listen(statement.cancel)
        noting = running or (statement,)
        try:
            scan = self._scan_for(statement)
            names = self.schema.names if columns is None else columns
            narrowed = scan.narrowed(columns=names, predicate=condition)
            # DuckDB does not pass LIMIT on: it stops pulling.
            reader = narrowed.read(
                cancellation=statement.cancellation,
                may_stop_soon=True,
                dictionaries=self._dictionaries,
            )
        except BaseException as error:
            _note(noting, error)
            raise
        progress = self._statements.progress.reading(narrowed.scan)
        batches = self._noted(reader, (*noting, statement), progress)
        return pa.RecordBatchReader.from_batches(reader.schema, batches)

    def _noted(
        self,
        reader: pa.RecordBatchReader,
        statements: Sequence[Statement],
        progress: AbstractContextManager[None],
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a scan; its error is noted for the statement that will meet it."""
        try:
            with progress, self._statements.streaming(statements[-1]):
                yield from reader
        except BaseException as error:
            self._statements.note_late(error)
            _note(statements, error)
            raise

    def _scan_for(self, statement: Statement) -> Scan:
        return self._current(statement).at(statement.snapshot)

    def _current(self, statement: Statement) -> Scan:
        if id(self) in statement.checked:
            return self._scan
        now = self._source.scan(cancellation=statement.cancellation)
        if version_of(now) != self.version:
            self._check_columns(now)
        return now

    def _check_columns(self, now: Scan) -> None:
        """Refuse a table that has lost a column that DuckDB knows."""
        for field in self._scan.schema:
            index = now.schema.get_field_index(field.name)
            if index >= 0 and now.schema.field(index).type == field.type:
                continue
            raise SchemaMismatchError(
                f"The table '{now.name}' has changed since DuckDB looked at it: its column "
                f"{field.name!r} is {'gone' if index < 0 else 'of another type'}.",
                hint=f"a statement with fluss('{now.name}') sees it as it is now",
                table=now.name,
                column=field.name,
            )


class PinnedTable(ScannedTable):
    """The dataset of one scan, which stays at its offsets in every statement.

    Args:
        scan: The scan.
        statements: The statements that may read it.
    """

    def __init__(self, scan: Scan, statements: Statements) -> None:
        super().__init__(scan.source, scan, statements)

    def _scan_for(self, statement: Statement) -> Scan:
        self._scan.splits(cancellation=statement.cancellation)
        return self._scan


def version_of(scan: Scan) -> tuple[int, int]:
    """Return the ids of a scan's table and of its schema."""
    return scan.table_info.table_id, scan.table_info.schema_id


class _Scanner:
    """One scan. DuckDB only asks it for its reader."""

    def __init__(self, table: ScannedTable, columns: Any, condition: ds.Expression | None) -> None:
        self._table = table
        self._columns = None if columns is None else list(columns)
        self._condition = condition

    def to_reader(self) -> pa.RecordBatchReader:
        return self._table.stream(self._columns, self._condition)


def _note(statements: Iterable[Statement], error: BaseException) -> None:
    for statement in statements:
        statement.note(error)
