"""The commands of schemas as Python files: schema, diff, apply.

A file has classes that `fluss.table` decorates. It is run as Python runs a program of its folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from fluss.cli.global_options import GlobalOptions

if TYPE_CHECKING:
    from fluss.session import Session, TablesDiff

_File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A Python file with classes that @fluss.table decorates, or a module: shop.tables.",
        show_default=False,
    ),
]
_COLUMNS: Final = (("table", "string"), ("change", "string"), ("detail", "string"))


def schema(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="A table as database.table, or a database for all its tables.",
            show_default=False,
        ),
    ],
) -> None:
    """Print the classes of tables, as a Python file for diff and apply.

    Examples:
        fluss schema shop > tables.py
        fluss schema shop.orders shop.customers
    """
    from fluss.typed.class_source import class_source

    cluster: GlobalOptions = context.obj
    with cluster.session() as session:
        tables = [table for name in names for table in _tables(session, name)]
        text = class_source(session.table(each).info for each in dict.fromkeys(tables))
    typer.echo(text, nl=False)


def diff(
    context: typer.Context,
    file: _File,
    *,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if something differs.")
    ] = False,
) -> None:
    """Compare tables with the classes of a Python file; nothing is changed.

    Examples:
        fluss diff tables.py
        fluss diff tables.py --exit-code -o json
    """
    from fluss.cli.python_schemas import classes_of

    cluster: GlobalOptions = context.obj
    classes = classes_of(file)
    with cluster.session() as session:
        found = session.diff_tables(classes)
    _show(cluster, found)
    cluster.report(_summary(found, len(classes)))
    if exit_code and not found.is_empty:
        raise typer.Exit(1)


def apply(
    context: typer.Context,
    file: _File,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Create and alter tables as the classes of a Python file describe them.

    Tables are created, columns added, and properties set; nothing is removed. If anything else
    differs, nothing is changed.

    Examples:
        fluss apply tables.py
        fluss apply tables.py --yes
    """
    from fluss.cli.confirming import confirm_change
    from fluss.cli.python_schemas import classes_of

    cluster: GlobalOptions = context.obj
    classes = classes_of(file)
    with cluster.session() as session:
        found = session.diff_tables(classes)
        if not found.is_empty and not found.impossible:
            _show(cluster, found)
            confirm_change(f"Make {_changes(found)}?", yes=yes)
        done = session.apply_tables(classes)
    cluster.report(f"made {_changes(done)}" if not done.is_empty else _summary(done, len(classes)))


def _tables(session: Session, name: str) -> list[str]:
    return [name] if "." in name else [f"{name}.{each}" for each in session.tables(name)]


def _show(cluster: GlobalOptions, found: TablesDiff) -> None:
    from fluss.cli.row_output import write_records

    records = [
        {"table": table, "change": change, "detail": detail}
        for table, change, detail in found.steps()
    ]
    if records:
        write_records(records, _COLUMNS, cluster.output)


def _changes(found: TablesDiff) -> str:
    count = sum(change != "impossible" for _, change, _ in found.steps())
    return f"{count} change{'' if count == 1 else 's'}"


def _summary(found: TablesDiff, count: int) -> str:
    if found.is_empty:
        tables = "1 table is as its class describes it"
        return tables if count == 1 else f"{count} tables are as their classes describe them"
    text = f"{_changes(found)} to make"
    refused = sum(len(each.impossible) for each in found.impossible)
    return text if not refused else f"{text}; Fluss cannot make {refused}, see `impossible`"
