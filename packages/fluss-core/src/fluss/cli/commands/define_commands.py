"""The commands that define databases and tables: create, drop, alter."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.confirming import YesOption, confirm
from fluss.cli.global_options import GlobalOptions, is_url
from fluss.cli.scan_arguments import NameArgument, names_of
from fluss.errors import (
    DatabaseNotFoundError,
    InvalidSchemaError,
    InvalidValueError,
)

if TYPE_CHECKING:
    from fluss.cli.files.format_names import FileFormat
    from fluss.model.schema.schema import Schema
    from fluss.session import Session

_SCHEMA_BYTES_MAX: Final = 1 << 20


_SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A property: table.log.ttl=7d; others are your own.", show_default=False
    ),
]


def create(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="database, or database.table, or its URL.", show_default=False),
    ],
    schema: Annotated[
        str | None,
        typer.Argument(
            help="The columns of a table: 'id BIGINT NOT NULL, name STRING, PRIMARY KEY (id)'.",
            show_default=False,
        ),
    ] = None,
    schema_file: Annotated[
        str | None,
        typer.Option(help="A file with the columns as text; - is the standard input."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(help="A file of rows (Parquet, CSV, JSON lines, Arrow) to infer them from."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="A table to copy columns, keys, partitions and properties of; not secrets."
        ),
    ] = None,
    primary_key: Annotated[str | None, typer.Option(help="The columns of its key.")] = None,
    partition_by: Annotated[str | None, typer.Option(help="The columns that divide it.")] = None,
    bucket_key: Annotated[
        str | None, typer.Option(help="The columns that choose the bucket of a row.")
    ] = None,
    buckets: Annotated[
        int | None, typer.Option(help="How many buckets, in each partition.", min=1)
    ] = None,
    auto_increment: Annotated[
        str | None, typer.Option(help="A column that the servers count up.")
    ] = None,
    comment: Annotated[str | None, typer.Option(help="A description.")] = None,
    properties: _SetOption = None,
    *,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave what exists as it is.")
    ] = False,
) -> None:
    """Create a database, or a table.

    Examples:
        fluss create shop
        fluss create shop.orders "id BIGINT, price DECIMAL(9, 2)" --primary-key id
        fluss create shop.clicks "url STRING, day STRING" --partition-by day --buckets 3
        fluss create shop.visits --schema-file visits.sql --set table.log.ttl=7d
        fluss create shop.visits --sample visits.parquet
        fluss create shop.orders_2 --like shop.orders
    """
    cluster: GlobalOptions = context.obj
    sources = [each for each in (schema, schema_file, sample, like) if each is not None]
    facts: dict[str, Any] = {
        "primary_key": names_of(primary_key),
        "partition_by": names_of(partition_by),
        "bucket_key": names_of(bucket_key),
        "buckets": buckets,
        "auto_increment": auto_increment,
    }
    if len(sources) > 1:
        raise typer.BadParameter(
            "the columns are given twice; give SCHEMA, --schema-file, --sample or --like"
        )
    with cluster.named(name) as (session, path):
        if sources or "." in path:
            if not sources:
                raise typer.BadParameter(
                    f"{path} is a table, and its columns are missing; add "
                    "'id BIGINT, name STRING', --schema-file, --sample or --like"
                )
            given = _columns(session, schema, schema_file, sample, like, facts)
            secrets = facts.pop("secrets", ())
            _create_table(session, path, given, facts, comment, _pairs(properties), if_not_exists)
            cluster.report(f"created table {session.path_of(path)}")
            _report_left_out(cluster, path, secrets, _pairs(properties))
            return
        if any(each is not None for each in facts.values()):
            raise typer.BadParameter(f"{path} is a database; a table is named database.table")
        session.create_database(
            path,
            comment=comment,
            properties=_pairs(properties),
            ignore_if_exists=if_not_exists,
        )
    cluster.report(f"created database {path}")


def drop(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="A database, or a table as database.table.", show_default=False
        ),
    ],
    *,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop a database with the tables in it.")
    ] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A name that is not there is no error.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Drop tables or databases, with all their rows.

    Examples:
        fluss drop shop.orders
        fluss drop shop.orders shop.clicks --yes
        fluss drop shop --cascade
    """
    cluster: GlobalOptions = context.obj
    with cluster.session() as session:
        for name in names:
            _check_there(session, name, if_exists=if_exists)
        confirm(f"Drop {', '.join(names)} with all rows?", yes=yes)
        for name in names:
            if "." in name:
                session.drop_table(name, ignore_if_not_exists=if_exists)
            else:
                _drop_database(session, name, cascade=cascade, if_exists=if_exists)
            cluster.report(f"dropped {'table' if '.' in name else 'database'} {name}")


