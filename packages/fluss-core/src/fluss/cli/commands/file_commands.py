"""`fluss import` and `fluss export`: files into a table and out of it, batch by batch.

Files are streamed, so memory does not grow with their size. An import that ends early reports how
many rows are in the table and how to continue; an export that ends early leaves nothing.
Completion loads this file, so it imports no Arrow.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.files.format_names import FileFormat, OutputFormat
from fluss.cli.global_options import GlobalOptions
from fluss.cli.scan_arguments import (
    ColumnsOption,
    EndOption,
    LakeOption,
    MetadataOption,
    ModeOption,
    NameArgument,
    PartitionsOption,
    StartOption,
    WhereOption,
    scan_options_of,
)
from fluss.errors import FlussError, InvalidValueError

if TYPE_CHECKING:
    import pyarrow as pa

    from fluss.cli.files.new_table import NewTable
    from fluss.model.types.data_type import DataType

_STANDARD: Final = "-"
_REFUSED = 1
_INTERRUPTED = 130
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

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
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Files, folders, or patterns such as 'logs/**/*.csv.gz'; - is the standard input.",
        ),
    ],
    *,
    create: Annotated[
        bool,
        typer.Option("--create", help="Create the table from the first file if it does not exist."),
    ] = False,
    primary_key: Annotated[str | None, typer.Option(help="With --create: its columns.")] = None,
    partition_by: Annotated[str | None, typer.Option(help="With --create: its columns.")] = None,
    buckets: Annotated[int | None, typer.Option(help="With --create: how many.", min=1)] = None,
    types: TypesOption = None,
    skip: Annotated[
        int | None, typer.Option(min=0, help="Skip this many rows of the files.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Write all rows, also after a run that ended early.")
    ] = False,
    file_format: FileFormatOption = None,
) -> None:
    """Write files (Parquet, CSV, JSON lines, Arrow) into a table: append, or upsert by key.

    The values of CSV and JSON are read as the types of the table. With --create, types are inferred
    from a sample so that no value changes (007 stays a text), unless --type names them.

    An import that was killed or interrupted continues when the same command runs again, and writes
    no row twice. Of a pipe, --skip leaves out the rows that are in.

    Examples:
        fluss import shop.orders orders.csv --create --primary-key id
        fluss import shop.clicks 'clicks/**/*.json.gz'
        zcat orders.csv.gz | fluss import shop.orders - --file-format csv
    """
    from fluss.cli.files.importing import ImportJob, ImportRequest, Observer
    from fluss.cli.files.input_files import input_files
    from fluss.cli.progress_bar import progress_bar

    new = _new_table(create, primary_key, partition_by, buckets, types or [])
    request = ImportRequest(
        words=files,
        files=input_files(files, file_format),
        skip=skip,
        restart=restart,
        options={"file_format": file_format},
    )
    options: GlobalOptions = context.obj
    with _without_writer_logs(), options.named(name) as (session, path):
        before: list[int] = []

        def continued(rows: int) -> None:
            before.append(rows)
            if not options.is_quiet:
                bar.note(
                    f"continuing an import that ended early: {rows:,} rows are in {path} "
                    "(--restart writes all rows again)"
                )

        def written(rows: int) -> None:
            bar.add(rows, fraction=job.fraction)

        observer = Observer(on_written=written, on_continued=continued)
        job = ImportJob(session, path, new, request, observer)
        try:
            with progress_bar("importing", is_shown=options.shows_progress) as bar:
                job.run()
        except KeyboardInterrupt:
            typer.echo(f"\nfluss: interrupted\n  {job.account()}", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except FlussError as error:
            typer.echo(f"fluss: {job.message(error)}\n  {job.account(error)}", err=True)
            raise typer.Exit(_REFUSED) from None
    after = f", after {before[0]:,} of an earlier run" if before else ""
    options.report(f"{job.rows_in:,} rows written to {path}{after}")


def export_rows(
    context: typer.Context,
    name: NameArgument,
    file: Annotated[
        str, typer.Argument(help="The file, or with --partition-by the folder; - is the output.")
    ],
    *,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    lake: LakeOption = None,
    metadata: MetadataOption = False,
    partition_by: Annotated[
        str | None,
        typer.Option(
            help="Write a folder of files, one folder for each value of these columns: "
            "day=2026-01-01/part-0.parquet.",
            show_default=False,
        ),
    ] = None,
    file_format: FileFormatOption = None,
) -> None:
    """Write the rows of a table into a file (Parquet, CSV, JSON lines, Arrow).

    The file gets its name when it is complete: one that ends early leaves nothing.

    Examples:
        fluss export shop.orders orders.parquet --where "price > 10"
        fluss export shop.orders orders --partition-by day,country
        fluss export shop.orders - --file-format csv | gzip > orders.csv.gz
    """
    from fluss.cli.progress_bar import progress_bar

    options: GlobalOptions = context.obj
    by = _listed(partition_by)
    if by and file == _STANDARD:
        raise typer.BadParameter("--partition-by writes a folder, and - is the standard output")
    file_format = file_format or _format_of_output(file, options)
    with options.table(name) as table:
        scan = table.scan(
            **scan_options_of(
                columns, start, end, partitions, mode, where=where, metadata=metadata, lake=lake
            )
        )
        total = scan.stats.rows_max
        count = 0
        with (
            _what_is_left(file, lambda: count),
            progress_bar("exporting", is_shown=options.shows_progress) as bar,
            _opened(file, file_format, scan.schema, by) as write,
        ):
            for batch in scan.to_reader():
                write(batch)
                count += batch.num_rows
                bar.add(batch.num_rows, fraction=count / total if total else None)
    options.report(f"{count:,} rows read from {name}")


def _new_table(
    create: bool,  # noqa: FBT001 - a flag of the command
    primary_key: str | None,
    partition_by: str | None,
    buckets: int | None,
    types: Sequence[str],
) -> NewTable:
    from fluss.cli.files.new_table import NewTable

    if not create and (primary_key or partition_by or buckets or types):
        raise typer.BadParameter(
            "--primary-key, --partition-by, --buckets and --type need --create"
        )
    return NewTable(
        may_create=create,
        primary_key=_listed(primary_key),
        partition_by=_listed(partition_by),
        buckets=buckets,
        types=_types(types),
    )


def _format_of_output(file: str, options: GlobalOptions) -> FileFormat | None:
    """Return the format that `--output` chooses for the standard output."""
    if options.output is None:
        return None
    if file != _STANDARD or options.output is OutputFormat.TABLE:
        raise typer.BadParameter(
            f"-o {options.output} is for rows on the standard output; --file-format chooses the "
            "format of a file, and `fluss head` shows a table"
        )
    return FileFormat(options.output.value)


def _opened(
    file: str, chosen: FileFormat | None, schema: pa.Schema, by: Sequence[str] | None
) -> Any:
    from fluss.cli.files.file_formats import format_of, open_sink
    from fluss.cli.files.partitioned_folder import open_partitioned

    if not by:
        return open_sink(file, format_of(file, chosen), schema)
    if chosen is None and Path(file).suffix:
        raise InvalidValueError(
            f"--partition-by writes a folder, and {file} looks like a file.",
            hint="name a folder; --file-format chooses the format of the files in it",
        )
    return open_partitioned(file, chosen or FileFormat.PARQUET, schema, by)


@contextmanager
def _what_is_left(file: str, rows: Any) -> Iterator[None]:
    """Report how far an export came that ends early."""
    left = "" if file == _STANDARD else f"; nothing is left of {file}"
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nfluss: interrupted\n  {rows():,} rows were read{left}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    except OSError as error:
        if error.errno == errno.EPIPE or isinstance(error, FlussError) or file == _STANDARD:
            raise
        is_begun = rows() or error.errno in _NO_SPACE
        so_far = f"; {rows():,} rows were read{left}" if is_begun else ""
        raise InvalidValueError(
            f"{file} cannot be written: {error.strerror or error}{so_far}.",
            hint=_how_to_write(file, error.errno),
        ) from None


def _how_to_write(file: str, number: int | None) -> str | None:
    if number in _NO_SPACE:
        return "make room, or export a part: --partition, --start and --end, --columns"
    folder = Path(file).parent
    if number == errno.ENOENT and not folder.exists():
        return f"mkdir -p {folder}"
    return None


def _listed(columns: str | None) -> list[str] | None:
    return None if columns is None else [each.strip() for each in columns.split(",")]


def _types(given: Sequence[str]) -> dict[str, DataType]:
    """Parse the values of `--type`."""
    from fluss.model.types.type_text import parse_type

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
