"""The application behind `fluss`: the commands of this package, and those of other packages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated

import typer

from fluss.cli.cli_session import ClusterOptions
from fluss.cli.demo import demo
from fluss.cli.file_commands import export_rows, import_rows
from fluss.cli.read_commands import count, describe, head, list_names, lookup, tail
from fluss.errors import MissingExtraError

GROUP = "fluss.commands"

# Commands of other packages, with the package to install where one is missing.
_OTHER_PACKAGES = {"server": "fluss-server", "sql": "fluss-duckdb"}
# Commands that connect to no cluster.
_WITHOUT_CLUSTER = {"server"}
_ANY_WORDS = {"ignore_unknown_options": True, "allow_extra_args": True}


def application() -> typer.Typer:
    """Build the command line; at each run, because it depends on the installed packages.

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
    _add_commands_of_others(app)
    return app


def _add_commands_of_others(app: typer.Typer) -> None:
    """Add the commands of other packages; these import engines, so only the one used is loaded."""
    own = {
        command.name or getattr(command.callback, "__name__", "")
        for command in app.registered_commands
    }
    words = set(sys.argv[1:])
    found = {} if words & own else {point.name: point for point in entry_points(group=GROUP)}
    found = {name: point for name, point in found.items() if name in words} or found
    for name, package in _OTHER_PACKAGES.items():
        if name not in found:
            help_text = f"Needs: pip install {package}"
            app.command(name, help=help_text, context_settings=_ANY_WORDS)(_missing(name, package))
    for name, point in found.items():
        app.command(name)(_function_of(point.load()))


def _function_of(other: typer.Typer) -> Callable[..., None]:
    """Return the function of the single command of another application."""
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
            help="A profile of the configuration file; it overrides the environment.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Apache Fluss tables from a terminal."""
    cluster = ClusterOptions(given_url=url, profile=profile)
    if cluster.is_given and context.invoked_subcommand in _WITHOUT_CLUSTER:
        raise typer.BadParameter(
            "--url and --profile name a cluster to connect to, and "
            f"`fluss {context.invoked_subcommand}` connects to none; leave them out"
        )
    context.obj = cluster


def _missing(name: str, package: str) -> Callable[[], None]:
    def refuse() -> None:
        raise MissingExtraError(
            f"`fluss {name}` is in another package.", hint=f"pip install {package}"
        )

    return refuse
