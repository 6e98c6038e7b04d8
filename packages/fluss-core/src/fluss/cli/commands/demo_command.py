"""The command `fluss demo`; the shop is in `cli.demo`, which loads every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluss.cli.global_options import GlobalOptions


def demo(
    context: typer.Context,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many rounds to write. Default: until Ctrl-C on a screen, otherwise 20."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Keep the shop in this directory. Default: a temporary one, which is removed."
        ),
    ] = None,
    *,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Leave the server running, and print the programs for a notebook."
        ),
    ] = False,
) -> None:
    """Run a small shop in Fluss, and query it in Polars, DuckDB and pandas.

    It starts an embedded server in a temporary directory, or uses the cluster of `fluss --url` or
    `fluss --profile`. It creates a database of its own (fluss_demo, or fluss_demo_2 and so on where
    that exists), writes only there, and drops only that database at the end. With --data-dir the
    shop stays on disk; with --keep the server, or the database on a cluster, stays as well.

    Examples:
        fluss demo
        fluss demo --rounds 5 --data-dir shop
        fluss demo --keep
    """
    cluster: GlobalOptions = context.obj
    if cluster.is_given and data_dir is not None:
        raise typer.BadParameter("--data-dir starts a server, and --url or --profile names another")
    from fluss.cli.demo import run_demo

    if not run_demo(cluster, rounds=rounds, data_dir=data_dir, keep=keep):
        raise typer.Exit(1)
