"""Imports the rows of files into a table, chunk by chunk, and accounts for every row.

A chunk is written while the next one is read (`import_writers`), and the state of the import is
saved as rows are acknowledged (`import_state`), so the same command continues after a kill.
Ctrl-C waits a moment for the rows in flight, then abandons them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from fluss.cli.files.import_state import ImportState
from fluss.cli.files.import_writers import Chunk, ChunkWriter, OnceWriter, RowWriter
from fluss.cli.files.inference import type_of_texts
from fluss.cli.files.input_files import InputFile
from fluss.cli.files.new_table import NewTable
from fluss.cli.files.row_files import RowFile
from fluss.errors import (
    DatabaseNotFoundError,
    FlussError,
    InvalidValueError,
    LimitExceededError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTypeError,
)
from fluss.exactly_once import keeps_order
from fluss.model.tables.table_options import MergeEngine
from fluss.session import Session, Table
from fluss.waiting import in_thread, is_done, result_of
from fluss.write.write_tally import WriteProgress

CHUNK_ROWS: Final = 200_000
CHUNK_BYTES: Final = 16 << 20
GRACE_S: Final = 0.6  # for the rows in flight, after Ctrl-C
# These are about the rows of the files: the same command would fail again.
_INPUT_ERRORS: Final = (
    InvalidValueError,
    SchemaMismatchError,
    UnsupportedTypeError,
    LimitExceededError,
)


def chunks_of(
    file: RowFile, batches: Iterable[pa.RecordBatch], *, skip: int = 0, first_row: int = 0
) -> Iterator[Chunk]:
    """Gather batches into chunks that are worth a request.

    Args:
        file: The file of the batches.
        batches: Its rows; where they end with an error, the rows before it come first.
        skip: How many rows are skipped at the beginning.
        first_row: The number of the first row of the batches in the file.
    """
    gathered: list[pa.RecordBatch] = []
    rows = size = first = seen = 0
    failed: FlussError | None = None
    try:
        for batch in batches:
            left_out = min(max(skip - seen, 0), batch.num_rows)
            seen += batch.num_rows
            for part in _parts(batch.slice(left_out)):
                if not gathered:
                    first = first_row + seen - batch.num_rows + left_out
                left_out += part.num_rows
                gathered.append(part)
                rows += part.num_rows
                size += part.nbytes
                if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                    yield Chunk(file=file, first_row=first, rows=pa.Table.from_batches(gathered))
                    gathered, rows, size = [], 0, 0
    except FlussError as error:
        failed = error
    if rows:
        yield Chunk(file=file, first_row=first, rows=pa.Table.from_batches(gathered))
    if failed is not None:
        raise failed


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, CHUNK_ROWS):
        yield batch.slice(start, CHUNK_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """What a terminal shows of an import.

    Args:
        on_written: Called with numbers of rows as they are sent.
        on_continued: Called with the number of rows that earlier runs have written.
    """

    on_written: Callable[[int], None]
    on_continued: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What an import writes, and from where it continues.

    Args:
        words: The files, globs and folders as the command names them.
        files: The files that these are.
        skip: How many rows of the files are left out; None to continue an earlier run.
        restart: Whether earlier runs are forgotten.
        options: The options that change which rows are written.
    """

    words: Sequence[str]
    files: Sequence[InputFile]
    skip: int | None = None
    restart: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_repeatable(self) -> bool:
        """Whether the same command would find the same rows: not in a pipe."""
        return all(each.is_file for each in self.files)


