"""The commands that show what is there: ls, describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from fluss.cli.files.format_names import OutputFormat
from fluss.cli.global_options import GlobalOptions, is_url
from fluss.errors import DatabaseNotFoundError, InvalidNameError, TableNotFoundError

if TYPE_CHECKING:
    from fluss.session import Session, Table

T = TypeVar("T")
Records = tuple[list[dict[str, Any]], Sequence[tuple[str, Any]]]

_LONG: Final = typer.Option("--long", "-l", help="Show facts beside each name.")
_TEXT: Final = frozenset({None, OutputFormat.TABLE})


def list_names(
    context: typer.Context,
    database_or_table: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A database, or a partitioned table, or its URL.",
            show_default=False,
        ),
    ] = None,
    *,
    long: Annotated[bool, _LONG] = False,
) -> None:
    """List databases, the tables of a database, or the partitions of a table, one per line.

    Examples:
        fluss ls
        fluss ls -l shop
        fluss ls shop.visits
        fluss ls shop -o json
    """
    cluster: GlobalOptions = context.obj
    url, name = _place_of(database_or_table)
    with cluster.session(url) as session:
        if not long:
            write_names(_names(session, name), cluster)
            return
        from fluss.cli.row_output import write_records

        write_records(*_long_list(session, name), cluster.output)


def _place_of(given: str | None) -> tuple[str | None, str | None]:
    """Return the URL that was given, and the database or table in it or of that name."""
    if given is None or not is_url(given):
        return None, given
    from fluss.connection.url import parse_url

    parsed = parse_url(given)
    return given, f"{parsed.database}.{parsed.table}" if parsed.table else parsed.database


def write_names(names: Sequence[str], cluster: GlobalOptions) -> None:
    """Write names, one per line, unless `--output` names a format."""
    if cluster.output is None:
        for name in names:
            typer.echo(name)
        return
    from fluss.cli.row_output import write_records

    write_records([{"name": each} for each in names], [("name", "string")], cluster.output)


def describe(
    context: typer.Context,
    database_or_table: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A database, or database.table, or its URL.", show_default=False
        ),
    ],
    *,
    buckets: Annotated[
        bool, typer.Option("--buckets", help="Show leader, replicas and offsets of each bucket.")
    ] = False,
) -> None:
    """Show a table: columns, keys, buckets, properties, rows; or a database.

    With -o json, csv or arrow it writes a row for each column of the table.

    Examples:
        fluss describe shop.orders
        fluss describe shop.orders --buckets
        fluss describe shop.orders -o json | jq -r .name
        fluss describe shop
    """
    from fluss.cli.row_output import write_records

    cluster: GlobalOptions = context.obj
    with cluster.named(database_or_table) as (session, path):
        if is_database(session, path):
            _describe_database(session, path, cluster)
            return
        table = session.table(path)
        if buckets:
            write_records(*bucket_records(table), cluster.output)
        elif cluster.output in _TEXT:
            typer.echo("\n".join([repr(table), *_facts_of(table)]))
        else:
            write_records(*_column_records(table), cluster.output)


# --- lists ----------------------------------------------------------------------------------------


def _names(session: Session, name: str | None) -> list[str]:
    if name is None:
        return session.databases()
    if "." in name:
        return [each.partition_name for each in session.table(name).partitions()]
    return session.tables(name)


def _long_list(session: Session, name: str | None) -> Records:
    if name is None:
        return _databases(session), _DATABASE
    if "." in name:
        return partition_records(session.table(name)), PARTITION
    found = [
        _if_there(partial(_table_record, session, name, each)) for each in session.tables(name)
    ]
    return [each for each in found if each is not None], _TABLE


_DATABASE: Final = (
    ("name", "string"),
    ("tables", "int64"),
    ("created", "string"),
    ("comment", "string"),
)
_TABLE: Final = (
    ("name", "string"),
    ("kind", "string"),
    ("columns", "int64"),
    ("buckets", "int64"),
    ("replicas", "int64"),
    ("partitions", "int64"),
    ("created", "string"),
    ("comment", "string"),
)
PARTITION: Final = (
    ("name", "string"),
    ("id", "int64"),
    ("buckets", "int64"),
    ("log_rows", "int64"),
)


def _databases(session: Session) -> list[dict[str, Any]]:
    records = []
    for name in session.databases():
        info = _if_there(partial(session.database_info, name))
        if info is not None:
            records.append(
                {
                    "name": name,
                    "tables": len(session.tables(name)),
                    "created": moment_text(info.created_time),
                    "comment": info.database_descriptor.comment,
                }
            )
    return records


def _table_record(session: Session, database: str, name: str) -> dict[str, Any]:
    table = session.table(f"{database}.{name}")
    info = table.info
    return {
        "name": name,
        "kind": "primary key" if info.has_primary_key() else "log",
        "columns": len(info.schema.columns),
        "buckets": info.num_buckets,
        "replicas": info.options.replication_factor,
        "partitions": len(table.partitions()) if info.is_partitioned() else None,
        "created": moment_text(info.created_time),
        "comment": info.comment,
    }


def partition_records(table: Table) -> list[dict[str, Any]]:
    """Return the name, the id, the buckets and the length of the log of each partition."""
    rows: dict[str, int] = {}
    offsets = table.offsets()
    for bucket in offsets.to_pylist():
        rows[bucket["partition"]] = (
            rows.get(bucket["partition"], 0) + bucket["end"] - bucket["earliest"]
        )
    return [
        {
            "name": each.partition_name,
            "id": each.partition_id,
            "buckets": table.info.bucket_count_of(each),
            "log_rows": rows.get(each.partition_name),
        }
        for each in table.partitions()
    ]


def _if_there(ask: Callable[[], T]) -> T | None:
    """Return the answer; None for what was dropped since it was listed."""
    try:
        return ask()
    except (DatabaseNotFoundError, TableNotFoundError):
        return None


def moment_text(milliseconds: int) -> str | None:
    """Return a time as text; None where the server reports none."""
    if not milliseconds:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


# --- one table, one database ----------------------------------------------------------------------


def _facts_of(table: Table) -> list[str]:
    """Return the facts beside those that every table shows, one line each."""
    info = table.info
    facts: list[tuple[str, Any]] = [
        ("partitioned by", ", ".join(info.partition_keys)),
        ("table id", info.table_id),
        ("created", moment_text(info.created_time)),
        ("changed", moment_text(info.modified_time)),
    ]
    lines = [f"{name}: {value}" for name, value in facts if value not in {None, ""}]
    return [
        *lines,
        *_property_lines("properties", info.properties.shown()),
        *_property_lines("custom properties", info.custom_properties.shown()),
    ]


def _property_lines(title: str, properties: Mapping[str, str]) -> list[str]:
    if not properties:
        return []
    return [f"{title}:", *(f"  {key} = {value}" for key, value in sorted(properties.items()))]


def is_database(session: Session, name: str) -> bool:
    """Whether a name without a dot is not that of a table in the database of the URL."""
    if "." in name:
        return False
    try:
        session.path_of(name)
    except InvalidNameError:
        return True
    return False


def _describe_database(session: Session, name: str, cluster: GlobalOptions) -> None:
    from fluss.cli.row_output import write_records

    info = session.database_info(name)
    tables = session.tables(name)
    record = {
        "name": name,
        "tables": len(tables),
        "created": moment_text(info.created_time),
        "comment": info.database_descriptor.comment,
    }
    if cluster.output not in _TEXT:
        write_records([record], _DATABASE, cluster.output)
        return
    typer.echo(f"Database {name}")
    for key in ("comment", "created"):
        if record[key]:
            typer.echo(f"{key}: {record[key]}")
    for line in _property_lines("properties", info.database_descriptor.custom_properties.shown()):
        typer.echo(line)
    typer.echo(f"tables: {len(tables)}")
    for table in tables:
        typer.echo(f"  {table}")


_COLUMN: Final = (
    ("name", "string"),
    ("type", "string"),
    ("nullable", "bool"),
    ("primary_key", "bool"),
    ("partition_key", "bool"),
    ("bucket_key", "bool"),
    ("comment", "string"),
)


def _column_records(table: Table) -> Records:
    info = table.info
    records = [
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
    return records, _COLUMN


_BUCKET: Final = (
    ("partition", "string"),
    ("bucket", "int32"),
    ("leader", "int32"),
    ("replicas", "string"),
    ("in_sync", "string"),
    ("earliest", "int64"),
    ("end", "int64"),
)


def bucket_records(table: Table) -> Records:
    """Return the leader, the replicas and the offsets of each bucket."""
    places = {(each["partition"], each["bucket"]): each for each in table.offsets().to_pylist()}
    records = []
    for bucket in table.replicas().to_pylist():
        offsets = places.get((bucket["partition"], bucket["bucket"]), {})
        records.append(
            {
                **bucket,
                "replicas": ", ".join(map(str, bucket["replicas"])),
                "in_sync": None
                if bucket["in_sync"] is None
                else ", ".join(map(str, bucket["in_sync"])),
                "earliest": offsets.get("earliest"),
                "end": offsets.get("end"),
            }
        )
    is_partitioned = bool(table.partition_by)
    columns = _BUCKET if is_partitioned else _BUCKET[1:]
    names = [name for name, _ in columns]
    return [{name: each[name] for name in names} for each in records], columns
