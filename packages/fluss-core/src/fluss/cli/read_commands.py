"""The commands that read: ls, describe, head, tail, count, lookup."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
import typer

from fluss.cli.cli_session import ClusterOptions
from fluss.cli.row_output import OutputFormat, OutputFormatOption, write_rows
from fluss.cli.typed_keys import keys_of
from fluss.session import Scan, Table

NameArgument = Annotated[
    str, typer.Argument(help="database.table, or its URL.", show_default=False)
]
ColumnsOption = Annotated[
    str | None, typer.Option(help="The columns, separated by commas.", show_default=False)
]
StartOption = Annotated[
    str | None,
    typer.Option(help="The start: earliest, a time, an offset.", show_default=False),
]
EndOption = Annotated[
    str | None, typer.Option(help="The end: a time, an offset.", show_default=False)
]
PartitionsOption = Annotated[
    list[str] | None,
    typer.Option("--partition", help="Only these partitions: key=value.", show_default=False),
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
        typer.Argument(help="A database, or a partitioned table."),
    ] = None,
) -> None:
    """List databases, the tables of a database, or the partitions of a table, one per line."""
    cluster: ClusterOptions = context.obj
    with cluster.session() as session:
        if name is None:
            names = session.databases()
        elif "." in name:
            names = [each.partition_name for each in session.table(name).partitions()]
        else:
            names = session.tables(name)
    for found in names:
        typer.echo(found)


def describe(
    context: typer.Context,
    name: NameArgument,
    output_format: OutputFormatOption = None,
) -> None:
    """Show a table: its columns, keys, buckets, partitions and rows."""
    cluster: ClusterOptions = context.obj
    with cluster.table(name) as table:
        if output_format in {None, OutputFormat.TABLE}:
            typer.echo(repr(table))
            return
        write_rows(_column_rows(table), _COLUMN_SCHEMA, output_format)


def head(
    context: typer.Context,
    name: NameArgument,
    rows: RowsOption = 10,
    columns: ColumnsOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    output_format: OutputFormatOption = None,
) -> None:
    """Show the first rows that are found, in no particular order."""
    options = scan_options_of(columns, start, end, partitions, mode)
    cluster: ClusterOptions = context.obj
    with cluster.table(name) as table:
        scan = table.scan(limit=rows, **options)
        write_rows(scan.to_reader(), scan.schema, output_format)


def tail(
    context: typer.Context,
    name: NameArgument,
    rows: RowsOption = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then show new rows.")] = False,  # noqa: FBT002 - typer declares flags so
    columns: ColumnsOption = None,
    partitions: PartitionsOption = None,
    output_format: OutputFormatOption = None,
) -> None:
    """Show the last rows of a log, or the last changes of a primary-key table."""
    options = scan_options_of(columns, None, None, partitions, None)
    cluster: ClusterOptions = context.obj
    with cluster.table(name) as table:
        if table.primary_key:
            options |= {"mode": "changelog", "with_metadata": ["_change_type"]}
        scan = table.scan(tail=rows, **options)
        if not follow:
            write_rows(scan.to_reader(), scan.schema, output_format)
            return
        try:
            write_rows(tail_and_follow(table, scan, options), scan.schema, output_format)
        except KeyboardInterrupt:
            sys.stdout.flush()  # the user stopped following


def count(
    context: typer.Context,
    name: NameArgument,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
) -> None:
    """Count the rows of a table."""
    cluster: ClusterOptions = context.obj
    with cluster.table(name) as table:
        typer.echo(table.scan(**scan_options_of(None, start, end, partitions, mode)).count())


def lookup(
    context: typer.Context,
    name: NameArgument,
    keys: Annotated[
        list[str],
        typer.Argument(help="Keys: 7, or id=7,day=2026-01-01, or JSON.", show_default=False),
    ],
    columns: ColumnsOption = None,
    output_format: OutputFormatOption = None,
) -> None:
    """Look up rows by primary key; the exit code is 1 if one is missing."""
    cluster: ClusterOptions = context.obj
    with cluster.table(name) as table:
        found = table.lookup(
            keys_of(keys, table.primary_key, table.schema), columns=_names(columns)
        )
        present = found.filter(found["_found"]).drop_columns(["_found"])
        write_rows(present.to_batches(), present.schema, output_format)
        missing = [
            key
            for key, is_there in zip(keys, found["_found"].to_pylist(), strict=True)
            if not is_there
        ]
    if missing:
        typer.echo(f"fluss: not found: {', '.join(missing)}", err=True)
        raise typer.Exit(1)


def tail_and_follow(table: Table, scan: Scan, options: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """Read the rows of a scan, then follow the table after them."""
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
    """Return the options of a scan that were given."""
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
            "name": column.name,
            "type": str(column.data_type),
            "nullable": column.data_type.nullable,
            "primary_key": column.name in info.primary_keys,
            "partition_key": column.name in info.partition_keys,
            "bucket_key": column.name in info.bucket_keys,
            "comment": column.comment,
        }
        for column in info.schema.columns
    ]
    return [pa.RecordBatch.from_pylist(rows, schema=_COLUMN_SCHEMA)]
