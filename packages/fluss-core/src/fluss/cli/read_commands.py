"""The commands that read: ls, describe, head, tail, count, lookup."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
import typer

from fluss.cli.cli_session import TableArgument
from fluss.cli.row_output import Format, FormatOption, write_rows
from fluss.cli.typed_keys import keys_of
from fluss.session.scan import Scan
from fluss.session.table import Table

NameArgument = Annotated[
    str, typer.Argument(help="database.table, or its URL.", show_default=False)
]
ColumnsOption = Annotated[
    str | None, typer.Option(help="Which columns, with commas.", show_default=False)
]
StartOption = Annotated[
    str | None,
    typer.Option(help="Where to begin: earliest, a time, an offset.", show_default=False),
]
EndOption = Annotated[
    str | None, typer.Option(help="Where to end: a time, an offset.", show_default=False)
]
PartitionsOption = Annotated[
    list[str] | None,
    typer.Option("--partition", help="Which partitions: key=value.", show_default=False),
]
ModeOption = Annotated[
    str | None,
    typer.Option(help="state, log, changelog or binlog.", show_default=False),
]
RowsOption = Annotated[int, typer.Option("--rows", "-n", min=0, help="How many rows.")]


def list_names(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="A database, or a table whose partitions are wanted."),
    ] = None,
) -> None:
    """List databases, the tables of a database, or the partitions of a table; a name a line."""
    place: TableArgument = context.obj
    with place.session() as session:
        if name is None:
            names = session.databases()
        elif "." in name:
            names = [each.partition_name for each in session.table(name).partitions()]
        else:
            names = session.tables(name)
    for each in names:
        typer.echo(each)


def describe(
    context: typer.Context,
    name: NameArgument,
    form: FormatOption = None,
) -> None:
    """Show a table: its columns, keys, buckets, partitions and rows."""
    place: TableArgument = context.obj
    with place.table(name) as table:
        if form in {None, Format.TABLE}:
            typer.echo(repr(table))
            return
        write_rows(_column_rows(table), _COLUMN_SCHEMA, form)


def head(
    context: typer.Context,
    name: NameArgument,
    rows: RowsOption = 10,
    columns: ColumnsOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    form: FormatOption = None,
) -> None:
    """Show rows of a table, whichever are found first."""
    options = scan_options_of(columns, start, end, partitions, mode)
    place: TableArgument = context.obj
    with place.table(name) as table:
        scan = table.scan(limit=rows, **options)
        write_rows(scan.to_reader(), scan.schema, form)


def tail(
    context: typer.Context,
    name: NameArgument,
    rows: RowsOption = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,  # noqa: FBT002 - typer's way to say a flag
    columns: ColumnsOption = None,
    partitions: PartitionsOption = None,
    form: FormatOption = None,
) -> None:
    """Show the last rows of a log, or the last changes of a primary-key table."""
    options = scan_options_of(columns, None, None, partitions, None)
    place: TableArgument = context.obj
    with place.table(name) as table:
        if table.primary_key:
            options |= {"mode": "changelog", "with_metadata": ["_change_type"]}
        scan = table.scan(tail=rows, **options)
        if not follow:
            write_rows(scan.to_reader(), scan.schema, form)
            return
        try:
            write_rows(tail_and_follow(table, scan, options), scan.schema, form)
        except KeyboardInterrupt:
            sys.stdout.flush()  # this is how one stops following


def count(
    context: typer.Context,
    name: NameArgument,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
) -> None:
    """Count the rows of a table."""
    place: TableArgument = context.obj
    with place.table(name) as table:
        typer.echo(table.scan(**scan_options_of(None, start, end, partitions, mode)).count())


def lookup(
    context: typer.Context,
    name: NameArgument,
    keys: Annotated[
        list[str],
        typer.Argument(help="Keys: 7, or id=7,day=2026-01-01, or JSON.", show_default=False),
    ],
    columns: ColumnsOption = None,
    form: FormatOption = None,
) -> None:
    """Look rows up by primary key; exit code 1 when one is missing."""
    place: TableArgument = context.obj
    with place.table(name) as table:
        asked = keys_of(keys, table.primary_key, table.schema)
        found = table.lookup(asked, columns=_names(columns))
        present = found.filter(found["_found"]).drop_columns(["_found"])
        write_rows(present.to_batches(), present.schema, form)
        missing = [
            key
            for key, is_there in zip(keys, found["_found"].to_pylist(), strict=True)
            if not is_there
        ]
    if missing:
        typer.echo(f"fluss: not found: {', '.join(missing)}", err=True)
        raise typer.Exit(1)


def tail_and_follow(table: Table, scan: Scan, options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a scan, and then those that come after them."""
    follower = table.follow(start=scan.cursor(), **options)
    yield from scan.to_reader()
    with follower:
        yield from follower


def scan_options_of(
    columns: str | None,
    start: str | None,
    end: str | None,
    partitions: list[str] | None,
    mode: str | None,
) -> dict[str, Any]:
    """The options of a scan that were said."""
    given = {
        "columns": _names(columns),
        "start": start,
        "end": end,
        "partitions": partitions or None,
        "mode": mode,
    }
    return {name: value for name, value in given.items() if value is not None}


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [each.strip() for each in columns.split(",")]


_COLUMN_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("nullable", pa.bool_()),
        ("primary_key", pa.bool_()),
        ("partition_key", pa.bool_()),
        ("bucket_key", pa.bool_()),
        ("comment", pa.string()),
    ]
)


def _column_rows(table: Table) -> list[pa.RecordBatch]:
    info = table.info
    rows = [
        {
            "name": each.name,
            "type": str(each.data_type),
            "nullable": each.data_type.nullable,
            "primary_key": each.name in info.primary_keys,
            "partition_key": each.name in info.partition_keys,
            "bucket_key": each.name in info.bucket_keys,
            "comment": each.comment,
        }
        for each in info.schema.columns
    ]
    return [pa.RecordBatch.from_pylist(rows, schema=_COLUMN_SCHEMA)]
