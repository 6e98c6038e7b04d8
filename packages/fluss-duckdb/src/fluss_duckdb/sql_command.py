"""The command `fluss sql`: runs a query over Fluss and prints its rows.

Only rows are written to the standard output; errors go to the standard error. The exit code is 0,
1 if the query failed, 2 for wrong usage, 130 after Ctrl-C, and as a command of `fluss` 141 if the
reader closed the standard output.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, BinaryIO, TextIO

import duckdb
import pyarrow as pa
import typer

from fluss.errors import FlussError
from fluss_duckdb.attach import connect

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
BATCH_ROWS = 16 * 1024

app = typer.Typer(
    help="Query Fluss in SQL with DuckDB: fluss sql \"SELECT * FROM fluss('db.events') LIMIT 5\"",
    add_completion=False,
)


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


@app.command()
def sql(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Argument(help="The statements; the standard input by default.")
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option(help="The cluster, as in `fluss --url`.", show_default=False),
    ] = None,
    database: Annotated[
        str, typer.Option(help="DuckDB's own database: a file, or its memory.")
    ] = ":memory:",
    profile: Annotated[
        str | None,
        typer.Option(help="A profile of the configuration file, as in `fluss --profile`."),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="By default table in a terminal, and csv elsewhere."),
    ] = None,
) -> None:
    """Run SQL in which fluss('database.table') is a table, and print the last statement's rows.

    The options of a scan are given by name: fluss('db.events', start := '-10m', tail := 100).
    """
    text = query if query is not None and query != "-" else _standard_input()
    if not text.strip():
        _print_error("There is no query. Give one, or pipe it: fluss sql < query.sql")
        raise typer.Exit(MISUSED)
    url, profile = _cluster(context, url, profile)
    written = form or (Format.TABLE if sys.stdout.isatty() else Format.CSV)
    try:
        with connect(database, url, profile=profile) as connection:
            found = connection.sql(text)
            if found is not None:
                _WRITERS[written](found)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (FlussError, duckdb.Error) as error:
        _print_error(f"{type(error).__name__}: {error}")
        raise typer.Exit(FAILED) from None


def _cluster(
    context: typer.Context, url: str | None, profile: str | None
) -> tuple[str | None, str | None]:
    """Return the URL and the profile: the command's own options, or those before the command."""
    parent = context.obj  # None if `sql` runs by itself, without `fluss`
    for name, own, before in (
        ("--url", url, getattr(parent, "given_url", None)),
        ("--profile", profile, getattr(parent, "profile", None)),
    ):
        if own is not None and before is not None and own != before:
            raise typer.BadParameter(f"{name} is {before} before `sql` and {own} after it")
    if url is None and profile is None:
        from_environment = os.environ.get("FLUSS_URL") or None
        return getattr(parent, "url", from_environment), getattr(parent, "profile", None)
    return url or getattr(parent, "given_url", None), profile or getattr(parent, "profile", None)


def _standard_input() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read()


def _print_error(text: str) -> None:
    typer.echo(text, err=True)


# --- formats --------------------------------------------------------------------------------------


def _as_table(found: Any) -> None:
    typer.echo(str(found).rstrip("\n"))


def _as_csv(found: Any) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(found.columns)
    for row in _rows(found):
        writer.writerow(["" if value is None else _plain(value) for value in row.values()])


def _as_json(found: Any) -> None:
    """Write one object per line, so that rows can be read before the stream ends."""
    out: TextIO = sys.stdout
    out.writelines(
        json.dumps(row, default=_plain, ensure_ascii=False) + "\n" for row in _rows(found)
    )


def _as_arrow(found: Any) -> None:
    out: BinaryIO = sys.stdout.buffer
    reader = found.to_arrow_reader(BATCH_ROWS)
    with pa.ipc.new_stream(out, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _rows(found: Any) -> Iterator[dict[str, Any]]:
    for batch in found.to_arrow_reader(BATCH_ROWS):
        yield from batch.to_pylist()


def _plain(value: Any) -> Any:
    """Return a value as text if CSV and JSON have no such type."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict | list):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return value if isinstance(value, bool | int | float) else str(value)


_WRITERS: dict[Format, Callable[[Any], None]] = {
    Format.TABLE: _as_table,
    Format.JSON: _as_json,
    Format.CSV: _as_csv,
    Format.ARROW: _as_arrow,
}

if __name__ == "__main__":
    app()
