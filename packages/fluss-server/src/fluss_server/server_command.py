"""`fluss server`: the embedded server from a command line.

Options are checked and shown here; what they mean is in `config`, and the server's life in
`server`. Passwords come from the environment, because a command line can be read by everybody on
the machine.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from fluss.errors import ConfigError, FlussError
from fluss.model.options.units import parse_size
from fluss_server.server import Server, serve
from fluss_server.server_config import LOOPBACK, Durability, ServerConfig

app = typer.Typer(add_completion=False, help="The embedded Fluss server.")

_DURABILITY_HELP = "What an acknowledgement promises: " + "; ".join(
    f"{each}: {each.sentence}" for each in Durability
)


@app.callback(invoke_without_command=True)
def server(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", "-d", help="Where everything is kept.")
    ] = Path("fluss-data"),
    port: Annotated[
        int, typer.Option(help="The port for programs on this machine; 0 for a free one.")
    ] = 9123,
    sasl_port: Annotated[
        int | None,
        typer.Option(help="A second port, which asks for user and password; 0 for a free one."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where the port with passwords listens; 0.0.0.0 for everybody.")
    ] = LOOPBACK,
    user: Annotated[
        list[str] | None,
        typer.Option(help="NAME:VARIABLE, a user and the environment variable with the password."),
    ] = None,
    durability: Annotated[Durability, typer.Option(help=_DURABILITY_HELP)] = Durability.PROCESS,
    segment_size: Annotated[
        str, typer.Option(help="How large a log segment becomes, for example 128mb.")
    ] = "128mb",
    retention_size: Annotated[
        str | None,
        typer.Option(help="How much of each bucket's log is kept at most; all of it by default."),
    ] = None,
    *,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First make a damaged directory whole again: what is lost is reported and given "
            "up, what contradicts the rest is moved into a directory aside-… and kept.",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Serve a directory as a Fluss of one node, until it is told to end (Ctrl-C, SIGTERM).

    The directory is kept: started again, the server has every row it acknowledged.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        config = ServerConfig(
            directory=data_dir,
            port=port,
            sasl_port=sasl_port,
            sasl_host=host,
            users=_users(user or []),
            durability=durability,
            segment_bytes=_size("--segment-size", segment_size),
            retention_bytes=None
            if retention_size is None
            else _size("--retention-size", retention_size),
            repair=repair,
        )
        serve(config, ready=lambda started: _say_ready(started, config))
    except FlussError as error:
        _give_up(error)


def _size(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}.", key=option) from error


def _users(pairs: list[str]) -> dict[str, str]:
    users: dict[str, str] = {}
    for pair in pairs:
        name, colon, variable = pair.partition(":")
        if not colon or not name or not variable:
            raise ConfigError(
                f"--user {pair!r} is not a user and the name of a variable.",
                hint="Write --user alice:ALICE_PASSWORD, and set that variable.",
                key="user",
            )
        password = os.environ.get(variable)
        if not password:
            raise ConfigError(
                f"The variable {variable}, which has the password of {name!r}, is not set.",
                hint=f"export {variable}=…",
                key="user",
            )
        users[name] = password
    return users


def _say_ready(started: Server, config: ServerConfig) -> None:
    with_users = started.sasl_bootstrap_servers
    guarded = f", with passwords at {with_users}" if with_users else ""
    print(  # noqa: T201 - the one line that programs wait for
        f"fluss server ready at {started.bootstrap_servers}{guarded}; data in {config.directory}; "
        f"durability {config.durability}: {config.durability.sentence}",
        flush=True,
    )


def _give_up(error: FlussError) -> NoReturn:
    typer.echo(f"fluss server: {error}", err=True)
    raise typer.Exit(1)
