"""The command `fluss sql`: statements from an argument, a file or a pipe, or a shell for a person.

Only rows are written to the standard output; errors go to the standard error. The exit code is 0,
1 if a statement failed, 2 for wrong usage, 130 after Ctrl-C, and 141 if the reader of the standard
output has closed it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import duckdb
import typer

from fluss.cli.global_options import GlobalOptions, options_of
from fluss.errors import InvalidValueError
from fluss_duckdb.attach import connect
from fluss_duckdb.shell.result_output import ResultOutput
from fluss_duckdb.shell.sql_shell import SqlShell, duckdb_message
from fluss_duckdb.shell.statement_runner import StatementRunner
from fluss_duckdb.shell.statement_text import all_statements

FAILED, INTERRUPTED = 1, 130
STANDARD_INPUT = "-"

app = typer.Typer(add_completion=False)


@app.command()
def sql(
    context: typer.Context,
    query: Annotated[
        str | None,
        typer.Argument(help="Statements; without any, a shell, or the standard input."),
    ] = None,
    *,
    commands: Annotated[
        list[str] | None, typer.Option("--command", "-c", help="Statements; may be repeated.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A file of statements; - is a pipe.")
    ] = None,
    database: Annotated[
        str, typer.Option(help="DuckDB's own database: a file, or its memory.")
    ] = ":memory:",
) -> None:
    """Query tables in SQL with DuckDB, and write them.

    shop.orders and fluss('shop.orders') are tables; the options of a scan are given by name:
    fluss('shop.orders', start := '-10m', tail := 100). INSERT appends, or upserts by primary key.
    Without statements, a shell with history and completion: .help shows what there is.

    Examples:
        fluss sql
        fluss sql "SELECT country, sum(price) FROM shop.orders GROUP BY country" -o csv
        fluss sql -c "USE shop" -c "INSERT INTO orders VALUES (1, 'DE')"
        fluss sql -f report.sql > report.jsonl
    """
    options = options_of(context)
    texts = _texts(query, commands or [], file)
    try:
        with options.session() as session, connect(database, session=session) as connection:
            runner = StatementRunner(connection)
            if texts is None:
                SqlShell(connection, runner, options.output).run()
            else:
                _run_all(runner, texts, options)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except duckdb.Error as error:
        typer.echo(f"fluss: {duckdb_message(error)}", err=True)
        raise typer.Exit(FAILED) from None


def _texts(query: str | None, commands: Sequence[str], file: str | None) -> list[str] | None:
    """Return the statements to run; None for a shell."""
    given = [*([] if query is None or query == STANDARD_INPUT else [query]), *commands]
    if file is not None and file != STANDARD_INPUT:
        given.append(_content(file))
    elif STANDARD_INPUT in {query, file} or (not given and not sys.stdin.isatty()):
        given.append(sys.stdin.read())
    elif not given:
        return None
    if not any(any(all_statements(each)) for each in given):
        raise typer.BadParameter("there is no statement; give one, or pipe it: fluss sql < q.sql")
    return given


def _content(file: str) -> str:
    try:
        return Path(file).read_text()
    except UnicodeDecodeError:
        raise InvalidValueError(f"{file} is not UTF-8.", hint="it must be a file of SQL") from None


def _run_all(runner: StatementRunner, texts: Sequence[str], options: GlobalOptions) -> None:
    """Run statements up to the first that fails."""
    output = ResultOutput(typer.echo, lambda: 0)
    for text in texts:
        for statement in all_statements(text):
            result = runner.run(statement)
            if result.rows is not None:
                output.write_all(result.rows, options.output)
            elif result.message:
                options.report(result.message)


if __name__ == "__main__":
    app()
