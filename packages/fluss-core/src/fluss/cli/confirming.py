"""Asks before rows or tables are removed, or tables changed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal, unless `--yes` was given.

    Raises:
        BadParameter: There is no terminal to ask on.
        Exit: The answer is no.
    """
    _confirm(question, yes=yes, refused="nothing was removed")


def confirm_change(question: str, *, yes: bool) -> None:
    """Ask on the terminal before something is changed; see `confirm`."""
    _confirm(question, yes=yes, refused="nothing was changed")


def _confirm(question: str, *, yes: bool, refused: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{question} There is no terminal to ask on; add --yes")
    if not typer.confirm(f"fluss: {question}", err=True):
        typer.echo(f"fluss: {refused}", err=True)
        raise typer.Exit(1)
