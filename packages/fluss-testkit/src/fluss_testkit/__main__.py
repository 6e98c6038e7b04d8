"""A real Apache Fluss from the command line: `python -m fluss_testkit up | down | status`.

`up` starts a cluster that continues to run when the command returns, and prints its addresses;
`down` stops it; `status` reports whether it runs. All three are idempotent. `cluster_keeper` does
the work; this file parses arguments and prints results.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fluss.errors import FlussError
from fluss_testkit.cache_paths import kept_dir
from fluss_testkit.cluster_keeper import ClusterSpec, KeptCluster, down, keep, status, up
from fluss_testkit.cluster_profiles import PROFILES

PROGRAM = "python -m fluss_testkit"
PASSWORD_VARIABLE = "FLUSS_SERVER_PASSWORD"  # noqa: S105 - the name of a variable, no password


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a cluster that does not run, 2 a failure."""
    arguments = _parser().parse_args(words)
    try:
        if arguments.command == "keep":
            keep(arguments.home)
            return 0
        home = kept_dir(arguments.name)
        match arguments.command:
            case "up":
                return _up(home, arguments)
            case "down":
                return _down(home)
            case _:
                return _status(home, as_json=arguments.json)
    except FlussError as error:
        for line in (f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())):
            sys.stderr.write(f"{line}\n")
        return 2


def _up(home: Path, arguments: argparse.Namespace) -> int:
    password = os.environ.get(PASSWORD_VARIABLE)
    spec = ClusterSpec(
        profiles=tuple(arguments.profile),
        options=dict(arguments.option),
        data_dir=None if arguments.data is None else str(arguments.data.expanduser().resolve()),
        users=None if password is None else {arguments.user: password},
        port=arguments.port,
    )
    begin = time.monotonic()
    cluster, started = up(home, spec)
    took = f"ready after {time.monotonic() - begin:.1f} s" if started else "it ran already"
    sys.stdout.write(f"A real Apache Fluss runs on this machine ({took}).\n{_describe(cluster)}")
    if not started and spec != ClusterSpec():
        sys.stdout.write(
            "Note: it keeps the options it was started with; use `down` first to change them.\n"
        )
    return 0


def _down(home: Path) -> int:
    sys.stdout.write("It has stopped.\n" if down(home) else "It was not running.\n")
    return 0


def _status(home: Path, *, as_json: bool) -> int:
    cluster = status(home)
    if as_json:
        sys.stdout.write(json.dumps(None if cluster is None else asdict(cluster), indent=2) + "\n")
    elif cluster is None:
        sys.stdout.write(f"No real Fluss is kept here; `{PROGRAM} up` starts one.\n")
    else:
        sys.stdout.write(_describe(cluster))
    return 1 if cluster is None else 0


def _describe(cluster: KeptCluster) -> str:
    user, password = next(iter(cluster.users.items()))
    data = "is deleted when it stops" if cluster.fresh else "is kept"
    return f"""\
  bootstrap servers    {cluster.bootstrap_servers}
  ... with a password  {cluster.sasl_bootstrap_servers} (SASL/PLAIN)
  user, password       {user} {password}
  directory            {cluster.directory} (its data {data})
  logs                 {" ".join(cluster.log_paths)}
  process              {cluster.pid}
  tests against it     FLUSS_TEST_BOOTSTRAP={cluster.bootstrap_servers.split(",")[0]} pytest
  stop it              {PROGRAM} down
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="A real Apache Fluss, kept running.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{up,down,status}")
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("--name", default="default", help="the cluster's name, if you keep several")
    start = commands.add_parser("up", parents=[named], help="start it, unless it runs")
    start.add_argument(
        "--profile",
        action="append",
        default=[],
        choices=sorted(PROFILES),
        help="a profile of the cluster; may be repeated",
    )
    start.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="KEY=VALUE",
        help="a server option; may be repeated",
    )
    start.add_argument("--data", type=Path, metavar="DIR", help="keep the data in this directory")
    start.add_argument("--port", type=int, help="the coordinator's port; a free one by default")
    start.add_argument(
        "--user",
        default="admin",
        help=f"the user whose password is in {PASSWORD_VARIABLE}; a random one by default",
    )
    commands.add_parser("down", parents=[named], help="stop it, if it runs")
    show = commands.add_parser("status", parents=[named], help="report whether it runs")
    show.add_argument("--json", action="store_true", help="print JSON")
    commands.add_parser("keep").add_argument("home", type=Path)
    return parser


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


if __name__ == "__main__":
    sys.exit(main())
