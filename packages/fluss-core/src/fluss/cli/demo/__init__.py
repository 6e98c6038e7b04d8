"""`fluss demo`: a small shop that writes to Fluss and is queried in every installed engine.

It starts a server in a temporary directory, unless options name a cluster or a directory. It
creates a database under a free name and writes only there; on a cluster it drops that database, and
nothing else, at the end. FLUSS_URL and the rest of the environment are ignored, so that the demo
writes to no cluster by accident.

On a screen the shop is open until Ctrl-C; elsewhere it writes a number of rounds. However that
ends, the tables are copied into a lake, where fluss-lake is installed. Then every engine is queried
and compared with the shop's own books; the exit code is 0 if all are equal. This file has the
options and the order of events; the files beside it have the parts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from fluss.cli.demo.answer_table import print_answers, print_programs
from fluss.cli.demo.closing import end_cleanly, scratch_folder
from fluss.cli.demo.engine_answers import answers
from fluss.cli.demo.kept_server import KeptServer, start_kept_server
from fluss.cli.demo.open_shop import run_shop
from fluss.cli.demo.shop import Shop
from fluss.cli.demo.shop_past import (
    IN_LAKE,
    copy_into_lake,
    has_lake,
    print_without_lake,
    with_lake,
)
from fluss.cli.global_options import GlobalOptions
from fluss.session import Session

WIDTH_UNSEEN: Final = 80


def run_demo(
    cluster: GlobalOptions, *, rounds: int | None, data_dir: Path | None, keep: bool
) -> bool:
    """Run the demo, and return whether every engine was right.

    Args:
        cluster: The cluster that options name, if any.
        rounds: How many rounds to write; None until Ctrl-C, or for a number that suits a pipe.
        data_dir: Where the data of its server stay; None for a temporary folder.
        keep: Whether the server is left running.
    """
    width = None if sys.stdout.isatty() else WIDTH_UNSEEN
    console = Console(width=width, highlight=False, markup=False)
    with end_cleanly():
        return _run(cluster, console, rounds=rounds, data_dir=data_dir, keep=keep)


def _run(
    cluster: GlobalOptions,
    console: Console,
    *,
    rounds: int | None,
    data_dir: Path | None,
    keep: bool,
) -> bool:
    """Run the demo, and return whether every engine was right."""
    began = time.perf_counter()
    with _open(cluster, data_dir, keep=keep) as (session, kept):
        servers = session.config.bootstrap_servers
        console.print(f"Fluss is ready at {servers} ({time.perf_counter() - began:.1f} s).\n")
        goes_to_lake = has_lake() and not cluster.is_given
        shop = Shop(session, properties=IN_LAKE if goes_to_lake else None)
        is_done = False
        try:
            run_shop(shop, console, rounds)
            if goes_to_lake:
                copy_into_lake(session, shop, console)
            given = list(answers(f"fluss://{servers}", shop.database))
            is_right = print_answers(given, shop.revenue_by_country(), console)
            is_done = True
        finally:
            if cluster.is_given and not (keep and is_done):
                shop.drop()
        if keep:
            print_programs(given, console)
            _print_how_to_end(shop, servers, kept, data_dir, console)
        else:
            console.print("With --keep the server stays, and the programs are printed.")
        if not cluster.is_given:
            print_without_lake(console)
        return is_right


@contextmanager
def _open(
    cluster: GlobalOptions, data_dir: Path | None, *, keep: bool
) -> Iterator[tuple[Session, KeptServer | None]]:
    """Open a session on the cluster of the options, or on a server for this demo."""
    if cluster.is_given:
        with cluster.session() as session:
            yield session, None
    elif keep:
        with start_kept_server(data_dir) as kept, cluster.session(f"fluss://{kept.servers}") as own:
            yield own, kept
    elif data_dir is not None:
        with cluster.session(with_lake(f"embedded:{data_dir}")) as session:
            yield session, None
    else:
        with (
            scratch_folder() as folder,
            cluster.session(with_lake(f"embedded:{folder}")) as session,
        ):
            yield session, None


def _print_how_to_end(
    shop: Shop, servers: str, kept: KeptServer | None, data_dir: Path | None, console: Console
) -> None:
    console.print(f"\nThe database {shop.database} stays at {servers}.")
    if kept is None:
        console.print(f'To end it: session.drop_database("{shop.database}", cascade=True)')
        return
    stay = "are deleted then" if data_dir is None else f"stay in {data_dir}"
    console.print(f"To stop the server: kill {kept.pid}\nIts data {stay}.")
