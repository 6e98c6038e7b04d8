"""Asks before rows or tables are removed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask before something is removed.")
]


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal, unless `--yes` was given.

    Raises:
        BadParameter: There is no terminal to ask on.
        Exit: The answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{question} There is no terminal to ask on; add --yes")
    if not typer.confirm(f"fluss: {question}", err=True):
        typer.echo("fluss: nothing was removed", err=True)
        raise typer.Exit(1)
