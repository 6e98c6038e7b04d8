"""Imports the rows of files into a table, chunk by chunk, and accounts for every row.

A chunk is written on a thread of its own while the next one is read, so memory holds two chunks
whatever the size of the files. Chunks are written one after the other: the acknowledged rows are
the first rows of the files, until a chunk fails in flight. Ctrl-C waits a moment for the chunk in
flight, then abandons it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fluss.cli.file_formats import FileFormat
from fluss.cli.row_files import RowFile
from fluss.errors import (
    ClosedError,
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    TableNotFoundError,
)
from fluss.model.schema.column import Column
from fluss.model.tables.table_options import MergeEngine
from fluss.model.types.data_type import DataType
from fluss.model.types.type_to_arrow import to_arrow_field
from fluss.session import Session, Table
from fluss.waiting import in_thread, is_done, result_of
from fluss.write.write_tally import WriteProgress

CHUNK_ROWS: Final = 200_000
CHUNK_BYTES: Final = 64 << 20
GRACE_S: Final = 0.6  # for the chunk in flight, after Ctrl-C


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Rows of one file that are written together.

    Args:
        file: The file.
        first_row: The number of their first row in it, from 0.
        rows: The rows.
    """

    file: RowFile
    first_row: int
    rows: pa.Table


class Importer:
    """Writes chunks into a table, each on a thread, and keeps count.

    Args:
        table: The table.
        on_written: Called with the number of rows of each acknowledged chunk.

    Attributes:
        rows_in: How many rows are acknowledged: all rows of the chunks before `in_flight`.
        in_flight: The chunk that is being written, or that failed.
    """

    def __init__(self, table: Table, on_written: Callable[[int], None]) -> None:
        self._table = table
        self._on_written = on_written
        self._idle = threading.Event()
        self._idle.set()
        self._stopped = False
        self._error: FlussError | None = None
        self.rows_in = 0
        self.in_flight: Chunk | None = None

    def write(self, chunk: Chunk) -> None:
        """Start to write a chunk, once the previous one is acknowledged.

        Raises:
            FlussError: The previous chunk could not be written, or `stop` was called.
        """
        self.finish()
        self._idle.clear()
        self.in_flight = chunk
        if self._stopped:  # checked after `in_flight` is set, so that `stop` misses no chunk
            self.in_flight = None
            self._idle.set()
            raise ClosedError("The import was stopped.")
        threading.Thread(target=self._work, args=(chunk,), name="import", daemon=True).start()

    def finish(self) -> None:
        """Wait until the chunk in flight is acknowledged.

        Raises:
            FlussError: It could not be written.
        """
        self._idle.wait()
        if self._error is not None:
            raise self._error

    def stop(self, timeout_s: float) -> None:
        """Start no further chunk, and wait up to `timeout_s` for the one in flight."""
        self._stopped = True
        self._idle.wait(timeout_s)

    def _work(self, chunk: Chunk) -> None:
        try:
            if self._table.primary_key:
                self._table.upsert(chunk.rows, progress=False)
            else:
                self._table.append(chunk.rows, progress=False)
        except FlussError as error:
            self._error = error
        else:
            self.rows_in += chunk.rows.num_rows
            self.in_flight = None
            self._on_written(chunk.rows.num_rows)
        finally:
            self._idle.set()