class ImportJob:
    """One run of `fluss import`.

    Args:
        session: The cluster.
        name: The table.
        new: How a missing table is created.
        request: What is written.
        observer: What is shown of it.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        new: NewTable,
        request: ImportRequest,
        observer: Observer,
    ) -> None:
        self._session, self._name, self._new = session, name, new
        self._request, self._observer = request, observer
        self._table: Table | None = None
        self._state: ImportState | None = None
        self._writer: RowWriter | None = None
        self._file: RowFile | None = None
        self._bytes_before = self._bytes_of_file = 0

    @property
    def rows_in(self) -> int:
        """How many rows this run has certainly written."""
        return 0 if self._writer is None else self._writer.rows_in

    @property
    def fraction(self) -> float | None:
        """How much of the files has been read, from 0 to 1; None for a pipe."""
        total = sum(each.size for each in self._request.files)
        file = self._file
        if not total or not self._request.is_repeatable:
            return None
        now = 0.0 if file is None else file.fraction_read * self._bytes_of_file
        return min(1.0, (self._bytes_before + now) / total)

    def run(self) -> None:
        """Write the files, one after the other.

        The work is done on other threads: reading a pipe would keep this one from seeing Ctrl-C.

        Raises:
            FlussError: A file cannot be read, or a row does not fit or cannot be written.
            KeyboardInterrupt: Ctrl-C; the rows in flight had `GRACE_S` to finish.
        """
        ended = in_thread(self._work, "import")
        try:
            result_of(ended)
        except KeyboardInterrupt:
            if self._writer is not None:
                self._writer.stop(GRACE_S)
            if self._file is not None:
                self._file.stop()
            is_done(ended, GRACE_S)  # Arrow's threads must not outlive the process
            raise

    # --- the working thread -------------------------------------------------------------------

    def _work(self) -> None:
        table = self._existing_table()
        try:
            if table is not None:
                self._open(table)
            self._write_files()
        finally:
            if self._state is not None:
                self._settle(self._state)

    def _existing_table(self) -> Table | None:
        try:
            table = self._session.table(self._name)
        except TableNotFoundError:
            if not self._new.may_create:
                raise
            return None
        self._new.check(table)
        return table

    def _open(self, table: Table) -> RowWriter:
        """Open the state of the import, and the writer that continues from it."""
        request = self._request
        self._table = table
        if request.is_repeatable:
            self._state = ImportState.of(
                table,
                request.words,
                request.files,
                options=request.options,
                skip=request.skip,
                restart=request.restart,
            )
        else:
            self._state = ImportState(None, table.name, [], {}, skip=request.skip or 0)
        once = request.is_repeatable and not table.primary_key and keeps_order(table)
        make = OnceWriter if once else ChunkWriter
        self._writer = make(table, self._state, self._observer.on_written)
        if self._state.is_continued:
            progress = self._state.progress
            self._observer.on_continued(progress.rows - progress.skipped)
        return self._writer

    def _settle(self, state: ImportState) -> None:
        """Forget the state if there is nothing to continue."""
        progress = state.progress
        if progress.rows == progress.skipped and not progress.segment_rows:
            state.forget()
        state.unlock()

    def _write_files(self) -> None:
        skip = left = self._skip
        try:
            for chosen in self._request.files:
                opened = RowFile(chosen.file, chosen.file_format, chosen.folder_values)
                with closing(opened):
                    self._file, self._bytes_of_file = opened, chosen.size
                    left -= self._write(opened, left)
                self._file = None
                self._bytes_before += chosen.size
        finally:
            if self._writer is not None:
                self._writer.finish()
        if left:
            raise InvalidValueError(
                f"--skip {skip} leaves out more rows than the files have, {skip - left:,}.",
                hint="name all files of the import that ended early, in the same order",
            )
        if self._state is not None:
            self._state.forget()

    @property
    def _skip(self) -> int:
        return (self._request.skip or 0) if self._state is None else self._state.progress.rows

    def _write(self, file: RowFile, skip: int) -> int:
        """Write a file, and return how many of its rows were skipped."""
        table = self._table
        if table is None:
            schema = file.schema(self._new.fields(), self._folder_types())
        else:
            schema = table.schema
        counted = table.fluss_schema.auto_increment_columns if table is not None else ()
        passed = file.skip(skip)
        batches = _Counted(file.batches(schema, counted))
        for chunk in chunks_of(file, batches, skip=skip - passed, first_row=passed):
            self._writer_for(schema, chunk.rows).write(chunk)
        self._writer_for(schema, None)
        return passed + min(skip - passed, batches.rows)

    def _writer_for(self, schema: pa.Schema, rows: pa.Table | None) -> RowWriter:
        """Return the writer; the table is created when the first rows are read and fit."""
        if self._writer is None:
            return self._open(self._new.make(self._session, self._name, schema, rows))
        return self._writer

    def _folder_types(self) -> dict[str, pa.DataType]:
        """Infer the types of the columns that folders name."""
        texts: dict[str, list[str | None]] = {}
        for chosen in self._request.files:
            for name, text in chosen.folder_values.items():
                texts.setdefault(name, []).append(text)
        return {name: type_of_texts(values) for name, values in texts.items()}

    # --- after an early end -------------------------------------------------------------------

    def message(self, error: FlussError) -> str:
        """Return the message of an error that ended `run`, with the location of its row."""
        chunk = None if self._writer is None else self._writer.in_flight
        if chunk is None:
            return str(_with_remedy(error, self._name))
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
        if self._state is None or self._writer is None:
            is_missing = self._new.may_create and self._table is None
            made = ", and no table was made" if is_missing else ""
            return f"No row was written to {self._name}{made}."
        return _account(
            self._name,
            self._state,
            _outcome_of(self._writer, error),
            continues=self._request.is_repeatable and not isinstance(error, _INPUT_ERRORS),
            is_pipe=not self._request.is_repeatable,
            twice_note=self._note_on_repetition(),
        )

    def _note_on_repetition(self) -> str | None:
        """What happens to rows that are written again; None if they are counted twice."""
        if isinstance(self._writer, OnceWriter):
            return "no row is written twice"
        table = self._table
        if table is None or not table.primary_key:
            return None
        if table.info.options.merge_engine is MergeEngine.AGGREGATION:
            return None
        return "a row that is written again replaces itself"


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
class _Outcome:
    """What is known of rows after those that the state has.

    Args:
        acknowledged: How many of them are in the table.
        in_doubt: How many may or may not be in the table.
        first_missing: How many are in the table before the first that is not.
    """

    acknowledged: int = 0
    in_doubt: int = 0
    first_missing: int = 0


def _account(
    name: str,
    state: ImportState,
    outcome: _Outcome,
    *,
    continues: bool,
    is_pipe: bool,
    twice_note: str | None,
) -> str:
    progress = state.progress
    certain = progress.rows + outcome.first_missing
    beyond = outcome.acknowledged - outcome.first_missing
    text = f"{certain - progress.skipped + beyond:,} rows are in {name}"
    if certain > progress.skipped:
        text += f": rows {progress.skipped + 1:,} to {certain:,} of the "
        text += "pipe" if is_pipe else "files"
        if beyond:
            text += f", and {beyond:,} of those after them"
    if outcome.in_doubt:
        text += f". {outcome.in_doubt:,} more may be in or not"
    twice = beyond + outcome.in_doubt
    if continues and state.is_kept and (twice_note or not twice):
        note = f"; {twice_note}" if twice_note else ""
        return f"{text}. To continue: run the same command again{note}"
    if certain == progress.skipped and not twice:
        return f"{text}. To continue: run the same command again"
    text += ". To continue: "
    text += f"pipe the same rows again with --skip {certain}" if is_pipe else f"--skip {certain}"
    if not twice:
        return text
    return f"{text} ({twice_note or f'writes up to {twice:,} rows twice'})"


def _outcome_of(writer: RowWriter, error: FlussError | None) -> _Outcome:
    if isinstance(writer, OnceWriter):
        return _Outcome(in_doubt=writer.in_doubt_max)
    chunk = writer.in_flight
    if chunk is None:
        return _Outcome()
    if error is None:
        return _Outcome(in_doubt=chunk.rows.num_rows)
    progress = _progress_of(error)
    if progress is None:  # nothing was sent
        return _Outcome()
    return _Outcome(
        acknowledged=progress.acknowledged,
        in_doubt=progress.in_doubt,
        first_missing=progress.first_missing,
    )


def _with_remedy(error: FlussError, name: str) -> FlussError:
    """Add how what is missing is made to the hint of an error."""
    if isinstance(error, DatabaseNotFoundError):
        remedy = f"`fluss create {name.partition('.')[0]}` makes it"
    elif isinstance(error, TableNotFoundError):
        remedy = "--create makes the table from the file"
    else:
        return error
    hint = remedy if error.hint is None else f"{error.hint.rstrip('.')}; {remedy}"
    return error.with_context(hint=hint)


def _progress_of(error: FlussError) -> WriteProgress | None:
    """Return how far the write came that an error ended; None if it had not begun."""
    progress = error.facts.get("progress")
    return progress if isinstance(progress, WriteProgress) else None
