"""Rows of files into a table, chunk by chunk, with a true account of what is in.

A chunk is written on a thread of its own while the next one is read, so memory holds two of them
whatever the size of the files. Chunks are written one after the other: the rows that are in are the
first ones of the files, until a chunk fails on its way. Ctrl-C waits a moment for the chunk on its
way, and leaves it when that does not end.
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
from fluss.session.session import Session
from fluss.session.table import Table
from fluss.waiting import in_thread, is_done, result_of
from fluss.write.write_tally import WriteProgress

CHUNK_ROWS: Final = 200_000
CHUNK_BYTES: Final = 64 << 20
GRACE_S: Final = 0.6  # that a chunk on its way gets after Ctrl-C


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
    """Writes chunks into a table, each on a thread, and knows what became of them.

    Args:
        table: The table.
        on_written: Called with the number of rows of each chunk that is in.

    Attributes:
        rows_in: How many rows are in: all those of the chunks before `under_way`.
        under_way: The chunk that was written last, until all of it is in.
    """

    def __init__(self, table: Table, on_written: Callable[[int], None]) -> None:
        self._table = table
        self._on_written = on_written
        self._idle = threading.Event()
        self._idle.set()
        self._stopped = False
        self._error: FlussError | None = None
        self.rows_in = 0
        self.under_way: Chunk | None = None

    def write(self, chunk: Chunk) -> None:
        """Begin to write a chunk, after the one before is in.

        Raises:
            FlussError: The one before could not be written, or `stop` was called.
        """
        self.finish()
        self._idle.clear()
        self.under_way = chunk
        if self._stopped:  # looked at after `under_way` is set, which `stop` looks at afterwards
            self.under_way = None
            self._idle.set()
            raise ClosedError("The import was stopped.")
        threading.Thread(target=self._work, args=(chunk,), name="import", daemon=True).start()

    def finish(self) -> None:
        """Wait until the chunk that is under way is in.

        Raises:
            FlussError: It could not be written.
        """
        self._idle.wait()
        if self._error is not None:
            raise self._error

    def stop(self, timeout_s: float) -> None:
        """Begin no further chunk, and give the one that is under way some time."""
        self._stopped = True
        self._idle.wait(timeout_s)

    def _work(self, chunk: Chunk) -> None:
        try:
            if self._table.primary_key:
                self._table.upsert(chunk.rows)
            else:
                self._table.append(chunk.rows)
        except FlussError as error:
            self._error = error
        else:
            self.rows_in += chunk.rows.num_rows
            self.under_way = None
            self._on_written(chunk.rows.num_rows)
        finally:
            self._idle.set()


def chunks_of(
    file: RowFile, batches: Iterable[pa.RecordBatch], *, skip: int = 0
) -> Iterator[Chunk]:
    """Batches gathered to a size that is worth a request.

    Args:
        file: Where they are from.
        batches: Its rows.
        skip: How many of them are left out at the beginning.
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
    """How a table is made where there is none; what is None is left to the session.

    Args:
        is_wanted: Whether a table that does not exist is made at all.
        primary_key: The columns of its key.
        partition_by: The columns that divide it.
        buckets: How many buckets it has.
        types: The types of single columns.
    """

    is_wanted: bool
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
        """Make the table, with these columns, if it can take the first rows."""
        return session.ensure_table(
            name,
            schema,
            rows=rows,
            primary_key=self.primary_key,
            partition_by=self.partition_by,
            buckets=self.buckets,
        )

    def check(self, table: Table) -> None:
        """Refuse a table that exists and is another one than described here.

        Raises:
            InvalidSchemaError: It has another key, other partitions, types or numbers of buckets.
        """
        found = {each.name: each.data_type for each in table.fluss_schema.columns}
        pairs: list[tuple[str, object, object]] = [
            ("--primary-key", self.primary_key, list(table.primary_key)),
            ("--partition-by", self.partition_by, list(table.partition_by)),
            ("--buckets", self.buckets, table.buckets),
            *((f"--type of {name!r}", kind, found.get(name)) for name, kind in self.types.items()),
        ]
        for option, wanted, there in pairs:
            if wanted is not None and wanted != there:
                shown = ", ".join(there) if isinstance(there, list) else there
                raise InvalidSchemaError(
                    f"{table.name} exists already, and its {option} is {shown or 'none'}.",
                    hint="leave the option out, or import into another table",
                    table=table.name,
                )


