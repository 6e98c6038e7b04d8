"""The commands that write single rows, or rows from a pipe: insert, upsert, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fluss.cli.confirming import YesOption, confirm
from fluss.cli.global_options import GlobalOptions
from fluss.cli.scan_arguments import NameArgument
from fluss.errors import FlussError, UnsupportedOperationError

if TYPE_CHECKING:
    import pyarrow as pa

    from fluss.session import Table

_STANDARD = "-"

RowWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ROW",
        help="One row as name=value words, or JSON objects; - or nothing: the standard input.",
        show_default=False,
    ),
]
CsvOption = Annotated[
    bool, typer.Option("--csv", help="The standard input is CSV; JSON lines otherwise.")
]


def insert(
    context: typer.Context, name: NameArgument, row: RowWords = None, *, csv: CsvOption = False
) -> None:
    """Append rows to a log table.

    The values are read as the types of the table; a column that is not given is NULL. Rows of the
    standard input are written as they come.

    Examples:
        fluss insert shop.clicks at=2026-01-31T12:00:00 url=/start
        fluss insert shop.clicks '{"url": "/start", "tags": ["a", "b"]}'
        tail -f clicks.jsonl | fluss insert shop.clicks -
        fluss insert shop.clicks --csv < clicks.csv
    """
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        if table.primary_key:
            raise UnsupportedOperationError(
                f"{table.name} has a primary key: a row replaces the one of its key.",
                hint=f"`fluss upsert {table.name} ...` writes to it",
                table=table.name,
            )
        _write(cluster, table, row, table.append, csv=csv)


def upsert(
    context: typer.Context,
    name: NameArgument,
    row: RowWords = None,
    *,
    csv: CsvOption = False,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Write the given columns; the others keep their values."),
    ] = False,
) -> None:
    """Insert rows into a primary-key table, or replace those with the same key.

    The values are read as the types of the table; a column that is not given is NULL, or keeps its
    value with --partial. Rows of the standard input are written as they come; with --partial their
    columns are those of the first row.

    Examples:
        fluss upsert shop.orders id=7 price=9.90 country=DE
        fluss upsert shop.orders id=7 price=8.50 --partial
        fluss upsert shop.orders '{"id": 7, "country": null}' --partial
        fluss upsert shop.orders - < orders.jsonl
    """
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        if not table.primary_key:
            raise UnsupportedOperationError(
                f"{table.name} has no primary key: there is no row to replace.",
                hint=f"`fluss insert {table.name} ...` appends to it",
                table=table.name,
            )
        _write(
            cluster, table, row, table.update if partial else table.upsert, csv=csv, partial=partial
        )


def delete(
    context: typer.Context,
    name: NameArgument,
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY",
            help="A key: 7, or id=7,day=2026-01-01, or JSON; - is the standard input.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", help="Delete all rows that fulfil a condition in SQL."),
    ] = None,
    *,
    csv: CsvOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --where: only count the rows.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Delete rows by primary key, or by a condition; a key without a row is no error.

    With --where the rows are counted first, and it asks before they are deleted.

    Examples:
        fluss delete shop.orders 7 8
        fluss delete shop.visits id=7,day=2026-01-31
        fluss delete shop.orders --where "country = 'DE' AND price < 1" --dry-run
        jq -c '{id}' old.jsonl | fluss delete shop.orders -
    """
    if (where is None) == (not keys):
        raise typer.BadParameter("Name keys, or a condition with --where")
    if dry_run and where is None:
        raise typer.BadParameter("--dry-run counts the rows of --where; keys are counted already")
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        if where is not None:
            _delete_where(cluster, table, where, dry_run=dry_run, yes=yes)
        else:
            _delete_keys(cluster, table, keys or [], csv=csv)


def _delete_where(
    cluster: GlobalOptions, table: Table, where: str, *, dry_run: bool, yes: bool
) -> None:
    from fluss.cli.typed_keys import check_keyed

    check_keyed(table.primary_key)
    number = table.scan(filter=where).count()
    if dry_run:
        typer.echo(number)
        return
    if number:
        confirm(f"Delete {_rows(number)} of {table.name}?", yes=yes)
    report = table.delete(where=where)
    cluster.report(f"{_rows(report.rows)} deleted from {table.name}")


def _delete_keys(cluster: GlobalOptions, table: Table, keys: list[str], *, csv: bool) -> None:
    from fluss.cli.typed_keys import check_keyed, keys_of

    if keys == [_STANDARD]:
        check_keyed(table.primary_key)
        _write_all(cluster, table, _standard_keys(table, csv=csv), table.delete, "deleted from")
        return
    frame = keys_of(keys, table.primary_key, table.schema)
    report = table.delete(frame)
    cluster.report(f"{_rows(report.rows)} deleted from {table.name}")


# --- writing --------------------------------------------------------------------------------------


def _write(
    cluster: GlobalOptions,
    table: Table,
    words: list[str] | None,
    write: Callable[[Any], Any],
    *,
    csv: bool,
    partial: bool = False,
) -> None:
    optional = set(table.fluss_schema.auto_increment_columns)
    if not words or words == [_STANDARD]:
        frames = _standard(table.schema, optional, csv=csv, partial=partial)
    else:
        from fluss.cli.files.typed_rows import parsed_rows, table_of

        rows = parsed_rows(words, table.schema)
        optional |= set(table.schema.names) - set(table.primary_key) if partial else set()
        frames = [table_of(rows, table.schema, optional=optional)]
    _write_all(cluster, table, frames, write, "written to")


def _write_all(
    cluster: GlobalOptions,
    table: Table,
    frames: Iterable[Any],
    write: Callable[[Any], Any],
    done: str,
) -> None:
    """Write frames one after the other; an error says how many rows were written before."""
    rows = 0
    try:
        for frame in frames:
            write(frame)
            rows += frame.num_rows
    except FlussError as error:
        if rows:
            raise error.with_context(
                hint=(*error.hints, f"{_rows(rows)} before this one were {done} {table.name}")
            ) from None
        raise
    except KeyboardInterrupt:
        cluster.report(f"\nfluss: interrupted; {_rows(rows)} {done} {table.name}")
        raise
    cluster.report(f"{_rows(rows)} {done} {table.name}")


def _standard(
    schema: pa.Schema, optional: set[str], *, csv: bool, partial: bool = False
) -> Iterable[pa.RecordBatch]:
    from fluss.cli.files.format_names import FileFormat
    from fluss.cli.standard_rows import standard_rows

    form = FileFormat.CSV if csv else FileFormat.JSON
    return standard_rows(schema, form, optional=optional, partial=partial)


def _standard_keys(table: Table, *, csv: bool) -> Iterable[pa.RecordBatch]:
    import pyarrow as pa

    key = pa.schema([table.schema.field(name) for name in table.primary_key])
    return _standard(key, set(), csv=csv)


def _rows(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"
