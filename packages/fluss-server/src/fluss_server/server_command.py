"""`fluss server`: starts the embedded server from a command line.

This file checks and describes the options; `server_config` has their meaning, and `server` the life
cycle. Passwords come from the environment, because every user of the machine can read a command
line.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from fluss.errors import ConfigError, FlussError
from fluss.model.options.units import parse_duration_ms, parse_size
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.server import Server, serve
from fluss_server.server_config import LOOPBACK, Durability, ServerConfig

app = typer.Typer(add_completion=False, help="The embedded Fluss server.")

_DURABILITY_HELP = "What an acknowledgement promises: " + "; ".join(
    f"{durability}: {durability.sentence}" for durability in Durability
)

_Interval = Annotated[
    str | None,
    typer.Option(
        help="The interval of KV snapshots of primary-key tables, 0s for none. By default 10min, "
        "and none with --host, because clients read the files of a snapshot themselves."
    ),
]
_Lake = Annotated[
    str | None,
    typer.Option(
        help="Tables can be tiered into a lake: a catalog of Iceberg, such as sqlite:///lake.db, "
        "postgresql://user@host/name or https://host; without a value, one in the data directory. "
        "The directory keeps it.",
        metavar="[CATALOG]",
    ),
]
_Warehouse = Annotated[
    str | None,
    typer.Option(help="Where the files of the lake are: a folder, or s3://bucket/path."),
]
_LakeOptions = Annotated[
    list[str] | None,
    typer.Option(help="KEY=VALUE, a setting of the lake's catalog, such as s3.endpoint=…"),
]


@app.callback(invoke_without_command=True)
def server(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", "-d", help="The directory of the data.")
    ] = Path("fluss-data"),
    port: Annotated[
        int, typer.Option(help="The port for clients on this machine; 0 for a free one.")
    ] = 9123,
    sasl_port: Annotated[
        int | None,
        typer.Option(help="A second port, which requires a login; 0 for a free one."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address of the port with logins; 0.0.0.0 for all interfaces.")
    ] = LOOPBACK,
    user: Annotated[
        list[str] | None,
        typer.Option(help="NAME:VARIABLE, a user and the environment variable with the password."),
    ] = None,
    super_user: Annotated[
        list[str] | None,
        typer.Option(
            help="A user who may do everything; all others may do what `fluss acl` allows them."
        ),
    ] = None,
    durability: Annotated[Durability, typer.Option(help=_DURABILITY_HELP)] = Durability.PROCESS,
    segment_size: Annotated[
        str, typer.Option(help="The size of a log segment, for example 128mb.")
    ] = "128mb",
    retention_size: Annotated[
        str | None,
        typer.Option(help="The size limit of each bucket's log; no limit by default."),
    ] = None,
    kv_snapshot_interval: _Interval = None,
    lake: _Lake = None,
    warehouse: _Warehouse = None,
    lake_option: _LakeOptions = None,
    *,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First repair a damaged directory: lost rows are reported and given up, files that "
            "contradict the rest are moved into a directory aside-… and kept.",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve a directory as a Fluss of one node, until it is stopped (Ctrl-C, SIGTERM).

    The directory is kept: a restarted server has every row it acknowledged.

    Examples:
        fluss server
        fluss server -d shop-data --port 9124
        fluss server --sasl-port 9125 --host 0.0.0.0 --user ann:ANN_PASSWORD
        fluss server --sasl-port 9125 --user ann:ANN_PASSWORD --super-user ann
        fluss server --lake
        fluss server --lake postgresql://ann@db/lake --warehouse s3://lake/fluss
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
            super_users=super_user or [],
            durability=durability,
            segment_bytes=_size("--segment-size", segment_size),
            retention_bytes=None
            if retention_size is None
            else _size("--retention-size", retention_size),
            kv_snapshot_interval_ms=_interval(kv_snapshot_interval),
            lake=_lake(lake, warehouse, lake_option or []),
            repair=repair,
        )
        serve(config, ready=lambda started: _print_ready(started, config))
    except FlussError as error:
        _exit_with(error)


def _size(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}.", key=option) from error


def _interval(text: str | None) -> int | None:
    option = "--kv-snapshot-interval"
    try:
        return None if text is None else parse_duration_ms(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}.", key=option) from error


def _lake(url: str | None, warehouse: str | None, options: list[str]) -> LakeLocation | None:
    if url is None and warehouse is None and not options:
        return None
    pairs = [each.partition("=") for each in options]
    for key, equals, _ in pairs:
        if not equals:
            raise ConfigError(
                f"--lake-option {key!r} has no value.",
                hint="Write --lake-option s3.region=eu-west-1",
                key="lake_option",
            )
    return LakeLocation(
        url=url or "", warehouse=warehouse, options={key: value for key, _, value in pairs}
    )


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


def _print_ready(started: Server, config: ServerConfig) -> None:
    with_users = started.sasl_bootstrap_servers
    guarded = f", with passwords at {with_users}" if with_users else ""
    lake = "" if started.node.lake is None else f"; lake in {started.node.lake.place}"
    print(  # noqa: T201 - programs wait for this line
        f"fluss server ready at {started.bootstrap_servers}{guarded}; data in {config.directory}; "
        f"durability {config.durability}: {config.durability.sentence}{lake}",
        flush=True,
    )


def _exit_with(error: FlussError) -> NoReturn:
    typer.echo(f"fluss: {error}", err=True)
    raise typer.Exit(1)
