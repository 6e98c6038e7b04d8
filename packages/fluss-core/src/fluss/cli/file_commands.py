"""`fluss import` and `fluss export`: files into a table and out of it, batch by batch.

Files are streamed, so memory does not grow with their size. An import that ends early reports how
many rows are in the table and how to continue.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fluss.cli.file_formats import FileFormat, format_of, open_sink
from fluss.cli.global_options import GlobalOptions
from fluss.cli.importing import ImportJob, NewTable
from fluss.cli.scan_arguments import (
    ColumnsOption,
    EndOption,
    MetadataOption,
    ModeOption,
    NameArgument,
    PartitionsOption,
    StartOption,
    WhereOption,
    scan_options_of,
)
from fluss.errors import FlussError
from fluss.model.types.data_type import DataType
from fluss.model.types.type_text import parse_type

_REFUSED = 1
_INTERRUPTED = 130

FileFormatOption = Annotated[
    FileFormat | None,
    typer.Option("--file-format", help="The format, where the name of a file does not show it."),
]
TypesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        help="With --create: NAME=TYPE of a column, such as price='DECIMAL(9, 2)'.",
        show_default=False,
    ),
]


def import_rows(
    context: typer.Context,
    name: NameArgument,
    files: Annotated[list[str], typer.Argument(help="Files; - is the standard input.")],
    create: Annotated[  # noqa: FBT002 - typer declares flags so
        bool, typer.Option(help="Create the table from the first file if it does not exist.")
    ] = False,
    primary_key: Annotated[str | None, typer.Option(help="With --create: its columns.")] = None,
    partition_by: Annotated[str | None, typer.Option(help="With --create: its columns.")] = None,
    buckets: Annotated[int | None, typer.Option(help="With --create: how many.", min=1)] = None,
    types: TypesOption = None,
    skip: Annotated[int, typer.Option(min=0, help="Skip this many rows of the files.")] = 0,
    file_format: FileFormatOption = None,
) -> None:
    """Write files (Parquet, CSV, JSON lines, Arrow) into a table: append, or upsert by key.

    The values of CSV and JSON are read as the types of the table. With --create, types are inferred
    from a sample so that no value changes (007 stays a text), unless --type names them. An import
    that ends early reports how many rows are in the table; --skip continues after them.
    """
    if not create and (primary_key or partition_by or buckets or types):
        raise typer.BadParameter(
            "--primary-key, --partition-by, --buckets and --type need --create"
        )
    new = NewTable(
        may_create=create,
        primary_key=_listed(primary_key),
        partition_by=_listed(partition_by),
        buckets=buckets,
        types=_types(types or []),
    )
    cluster: GlobalOptions = context.obj
    with (
        _without_writer_logs(),
        cluster.named(name) as (session, path),
        _progress("importing") as advance,
    ):
        job = ImportJob(
            session,
            path,
            new,
            skip=skip,
            on_written=lambda rows: advance(rows, None),
        )
        try:
            job.run([(file, format_of(file, file_format)) for file in files])
        except KeyboardInterrupt:
            typer.echo(f"\nfluss: interrupted\n  {job.account()}", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except FlussError as error:
            typer.echo(f"fluss: {job.message(error)}\n  {job.account(error)}", err=True)
            raise typer.Exit(_REFUSED) from None
    typer.echo(f"{job.rows_in:,} rows written to {path}", err=True)


def export_rows(
    context: typer.Context,
    name: NameArgument,
    file: Annotated[str, typer.Argument(help="The file; - is the standard output.")],
    columns: ColumnsOption = None,
    where: WhereOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    file_format: FileFormatOption = None,
    *,
    metadata: MetadataOption = False,
) -> None:
    """Write the rows of a table into a file (Parquet, CSV, JSON lines, Arrow)."""
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        options = scan_options_of(
            columns, start, end, partitions, mode, where=where, metadata=metadata
        )
        scan = table.scan(**options)
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


def _listed(columns: str | None) -> list[str] | None:
    return None if columns is None else [each.strip() for each in columns.split(",")]


def _types(given: Sequence[str]) -> dict[str, DataType]:
    """Parse the values of `--type`."""
    found: dict[str, DataType] = {}
    for pair in given:
        name, sign, text = pair.rpartition("=")
        if not sign or not name:
            raise typer.BadParameter(f"--type {pair!r} is not NAME=TYPE")
        found[name] = parse_type(text)
    return found


@contextmanager
def _without_writer_logs() -> Iterator[None]:
    """Silence the writers' log of failed rows: the command reports all rows itself."""
    loggers = [logging.getLogger(name) for name in ("fluss.sender", "fluss.writer")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _progress(what: str) -> Iterator[Advance]:
    """Show rate and remaining time on the standard error if that is a terminal."""
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
    """Advances a progress bar."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def __call__(self, rows: int, total: int | None) -> None:
        """Add `rows` to the count; `total` is None while it is unknown."""
        speed = self._bar.tasks[0].speed
        rate = "" if speed is None else f"{speed:,.0f} rows/s"
        self._bar.update(self._task, advance=rows, total=total, rate=rate)
