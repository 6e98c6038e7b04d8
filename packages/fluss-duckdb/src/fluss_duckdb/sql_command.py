"""The command `fluss sql`: a query over Fluss, from an argument or from a file, to a terminal.

Rows go to the standard output and nothing else does; errors go to the other one. It ends with 0,
with 1 where the query failed, with 2 where it was called in a way that no query is, with 130 after
Ctrl-C, and as a command of `fluss` with 141 where the reader of the standard output closed it.
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
    help="Ask Fluss in SQL, by DuckDB: fluss sql \"SELECT * FROM fluss('db.events') LIMIT 5\"",
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
        str | None, typer.Argument(help="The statements; what comes on the standard input else.")
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option(help="The cluster, as of `fluss --url`.", show_default=False),
    ] = None,
    database: Annotated[
        str, typer.Option(help="DuckDB's own database: a file, or its memory.")
    ] = ":memory:",
    profile: Annotated[
        str | None,
        typer.Option(help="A profile of the configuration file, as of `fluss --profile`."),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="table in a terminal, and csv elsewhere, by default."),
    ] = None,
) -> None:
    """Run SQL in which fluss('database.table') is a table, and print what the last statement gives.

    The options of a scan are given by name: fluss('db.events', start := '-10m', tail := 100).
    """
    text = query if query is not None and query != "-" else _standard_input()
    if not text.strip():
        _complain("There is no query. Give one, or send it: fluss sql < query.sql")
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
        _complain(f"{type(error).__name__}: {error}")
        raise typer.Exit(FAILED) from None


def _cluster(
    context: typer.Context, url: str | None, profile: str | None
) -> tuple[str | None, str | None]:
    """The URL and the profile: the command's own options, or those before the command."""
    place = context.obj  # None where `sql` is run by itself, without `fluss`
    for name, own, before in (
        ("--url", url, getattr(place, "given_url", None)),
        ("--profile", profile, getattr(place, "profile", None)),
    ):
        if own is not None and before is not None and own != before:
            raise typer.BadParameter(f"{name} is {before} before `sql` and {own} after it")
    if url is None and profile is None:
        from_environment = os.environ.get("FLUSS_URL") or None
        return getattr(place, "url", from_environment), getattr(place, "profile", None)
    return url or getattr(place, "given_url", None), profile or getattr(place, "profile", None)


def _standard_input() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read()


def _complain(text: str) -> None:
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
    """One object per line, so that a stream needs no end to be read."""
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
    """A value as text, where neither CSV nor JSON has one of its kind."""
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