class ImportJob:
    """One run of `fluss import`: files into a table, which it may make.

    Args:
        session: The cluster.
        name: The table.
        new: How the table is made where there is none.
        skip: How many rows of the files, from the first one on, are left out.
        on_written: Called with the number of rows of each chunk that is in.
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
        """How many rows are in for certain."""
        return 0 if self._importer is None else self._importer.rows_in

    def run(self, files: Sequence[tuple[str, FileFormat]]) -> None:
        """Write the files, one after the other.

        The work is done on other threads: reading a pipe would keep this one from seeing Ctrl-C.

        Raises:
            FlussError: A file cannot be read, or a row does not fit or cannot be written.
            KeyboardInterrupt: Ctrl-C; the chunk that was under way had a moment to end.
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
            if not self._new.is_wanted:
                raise
        else:
            self._new.check(self._table)
        left = self._skip
        try:
            for file, form in files:
                with closing(RowFile(file, form)) as opened:
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
        """The message of an error that ended `run`, with the place of the row that it is about."""
        chunk = self._under_way
        if chunk is None:
            return str(error)
        row = error.facts.get("row")
        if isinstance(row, int):
            hint = "" if error.hint is None else f"\n  hint: {error.hint}"
            return f"{chunk.file.place_of(chunk.first_row + row)}: {error.sentence}{hint}"
        # What became of the rows is said by `account`, for the files and not for the chunk.
        return error.sentence if _progress_of(error) else str(error)

    def account(self, error: FlussError | None = None) -> str:
        """What is in, and how to go on.

        Args:
            error: What ended `run`; None for Ctrl-C.
        """
        if self._table is None:
            made = ", and no table was made" if self._new.is_wanted else ""
            return f"No row was written to {self._name}{made}."
        fate = _fate_of(self._under_way, error)
        rows = self.rows_in + fate.acknowledged
        certain = self._skip + self.rows_in + fate.first_missing
        text = f"{rows:,} rows are in {self._name}"
        if self.rows_in + fate.first_missing:
            text += f": rows {self._skip + 1:,} to {certain:,} of the files"
            if fate.acknowledged > fate.first_missing:
                text += f", and {fate.acknowledged - fate.first_missing:,} of those after them"
        if fate.in_doubt:
            text += f". {fate.in_doubt:,} more may be in or not"
        text += f". To go on: --skip {certain}"
        twice = fate.acknowledged - fate.first_missing + fate.in_doubt
        if not twice:
            return text
        adds_up = self._table.info.options.merge_engine is MergeEngine.AGGREGATION
        if self._table.primary_key and not adds_up:
            return f"{text} (a row that is written again replaces itself)"
        return f"{text} (writes up to {twice:,} rows twice)"

    @property
    def _under_way(self) -> Chunk | None:
        return None if self._importer is None else self._importer.under_way

    def _write(self, file: RowFile, skip: int) -> int:
        """Write a file; returns how many of its rows were left out."""
        table = self._table
        schema = file.schema(self._new.fields()) if table is None else table.schema
        counted = table.fluss_schema.auto_increment_columns if table is not None else ()
        batches = _Counted(file.batches(schema, counted))
        for chunk in chunks_of(file, batches, skip=skip):
            self._importer_for(schema, chunk.rows).write(chunk)
        self._importer_for(schema, None)
        return min(skip, batches.rows)

    def _importer_for(self, schema: pa.Schema, rows: pa.Table | None) -> Importer:
        """What writes; the table is not made before the first rows were read and fit."""
        if self._importer is None:
            if self._table is None:
                self._table = self._new.make(self._session, self._name, schema, rows)
            self._importer = Importer(self._table, self._on_written)
        return self._importer


class _Counted:
    """Batches, and how many rows of them there were."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fate:
    """What became of the rows of a chunk that was not written as a whole.

    Args:
        acknowledged: How many are in.
        in_doubt: How many may be in or not.
        first_missing: How many of the first ones are in, without a gap.
    """

    acknowledged: int = 0
    in_doubt: int = 0
    first_missing: int = 0


def _fate_of(chunk: Chunk | None, error: FlussError | None) -> _Fate:
    if chunk is None:
        return _Fate()
    if error is None:
        return _Fate(in_doubt=chunk.rows.num_rows)
    progress = _progress_of(error)
    if progress is None:  # nothing had been sent
        return _Fate()
    return _Fate(
        acknowledged=progress.acknowledged,
        in_doubt=progress.in_doubt,
        first_missing=progress.first_missing,
    )


def _progress_of(error: FlussError) -> WriteProgress | None:
    """How far the write came that an error ended, where it had begun."""
    progress = error.facts.get("progress")
    return progress if isinstance(progress, WriteProgress) else None