def chunks_of(
    file: RowFile, batches: Iterable[pa.RecordBatch], *, skip: int = 0
) -> Iterator[Chunk]:
    """Gather batches into chunks that are worth a request.

    Args:
        file: The file of the batches.
        batches: Its rows.
        skip: How many rows are skipped at the beginning.
    """
    gathered: list[pa.RecordBatch] = []
    rows = size = first = seen = 0
    for batch in batches:
        left_out = min(max(skip - seen, 0), batch.num_rows)
        seen += batch.num_rows
        for part in _parts(batch.slice(left_out)):
            if not gathered:
                first = seen - batch.num_rows + left_out
            left_out += part.num_rows
            gathered.append(part)
            rows += part.num_rows
            size += part.nbytes
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield Chunk(file=file, first_row=first, rows=pa.Table.from_batches(gathered))
                gathered, rows, size = [], 0, 0
    if rows:
        yield Chunk(file=file, first_row=first, rows=pa.Table.from_batches(gathered))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, CHUNK_ROWS):
        yield batch.slice(start, CHUNK_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """How a missing table is created; None leaves a choice to the session.

    Args:
        may_create: Whether a missing table is created at all.
        primary_key: The columns of its key.
        partition_by: The columns that divide it.
        buckets: How many buckets it has.
        types: The types of single columns.
    """

    may_create: bool
    primary_key: list[str] | None
    partition_by: list[str] | None
    buckets: int | None
    types: Mapping[str, DataType]

    def fields(self) -> dict[str, pa.Field]:
        """The columns whose type is given."""
        return {
            name: to_arrow_field(Column(name, data_type)) for name, data_type in self.types.items()
        }

    def make(self, session: Session, name: str, schema: pa.Schema, rows: pa.Table | None) -> Table:
        """Create the table with these columns, if it can take the first rows."""
        return session.ensure_table(
            name,
            schema,
            rows=rows,
            primary_key=self.primary_key,
            partition_by=self.partition_by,
            buckets=self.buckets,
        )

    def check(self, table: Table) -> None:
        """Refuse an existing table that differs from this description.

        Raises:
            InvalidSchemaError: Its key, partitions, types or number of buckets differ.
        """
        found = {column.name: column.data_type for column in table.fluss_schema.columns}
        pairs: list[tuple[str, object, object]] = [
            ("--primary-key", self.primary_key, list(table.primary_key)),
            ("--partition-by", self.partition_by, list(table.partition_by)),
            ("--buckets", self.buckets, table.buckets),
            *((f"--type of {name!r}", kind, found.get(name)) for name, kind in self.types.items()),
        ]
        for option, requested, existing in pairs:
            if requested is not None and requested != existing:
                shown = ", ".join(existing) if isinstance(existing, list) else existing
                raise InvalidSchemaError(
                    f"{table.name} exists already, and its {option} is {shown or 'none'}.",
                    hint="leave the option out, or import into another table",
                    table=table.name,
                )


class ImportJob:
    """One run of `fluss import`.

    Args:
        session: The cluster.
        name: The table.
        new: How a missing table is created.
        skip: How many rows of the files are skipped, from the first one on.
        on_written: Called with the number of rows of each acknowledged chunk.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        new: NewTable,
        *,
        skip: int,
        on_written: Callable[[int], None],
    ) -> None:
        self._session, self._name, self._new = session, name, new
        self._skip = skip
        self._on_written = on_written
        self._table: Table | None = None
        self._importer: Importer | None = None
        self._file: RowFile | None = None

    @property
    def rows_in(self) -> int:
        """How many rows are certainly in the table."""
        return 0 if self._importer is None else self._importer.rows_in

    def run(self, files: Sequence[tuple[str, FileFormat]]) -> None:
        """Write the files, one after the other.

        The work is done on other threads: reading a pipe would keep this one from seeing Ctrl-C.

        Raises:
            FlussError: A file cannot be read, or a row does not fit or cannot be written.
            KeyboardInterrupt: Ctrl-C; the chunk in flight had `GRACE_S` to finish.
        """
        ended = in_thread(lambda: self._work(files), "import")
        try:
            result_of(ended)
        except KeyboardInterrupt:
            if self._importer is not None:
                self._importer.stop(GRACE_S)
            if self._file is not None:
                self._file.stop()
            is_done(ended, GRACE_S)  # Arrow's threads must not outlive the process
            raise

    def _work(self, files: Sequence[tuple[str, FileFormat]]) -> None:
        try:
            self._table = self._session.table(self._name)
        except TableNotFoundError:
            if not self._new.may_create:
                raise
        else:
            self._new.check(self._table)
        left = self._skip
        try:
            for file, file_format in files:
                with closing(RowFile(file, file_format)) as opened:
                    self._file = opened
                    left -= self._write(opened, left)
        finally:
            if self._importer is not None:
                self._importer.finish()
        if left:
            raise InvalidValueError(
                f"--skip {self._skip} leaves out more rows than the files have, "
                f"{self._skip - left:,}.",
                hint="name all files of the import that ended early, in the same order",
            )

    def message(self, error: FlussError) -> str:
        """Return the message of an error that ended `run`, with the location of its row."""
        chunk = self._in_flight
        if chunk is None:
            return str(error)
        row = error.facts.get("row")
        if isinstance(row, int):
            hint = "" if error.hint is None else f"\n  hint: {error.hint}"
            return f"{chunk.file.location_of(chunk.first_row + row)}: {error.sentence}{hint}"
        # `account` reports how many rows are in, of the files and not of the chunk.
        return error.sentence if _progress_of(error) else str(error)

    def account(self, error: FlussError | None = None) -> str:
        """Return a text about the rows that are in the table, and how to continue.

        Args:
            error: The error that ended `run`; None for Ctrl-C.
        """
        if self._table is None:
            made = ", and no table was made" if self._new.may_create else ""
            return f"No row was written to {self._name}{made}."
        outcome = _outcome_of(self._in_flight, error)
        rows = self.rows_in + outcome.acknowledged
        certain = self._skip + self.rows_in + outcome.first_missing
        text = f"{rows:,} rows are in {self._name}"
        if self.rows_in + outcome.first_missing:
            text += f": rows {self._skip + 1:,} to {certain:,} of the files"
            if outcome.acknowledged > outcome.first_missing:
                text += (
                    f", and {outcome.acknowledged - outcome.first_missing:,} of those after them"
                )
        if outcome.in_doubt:
            text += f". {outcome.in_doubt:,} more may be in or not"
        text += f". To continue: --skip {certain}"
        twice = outcome.acknowledged - outcome.first_missing + outcome.in_doubt
        if not twice:
            return text
        adds_up = self._table.info.options.merge_engine is MergeEngine.AGGREGATION
        if self._table.primary_key and not adds_up:
            return f"{text} (a row that is written again replaces itself)"
        return f"{text} (writes up to {twice:,} rows twice)"

    @property
    def _in_flight(self) -> Chunk | None:
        return None if self._importer is None else self._importer.in_flight

    def _write(self, file: RowFile, skip: int) -> int:
        """Write a file, and return how many of its rows were skipped."""
        table = self._table
        schema = file.schema(self._new.fields()) if table is None else table.schema
        counted = table.fluss_schema.auto_increment_columns if table is not None else ()
        batches = _Counted(file.batches(schema, counted))
        for chunk in chunks_of(file, batches, skip=skip):
            self._importer_for(schema, chunk.rows).write(chunk)
        self._importer_for(schema, None)
        return min(skip, batches.rows)

    def _importer_for(self, schema: pa.Schema, rows: pa.Table | None) -> Importer:
        """Return the importer; the table is created when the first rows are read and fit."""
        if self._importer is None:
            if self._table is None:
                self._table = self._new.make(self._session, self._name, schema, rows)
            self._importer = Importer(self._table, self._on_written)
        return self._importer


class _Counted:
    """Batches, with a count of the rows iterated so far."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChunkOutcome:
    """The state of a chunk that was not written as a whole.

    Args:
        acknowledged: How many of its rows are in the table.
        in_doubt: How many rows may or may not be in the table.
        first_missing: How many rows are in the table before the first that is not.
    """

    acknowledged: int = 0
    in_doubt: int = 0
    first_missing: int = 0


def _outcome_of(chunk: Chunk | None, error: FlussError | None) -> _ChunkOutcome:
    if chunk is None:
        return _ChunkOutcome()
    if error is None:
        return _ChunkOutcome(in_doubt=chunk.rows.num_rows)
    progress = _progress_of(error)
    if progress is None:  # nothing was sent
        return _ChunkOutcome()
    return _ChunkOutcome(
        acknowledged=progress.acknowledged,
        in_doubt=progress.in_doubt,
        first_missing=progress.first_missing,
    )


def _progress_of(error: FlussError) -> WriteProgress | None:
    """Return how far the write came that an error ended; None if it had not begun."""
    progress = error.facts.get("progress")
    return progress if isinstance(progress, WriteProgress) else None
