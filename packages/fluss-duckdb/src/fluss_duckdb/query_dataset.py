"""A table of Fluss as DuckDB reads it: a Dataset that applies its filters exactly, then narrows.

DuckDB asks a Dataset's schema once, and a scanner for each scan; it trusts what the scanner says
that it filtered, and pulls one stream from several threads, one at a time. So the table is looked
at again at each scan: columns that came later are not seen before the table is attached anew, and
columns that went are an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fluss.errors import SchemaMismatchError
from fluss.model.options.scan_options import ScanOptions
from fluss.scan import FlussDataset
from fluss.session import Scan, Table
from fluss_duckdb.statements import Run, Statements, unless_cancelled


class ScannedTable(FlussDataset):
    """What is registered with DuckDB for one table and one set of options.

    Args:
        table: The table, as it is now.
        options: What the scans of it are asked.
        runs: The statements that may be reading it.
        look_again: Gives the table as it is when it is called.
    """

    def __init__(
        self, table: Table, options: ScanOptions, runs: Statements, look_again: Callable[[], Table]
    ) -> None:
        super().__init__(Scan(table.core, options))
        self._options = options
        self._table = table
        self._runs = runs
        self._look_again = look_again

    @property
    def version(self) -> tuple[int, int]:
        """Which table this is, and which schema of it."""
        return version_of(self._table)

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
        """The rows wanted, for the statement that runs."""
        running = self._runs.now()
        # Of several statements it may be any: it shares its offsets with none, and ends with each.
        run = running[0] if len(running) == 1 else Run()
        for each in running:
            if each is not run:
                each.cancellation.listen(run.cancel)
        noting = running or (run,)
        try:
            reader = unless_cancelled(
                lambda: (
                    Scan(self._as_it_is(run).core, self._options)
                    .at(run.pins)
                    .narrowed(
                        columns=self.schema.names if columns is None else columns,
                        predicate=condition,
                    )
                    .read(cancellation=run.cancellation)
                ),
                run.cancellation,
            )
        except BaseException as error:
            _note(noting, error)
            raise
        return pa.RecordBatchReader.from_batches(reader.schema, _noted(reader, noting))

    def _as_it_is(self, run: Run) -> Table:
        if id(self) in run.checked:
            return self._table
        now = self._look_again()
        if version_of(now) != self.version:
            self._check_columns(now)
        return now

    def _check_columns(self, now: Table) -> None:
        """Refuse a table that has not the columns any more that DuckDB was told of."""
        schema = Scan(now.core, self._options).schema
        for field in self.schema:
            index = schema.get_field_index(field.name)
            if index >= 0 and schema.field(index).type == field.type:
                continue
            raise SchemaMismatchError(
                f"The table '{now.name}' has changed since DuckDB looked at it: its column "
                f"{field.name!r} is {'gone' if index < 0 else 'of another type'}.",
                hint=f"a statement that says fluss('{now.name}') sees it as it is now",
                table=now.name,
                column=field.name,
            )


def version_of(table: Table) -> tuple[int, int]:
    """Which table this is, and which schema of it."""
    return table.info.table_id, table.info.schema_id


class _Scanner:
    """One scan; DuckDB asks it for its reader, and for nothing else."""

    def __init__(self, source: ScannedTable, columns: Any, condition: ds.Expression | None) -> None:
        self._source = source
        self._columns = None if columns is None else list(columns)
        self._condition = condition

    def to_reader(self) -> pa.RecordBatchReader:
        return self._source.stream(self._columns, self._condition)


def _noted(reader: pa.RecordBatchReader, runs: Sequence[Run]) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except BaseException as error:
        _note(runs, error)
        raise


def _note(runs: Sequence[Run], error: BaseException) -> None:
    for each in runs:
        each.note(error)
