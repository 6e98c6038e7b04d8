"""The session at a prompt: lines become statements, and dot commands change what is shown.

Ctrl-C ends the statement that runs, or empties the line, and never the shell; Ctrl-D leaves it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Final

import duckdb
import typer

from fluss.cli.files.format_names import OutputFormat
from fluss.errors import FlussError, InvalidValueError
from fluss.hints import Door
from fluss.model.did_you_mean import did_you_mean
from fluss_duckdb.duckdb_connection import Connection
from fluss_duckdb.shell.completion import Completer
from fluss_duckdb.shell.fluss_statements import create_sql
from fluss_duckdb.shell.prompt import Prompt
from fluss_duckdb.shell.result_output import ResultOutput
from fluss_duckdb.shell.statement_runner import StatementRunner
from fluss_duckdb.shell.statement_text import ends_inside, is_blank, split_statements

MODES: Final = ("table", "line", "json", "csv", "arrow")
_PROMPT, _MORE = "fluss> ", "   ... "
_QUOTED_MORE: Final = "   '.. "
ROWS_MAX: Final = 10_000

HELP: Final = """\
Statements end with a semicolon. Ctrl-C ends a statement, Ctrl-D the shell.

SELECT * FROM shop.orders WHERE price > 10 LIMIT 5;
SELECT * FROM fluss('shop.orders', start := '-10m');   options of a scan
SHOW DATABASES;  SHOW TABLES FROM shop;  DESCRIBE shop.orders;
USE shop;                                              then: FROM orders
INSERT INTO shop.orders VALUES (1, 'DE');              append, or upsert
UPDATE shop.orders SET country = 'FR' WHERE id = 1;    by primary key
DELETE FROM shop.orders WHERE id = 1;
CREATE TABLE shop.t (id BIGINT, v STRING, PRIMARY KEY (id));
COPY (FROM shop.orders) TO 'orders.parquet';           all else is DuckDB

