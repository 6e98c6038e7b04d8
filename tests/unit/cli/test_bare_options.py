"""An option whose value may be left out, such as `fluss server --lake`."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from fluss.cli.command_group import FlussCommand

app = typer.Typer()


@app.command(cls=FlussCommand)
def show(
    lake: Annotated[str | None, typer.Option(metavar="[CATALOG]")] = None,
    port: Annotated[int, typer.Option()] = 1,
    words: Annotated[list[str] | None, typer.Argument()] = None,
) -> None:
    typer.echo(f"{lake!r} {port} {words or []}")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("", "None 1 []"),
        ("--lake", "'' 1 []"),
        ("--lake --port 7", "'' 7 []"),
        ("--port 7 --lake", "'' 7 []"),
        ("--lake=", "'' 1 []"),
        ("--lake sqlite:///x.db --port 7", "'sqlite:///x.db' 7 []"),
        ("--lake=sqlite:///x.db", "'sqlite:///x.db' 1 []"),
        ("--lake -- --lake", "'' 1 ['--lake']"),
        ("-- --lake", "None 1 ['--lake']"),
    ],
)
def test_a_value_may_be_left_out(line, shown):
    found = CliRunner().invoke(app, line.split())
    assert found.output.strip() == shown


def test_other_options_need_theirs():
    assert CliRunner().invoke(app, ["--port"]).exit_code == 2
