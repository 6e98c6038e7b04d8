"""The commands of `fluss`, put together: those of this package, and those that others bring."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated

import typer

from fluss.cli.cli_session import TableArgument
from fluss.cli.demo import demo
from fluss.cli.file_commands import export_rows, import_rows
from fluss.cli.read_commands import count, describe, head, list_names, lookup, tail
from fluss.errors import MissingExtraError

GROUP = "fluss.commands"

# Commands of other packages, with what to install for those who do not have them.
_ELSEWHERE = {"server": "fluss-server", "sql": "fluss-duckdb"}
# Commands that serve a cluster instead of asking one.
_WITHOUT_CLUSTER = {"server"}
_ANY_WORDS = {"ignore_unknown_options": True, "allow_extra_args": True}


def application() -> typer.Typer:
    """The command line; made when it is run, because it looks for installed packages.

    An entry point of the group names a `typer.Typer` that has one command, or only a callback.
    """
    app = typer.Typer(
        name="fluss", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )
    app.callback()(_begin)
    app.command("ls")(list_names)
    app.command()(describe)
    app.command()(head)
    app.command()(tail)
    app.command()(count)
    app.command()(lookup)
    app.command("import")(import_rows)
    app.command("export")(export_rows)
    app.command()(demo)
    _add_others(app)
    return app


def _add_others(app: typer.Typer) -> None:
    """Add what other packages bring; they import engines, so only the one meant is loaded."""
    own = {each.name or getattr(each.callback, "__name__", "") for each in app.registered_commands}
    said = set(sys.argv[1:])
    found = {} if said & own else {each.name: each for each in entry_points(group=GROUP)}
    found = {name: each for name, each in found.items() if name in said} or found
    for name, package in _ELSEWHERE.items():
        if name not in found:
            help_text = f"Needs: pip install {package}"
            app.command(name, help=help_text, context_settings=_ANY_WORDS)(_missing(name, package))
    for name, each in found.items():
        app.command(name)(_function_of(each.load()))


def _function_of(other: typer.Typer) -> Callable[..., None]:
    """What the one command of another application calls."""
    if other.registered_callback is not None and not other.registered_commands:
        return other.registered_callback.callback or _begin
    (command,) = other.registered_commands
    return command.callback or _begin


def _begin(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            help="The cluster: fluss://user@host:9123, or embedded:./folder. Without --url and "
            "--profile, FLUSS_URL, FLUSS_BOOTSTRAP_SERVERS, the default profile or 127.0.0.1:9123.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="A profile of the configuration file; it counts more than the environment.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Apache Fluss tables from a terminal."""
    place = TableArgument(given_url=url, profile=profile)
    if place.is_given and context.invoked_subcommand in _WITHOUT_CLUSTER:
        raise typer.BadParameter(
            f"--url and --profile name a cluster to ask, and `fluss {context.invoked_subcommand}` "
            "asks none; leave them out"
        )
    context.obj = place


def _missing(name: str, package: str) -> Callable[[], None]:
    def refuse() -> None:
        raise MissingExtraError(
            f"`fluss {name}` is in another package.", hint=f"pip install {package}"
        )

    return refuse
