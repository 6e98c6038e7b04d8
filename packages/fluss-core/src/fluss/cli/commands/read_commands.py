"""The commands that read rows: head, tail, count, lookup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluss.cli.files.format_names import OutputFormat
from fluss.cli.global_options import GlobalOptions
from fluss.cli.scan_arguments import (
    ColumnsOption,
    EndOption,
    LakeOption,
    MetadataOption,
    ModeOption,
    NameArgument,
    PartitionsOption,
    RowsOption,
    StartOption,
    WhereOption,
    names_of,
    scan_options_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from fluss.session import Scan, Table

NamesArgument = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help="database.table, or its URL.", show_default=False),
]
KeysArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="KEY", help="A key: 7, or id=7,day=2026-01-01, or JSON.", show_default=False
    ),
]


def head(
    context: typer.Context,
    name: NameArgument,
    rows: RowsOption = 10,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    lake: LakeOption = None,
    *,
    metadata: MetadataOption = False,
) -> None:
    """Show the first rows that are found, in no particular order.

    Examples:
        fluss head shop.orders
        fluss head shop.orders -n 3 --columns id,price --where "price > 10"
        fluss head shop.orders --mode changelog --start -1h --metadata
        fluss head shop.orders --partition day=2026-01-31 -o csv > orders.csv
    """
    from fluss.cli.row_output import write_rows

    options = scan_options_of(
        columns, start, end, partitions, mode, where=where, metadata=metadata, lake=lake
    )
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        scan = table.scan(limit=rows, **options)
        write_rows(scan.to_reader(), scan.schema, cluster.output)


def tail(
    context: typer.Context,
    names: NamesArgument,
    rows: RowsOption = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then show new rows.")] = False,  # noqa: FBT002 - typer declares flags so
    columns: ColumnsOption = None,
    where: WhereOption = None,
    partitions: PartitionsOption = None,
    *,
    metadata: MetadataOption = False,
) -> None:
    """Show the last rows of a log, or the last changes of a primary-key table.

    With --follow it goes on with new rows until Ctrl-C; the exit code is then 130. The last rows
    are found before --where chooses among them. Rows of several tables are JSON lines, with the
    name of the table in _table.

    Examples:
        fluss tail shop.clicks
        fluss tail shop.clicks shop.orders -f -n 0
        fluss tail shop.clicks -f -n 0 --where "country = 'DE'"
        fluss tail shop.orders -f --metadata | jq -r .id
    """
    from fluss.cli.row_output import write_rows

    options = scan_options_of(columns, partitions=partitions, where=where, metadata=metadata)
    cluster: GlobalOptions = context.obj
    if len(names) > 1:
        from fluss.cli.commands.tail_tables import tail_tables

        tail_tables(cluster, names, rows, options, follow=follow)
        return
    with cluster.table(names[0]) as table:
        if table.primary_key:
            options = {"with_metadata": ["_change_type"], **options, "mode": "changelog"}
        scan = table.scan(tail=rows, **options)
        found = tail_and_follow(table, scan, options) if follow else scan.to_reader()
        write_rows(found, scan.schema, cluster.output, is_endless=follow)


def count(
    context: typer.Context,
    name: NameArgument,
    where: WhereOption = None,
    start: StartOption = None,
    end: EndOption = None,
    partitions: PartitionsOption = None,
    mode: ModeOption = None,
    lake: LakeOption = None,
) -> None:
    """Count the rows of a table; of a log without --where by the headers of batches alone.

    Examples:
        fluss count shop.orders
        fluss count shop.orders --where "country = 'DE'"
        fluss count shop.clicks --start 2026-01-31T00:00Z --end 2026-02-01T00:00Z
    """
    options = scan_options_of(None, start, end, partitions, mode, where=where, lake=lake)
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        number = table.scan(**options).count()
    if cluster.output in {None, OutputFormat.TABLE}:
        typer.echo(number)
        return
    from fluss.cli.row_output import write_records

    write_records([{"count": number}], [("count", "int64")], cluster.output)


def lookup(
    context: typer.Context,
    name: NameArgument,
    keys: KeysArgument,
    columns: ColumnsOption = None,
) -> None:
    """Look up rows by primary key; the exit code is 1 if one is missing.

    Examples:
        fluss lookup shop.orders 7 8
        fluss lookup shop.visits id=7,day=2026-01-31
        fluss lookup shop.visits '{"id": 7, "day": "2026-01-31"}' --columns id,pages
    """
    from fluss.cli.row_output import write_rows
    from fluss.cli.typed_keys import keys_of

    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        found = table.lookup(
            keys_of(keys, table.primary_key, table.schema), columns=names_of(columns)
        )
        present = found.filter(found["_found"]).drop_columns(["_found"])
        write_rows(present.to_batches(), present.schema, cluster.output)
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
