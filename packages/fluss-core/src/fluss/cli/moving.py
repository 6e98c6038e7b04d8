"""`fluss import` and `fluss export`: whole files into a table and out of it, batch by batch.

Memory stays flat: files are read and written as streams, whatever their size. One that fails in the
middle has been written up to there, and the message says how many rows the servers have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fluss.cli.files import FileFormat, format_of, open_rows, open_sink
from fluss.cli.places import Place
from fluss.cli.reading import (
    ColumnsOption,
    EndOption,
    ModeOption,
    NameArgument,
    PartitionsOption,
    StartOption,
    scan_options_of,
)
from fluss.errors import FlussError
from fluss.session.session import Session
from fluss.session.table import Table

_CHUNK_ROWS: Final = 200_000

FileFormatOption = Annotated[
    FileFormat | None,
    typer.Option("--file-format", help="What the file is, where its name does not say."),
]


def import_rows(
    context: typer.Context,
    name: NameArgument,
    files: Annotated[list[str], typer.Argument(help="Files; - is the standard input.")],
    create: Annotated[bool, typer.Option(help="Make the table from the first file.")] = False,  # noqa: FBT002 - typer's way to say a flag
    primary_key: Annotated[str | None, typer.Option(help="With --create: its columns.")] = None,
    partition_by: Annotated[str | None, typer.Option(help="With --create: its columns.")] = None,
    buckets: Annotated[int | None, typer.Option(help="With --create: how many.", min=1)] = None,
    file_format: FileFormatOption = None,
) -> None:
    """Write files (Parquet, CSV, JSON lines, Arrow) into a table: append, or upsert by key."""
    if not create and (primary_key or partition_by or buckets):
        raise typer.BadParameter("--primary-key, --partition-by and --buckets go with --create")
    place: Place = context.obj
    with place.named(name) as (session, path):
        table: Table | None = None
        written = 0
        with _progress("importing") as advance:
            for each in files:
                schema, batches = open_rows(each, format_of(each, file_format))
                if table is None and create:
                    table = _created(session, path, schema, primary_key, partition_by, buckets)
                table = table or session.table(path)
                for chunk in _chunks(batches, schema):
                    _write(table, chunk, each, written)
                    written += chunk.num_rows
                    advance(chunk.num_rows, None)
    typer.echo(f"{written:,} rows written to {path}", err=True)


def export_rows(
    context: typer.Context,
    name: NameArgument,
    file: Annotated[str, typer.Argument(help="The file; - is the standard output.")],
    columns: ColumnsOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    file_format: FileFormatOption = None,
) -> None:
    """Write the rows of a table into a file (Parquet, CSV, JSON lines, Arrow)."""
    place: Place = context.obj
    with place.table(name) as table:
        scan = table.scan(**scan_options_of(columns, start, end, partitions, mode))
        total = scan.stats.rows_max
        count = 0
        with (
            _progress("exporting") as advance,
            open_sink(file, format_of(file, file_format), scan.schema) as write,
        ):
            for batch in scan.to_reader():
                write(batch)
                count += batch.num_rows
                advance(batch.num_rows, total)
    typer.echo(f"{count:,} rows read from {name}", err=True)


def _created(
    session: Session,
    name: str,
    schema: pa.Schema,
    primary_key: str | None,
    partition_by: str | None,
    buckets: int | None,
) -> Table:
    return session.create_table(
        name,
        schema,
        primary_key=None if primary_key is None else primary_key.split(","),
        partition_by=None if partition_by is None else partition_by.split(","),
        buckets=buckets,
        ignore_if_exists=True,
    )


def _write(table: Table, chunk: pa.Table, source: str, written: int) -> None:
    try:
        if table.primary_key:
            table.upsert(chunk)
        else:
            table.append(chunk)
    except FlussError as error:
        error.add_note(f"{source}: the servers have {written:,} rows of what came before.")
        typer.echo(f"fluss: after {written:,} rows of the files given, at {source}:", err=True)
        raise


def _chunks(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches gathered to a size that is worth a request."""
    gathered: list[pa.RecordBatch] = []
    rows = 0
    for each in batches:
        gathered.append(each)
        rows += each.num_rows
        if rows >= _CHUNK_ROWS:
            yield pa.Table.from_batches(gathered, schema=schema)
            gathered, rows = [], 0
    if rows:
        yield pa.Table.from_batches(gathered, schema=schema)


@contextmanager
def _progress(what: str) -> Iterator[Advance]:
    """Rate and time left on the standard error, where that is a screen."""
    bar = Progress(
        TextColumn(f"[bold]{what}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
    with bar:
        yield Advance(bar, bar.add_task(what, total=None, rate=""))


class Advance:
    """Tells the bar how far it is."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def __call__(self, rows: int, total: int | None) -> None:
        """So many more rows, of so many in all where that is known."""
        speed = self._bar.tasks[0].speed
        rate = "" if speed is None else f"{speed:,.0f} rows/s"
        self._bar.update(self._task, advance=rows, total=total, rate=rate)