def alter(
    context: typer.Context,
    name: NameArgument,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--add-column",
            help="Columns to add at the end: 'price DECIMAL(9, 2)'. They may be NULL.",
            show_default=False,
        ),
    ] = None,
    properties: _SetOption = None,
    reset: Annotated[
        list[str] | None,
        typer.Option("--reset", help="A property to take back to its default."),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(
            "--buckets",
            help="How many buckets partitions have that are created from now on (Fluss 1.0).",
            show_default=False,
        ),
    ] = None,
    comment: Annotated[
        str | None,
        typer.Option("--comment", help="Another comment of a database.", show_default=False),
    ] = None,
) -> None:
    """Change a table: add columns, set or reset properties; or a database (Fluss 1.0).

    Examples:
        fluss alter shop.orders --add-column "note STRING, vip BOOLEAN"
        fluss alter shop.orders --set table.log.ttl=3d --set owner=ann
        fluss alter shop.orders --reset table.log.ttl
        fluss alter shop.visits --buckets 8
        fluss alter shop --comment "the web shop" --set owner=ann
    """
    from fluss.cli.commands.inspect_commands import is_database
    from fluss.model.schema.schema_text import parse_columns

    added = [column for text in columns or [] for column in parse_columns(text)]
    if not any((added, properties, reset, buckets is not None, comment is not None)):
        raise typer.BadParameter("There is nothing to change; add --add-column, --set or --reset")
    cluster: GlobalOptions = context.obj
    with cluster.named(name) as (session, path):
        if is_database(session, path):
            if added or buckets is not None:
                raise typer.BadParameter(f"{path} is a database; name a table as {path}.TABLE")
            _alter_database(session, path, _pairs(properties), reset or (), comment)
            cluster.report(f"changed database {path}")
            return
        if comment is not None:
            raise typer.BadParameter("the comment of a table cannot be changed")
        table = session.alter_table(
            path,
            add_columns=added or None,
            set_properties=_pairs(properties),
            reset_properties=reset or (),
            buckets=buckets,
        )
    cluster.report(f"changed table {table.name}")


def _alter_database(
    session: Session,
    name: str,
    properties: dict[str, str],
    reset: Sequence[str],
    comment: str | None,
) -> None:
    changed: dict[str, Any] = {} if comment is None else {"comment": comment or None}
    session.alter_database(name, set_properties=properties, reset_properties=reset, **changed)


# --- shared -------------------------------------------------------------------------------------


def _columns(
    session: Session,
    schema: str | None,
    schema_file: str | None,
    sample: str | None,
    like: str | None,
    facts: dict[str, Any],
) -> Any:
    """Return what `create_table` takes for columns; what `--like` gives completes `facts`."""
    if like is not None:
        return _columns_like(session, like, facts)
    if sample is not None:
        from contextlib import closing

        from fluss.cli.files.row_files import RowFile

        with closing(RowFile(sample, _format_of(sample))) as file:
            return file.schema({})
    return _schema_of(schema if schema_file is None else _text_of(schema_file), facts)


def _format_of(sample: str) -> FileFormat:
    from fluss.cli.files.file_formats import format_of

    try:
        return format_of(sample, None)
    except InvalidValueError as error:
        raise error.with_context(
            hint="name a file that ends in .parquet, .csv, .jsonl or .arrow"
        ) from None


def _schema_of(text: str | None, facts: dict[str, Any]) -> Schema:
    from fluss.model.schema.schema_text import parse_schema

    found = parse_schema(text or "")
    key = facts["primary_key"]
    if key is not None and found.primary_keys and list(found.primary_keys) != key:
        raise InvalidSchemaError(
            f"--primary-key names ({', '.join(key)}), and the schema "
            f"({', '.join(found.primary_keys)}).",
            hint="leave one of them out",
        )
    return found


def _columns_like(session: Session, like: str, facts: dict[str, Any]) -> Schema:
    from fluss.model.tables.copied_properties import copied_properties

    info = session.table(like).info
    copied = copied_properties(info)
    found = {
        "partition_by": list(info.partition_keys) or None,
        "bucket_key": list(info.bucket_keys) or None,
        "buckets": info.num_buckets,
        "properties": copied.properties,
        "secrets": copied.secrets,
    }
    for key, value in found.items():
        if facts.get(key) is None:
            facts[key] = value
    return info.schema


def _create_table(
    session: Session,
    path: str,
    columns: Any,
    facts: dict[str, Any],
    comment: str | None,
    properties: dict[str, str],
    if_not_exists: bool,  # noqa: FBT001 - a flag of the command
) -> None:
    from fluss.model.tables.table_options import PREFIX

    given = {**facts.pop("properties", {}), **properties}
    custom = {key: value for key, value in given.items() if not key.startswith(PREFIX)}
    try:
        session.create_table(
            path,
            columns,
            **facts,
            comment=comment,
            properties={key: given[key] for key in given if key not in custom} or None,
            custom_properties=custom or None,
            ignore_if_exists=if_not_exists,
        )
    except DatabaseNotFoundError as error:
        database = session.path_of(path).database_name
        raise error.with_context(
            hint=(*error.hints, f"`fluss create {database}` makes it")
        ) from None


def _report_left_out(
    cluster: GlobalOptions, path: str, secrets: Sequence[str], properties: dict[str, str]
) -> None:
    for key in secrets:
        if key not in properties:
            cluster.report(
                f"  without the property {key}, whose value is secret; set it with "
                f"`fluss alter {path} --set {key}=...`"
            )


def _drop_database(session: Session, name: str, *, cascade: bool, if_exists: bool) -> None:
    session.drop_database(name, ignore_if_not_exists=if_exists, cascade=cascade)


def _check_there(session: Session, name: str, *, if_exists: bool) -> None:
    """Refuse a name that is not there before anything is dropped."""
    if is_url(name):
        raise InvalidValueError(
            f"{name!r} is a URL, and several names are dropped on one cluster.",
            hint="name the cluster by --url, and the table as database.table",
        )
    if if_exists:
        return
    if "." in name:
        session.table(name)
    else:
        session.database_info(name)


def _pairs(given: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for text in given or []:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise typer.BadParameter(f"--set {text!r} is not KEY=VALUE")
        pairs[key.strip()] = value.strip()
    return pairs


def _text_of(file: str) -> str:
    if file == "-":
        return sys.stdin.read(_SCHEMA_BYTES_MAX)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(_SCHEMA_BYTES_MAX).decode()
    except OSError as error:
        raise InvalidValueError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidValueError(
            f"{file} is not text in UTF-8.",
            hint="--sample infers the columns from a file of rows",
        ) from None