.tables [DATABASE]      the tables
.schema TABLE           the statement that creates a table
.mode MODE              table, line, json, csv or arrow (now: {mode})
.rows N                 how many rows a table shows (now: {rows})
.timer on|off           the time of each statement (now: {timer})
.read FILE              run the statements of a file
.help                   this text
.quit                   leave"""


class SqlShell:
    """A shell for a person.

    Args:
        connection: The connection.
        runner: Runs statements.
        output: The format in which rows are shown first; None for a table.
    """

    def __init__(
        self, connection: Connection, runner: StatementRunner, output: OutputFormat | None
    ) -> None:
        self._connection = connection
        self._runner = runner
        self._mode: str = "table" if output is None else output.value
        self._has_timer = True
        self._is_ended = False
        self._text = ""
        self._output = ResultOutput(typer.echo, lambda: shutil.get_terminal_size().columns)
        self._commands: dict[str, Callable[[str], None]] = {
            ".exit": self._quit,
            ".help": self._help,
            ".mode": self._set_mode,
            ".quit": self._quit,
            ".read": self._read_file,
            ".rows": self._set_rows,
            ".schema": self._schema,
            ".tables": self._tables,
            ".timer": self._set_timer,
        }
        completer = Completer(runner.names, sorted(self._commands))
        self._prompt = Prompt(completer, lambda: self._text)

    def run(self) -> None:
        """Read and run statements until Ctrl-D or `.quit`."""
        servers = self._connection.session.config.bootstrap_servers
        typer.echo(f"{servers}: statements end with ; and .help shows the rest")
        with self._prompt.opened():
            while not self._is_ended:
                self._step()

    def _step(self) -> None:
        """Read one line, and run the statements that it completes."""
        try:
            line = self._prompt.read(self._prompt_text())
        except EOFError:
            typer.echo()
            self._is_ended = True
            return
        except KeyboardInterrupt:
            typer.echo()
            self._text = ""
            return
        if not self._text and line.strip().startswith("."):
            self._prompt.remember(line.strip())
            self._guarded(lambda: self._command(line.strip()))
            return
        if not self._text and line.strip().lower() in {"exit", "quit", "help"}:
            self._guarded(lambda: self._command(f".{line.strip().lower()}"))
            return
        typed = f"{self._text}\n{line}" if self._text else line
        statements, self._text = split_statements(typed)
        if statements or is_blank(typed):
            self._prompt.remember(typed.strip())
            if is_blank(self._text):
                self._text = ""
        for statement in statements:
            if not self._guarded(lambda sql=statement: self._statement(sql)):  # type: ignore[misc]
                break

    def _prompt_text(self) -> str:
        if not self._text:
            return _PROMPT
        return _QUOTED_MORE if ends_inside(self._text) else _MORE

    def _guarded(self, act: Callable[[], None]) -> bool:
        """Run something; an error or Ctrl-C ends it, and not the shell."""
        try:
            act()
        except KeyboardInterrupt:
            typer.echo("\ninterrupted", err=True)
        except FlussError as error:
            typer.echo(f"fluss: {error.with_context(door=Door.CLI)}", err=True)
        except duckdb.Error as error:
            typer.echo(f"fluss: {duckdb_message(error)}", err=True)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            typer.echo(f"fluss: {where}{error.strerror or error}", err=True)
        else:
            return True
        return False

    def _statement(self, sql: str) -> None:
        began = time.monotonic()
        result = self._runner.run(sql)
        said = result.message or ""
        if result.rows is not None:
            if self._mode in {"table", "line"}:
                said = self._output.show(result.rows, as_lines=self._mode == "line")
            else:
                self._output.write_all(result.rows, OutputFormat(self._mode))
        took = f"{time.monotonic() - began:.3f} s" if self._has_timer else ""
        parts = ", ".join(each for each in (said.rstrip("."), took) if each)
        if parts:
            typer.echo(f"({parts})")

    # --- commands -----------------------------------------------------------------------------

    def _command(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        command = self._commands.get(name)
        if command is None:
            raise InvalidValueError(
                f"There is no command {name}.",
                hint=did_you_mean(name, self._commands) or ".help lists them",
            )
        command(argument.strip().rstrip(";").strip())

    def _quit(self, argument: str) -> None:
        del argument
        self._is_ended = True

    def _help(self, argument: str) -> None:
        del argument
        timer = "on" if self._has_timer else "off"
        typer.echo(HELP.format(mode=self._mode, rows=self._output.rows_max, timer=timer))

    def _set_mode(self, argument: str) -> None:
        if argument not in MODES:
            raise InvalidValueError(f"There is no mode {argument!r}.", hint=", ".join(MODES))
        self._mode = argument

    def _set_rows(self, argument: str) -> None:
        if not argument.isdecimal() or not 0 < int(argument) <= ROWS_MAX:
            raise InvalidValueError(f".rows takes a number from 1 to {ROWS_MAX:,}.")
        self._output.rows_max = int(argument)

    def _set_timer(self, argument: str) -> None:
        if argument not in {"on", "off"}:
            raise InvalidValueError(".timer takes on or off.")
        self._has_timer = argument == "on"

    def _tables(self, argument: str) -> None:
        self._statement(f'SHOW TABLES FROM "{argument}"' if argument else "SHOW TABLES")

    def _schema(self, argument: str) -> None:
        if not argument:
            raise InvalidValueError(".schema takes the name of a table.")
        used = self._runner.names.database
        name = argument if "." in argument or used is None else f"{used}.{argument}"
        typer.echo(f"{create_sql(self._connection.session.table(name))};")

    def _read_file(self, argument: str) -> None:
        from pathlib import Path

        from fluss_duckdb.shell.statement_text import all_statements

        if not argument:
            raise InvalidValueError(".read takes the name of a file.")
        for statement in all_statements(Path(argument).read_text()):
            self._statement(statement)


def duckdb_message(error: Exception) -> str:
    """Return a message of DuckDB in the form of our errors: the later lines are indented."""
    first, _, rest = str(error).strip().partition("\n")
    kind, _, about = first.partition(": ")
    text = about if kind.endswith("Error") and about else first
    if isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException):
        return text  # DuckDB shows a line of SQL that may not be the user's
    return "\n  ".join([text, *filter(str.strip, rest.splitlines())])
