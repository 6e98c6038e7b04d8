"""`fluss demo`: a small shop that writes to Fluss and is queried in every installed engine.

It starts a server in a temporary directory, unless options name a cluster or a directory. It
creates a database under a free name and writes only there; on a cluster it drops that database, and
nothing else, at the end. FLUSS_URL and the rest of the environment are ignored, so that the demo
writes to no cluster by accident.

On a screen it shows the rows while they are written, until Ctrl-C; elsewhere it writes a number of
rounds and ends. Every engine's result is compared with the shop's own books; the exit code is 0 if
all are equal.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from fluss.cli.demo.engine_answers import Answer, answers
from fluss.cli.demo.shop import Shop
from fluss.cli.global_options import GlobalOptions
from fluss.scan import Follow
from fluss.session import Session
from fluss.waiting import join

ROUNDS_UNSEEN: Final = 20
ROUND_S: Final = 0.25
_TOP: Final = 10


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
) -> None:
    """Run a small shop in Fluss, and query it in Polars, DuckDB and pandas.

    It starts an embedded server in a temporary directory, or uses the cluster of `fluss --url` or
    `fluss --profile`. It creates a database of its own (fluss_demo, or fluss_demo_2 and so on where
    that exists), writes only there, and drops only that database at the end. With --data-dir the
    shop stays.
    """
    cluster: GlobalOptions = context.obj
    if cluster.is_given and data_dir is not None:
        raise typer.BadParameter("--data-dir starts a server, and --url or --profile names another")
    console = Console(width=None if sys.stdout.isatty() else 100)
    with tempfile.TemporaryDirectory(prefix="fluss-demo-") as scratch:
        began = time.perf_counter()
        with _session_for(cluster, data_dir or Path(scratch)) as session:
            servers = session.config.bootstrap_servers
            took = time.perf_counter() - began
            console.print(f"A Fluss is ready at {servers} after {took:.2f} s.", highlight=False)
            shop = Shop(session)
            try:
                _keep_shop(shop, console, rounds)
                is_right = _query_engines(shop, f"fluss://{servers}", console)
                if sys.stdout.isatty() and rounds is None:
                    _stay_open(console)
            finally:
                if cluster.is_given:
                    shop.drop()
    if not is_right:
        raise typer.Exit(1)


def _session_for(cluster: GlobalOptions, directory: Path) -> AbstractContextManager[Session]:
    """Open a session on the cluster of the options, or on a server in a directory."""
    return cluster.session() if cluster.is_given else cluster.session(f"embedded:{directory}")


def _keep_shop(shop: Shop, console: Console, rounds: int | None) -> None:
    """Write rounds; on a screen, show the progress."""
    board = _Board(shop)
    with board.follower:
        if not sys.stdout.isatty():
            for _ in range(rounds or ROUNDS_UNSEEN):
                shop.write_round()
        else:
            _show(shop, board, console, rounds)
        console.print(board.caught_up().picture())


def _show(shop: Shop, board: _Board, console: Console, rounds: int | None) -> None:
    """Write on another thread, so that Ctrl-C never falls between a write and its books."""
    closing = threading.Event()

    def write() -> None:
        left = rounds
        while not closing.is_set() and left != 0:
            began = time.perf_counter()
            shop.write_round()
            left = None if left is None else left - 1
            closing.wait(max(0.0, ROUND_S - (time.perf_counter() - began)))

    writer = threading.Thread(target=write, name="shop")
    writer.start()
    try:
        with Live(board.picture(), console=console, transient=True, refresh_per_second=8) as live:
            while writer.is_alive():
                live.update(board.caught_up().picture())
                time.sleep(ROUND_S / 2)
    except KeyboardInterrupt:
        pass  # the user closed the shop
    finally:
        closing.set()
        join(writer)


def _stay_open(console: Console) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        console.print("\nThe shop stays open for your notebook; Ctrl-C closes it.")
        while True:
            time.sleep(3600)


class _Board:
    """The display of the shop: rates, and the pages with most clicks, read by following."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._began = time.perf_counter()
        self._seen: Counter[str] = Counter()
        self.follower: Follow = shop.clicks.follow(start="earliest", columns=["page"])

    def caught_up(self) -> _Board:
        """Read the clicks that were written since, up to the last one."""
        rows = iter(self.follower)
        while self._seen.total() < self._shop.click_count:
            pages = next(rows).column("page").value_counts()
            for page in pages.to_pylist():
                self._seen[page["values"]] += page["counts"]
        return self

    def picture(self) -> RenderableType:
        """Draw the display."""
        shop, seconds = self._shop, time.perf_counter() - self._began
        facts = Text.assemble(
            (f"{shop.row_count:,}", "bold"),
            f" rows written, {shop.row_count / seconds:,.0f} a second: ",
            f"{shop.order_count:,} orders, {shop.click_count:,} clicks, ",
            f"{shop.change_count:,} changes of {shop.customer_count:,} customers",
        )
        top = RichTable(title=f"{shop.database}.clicks, followed", box=None, title_justify="left")
        top.add_column("page")
        top.add_column("clicks", justify="right")
        top.add_column("")
        best = self._seen.most_common(_TOP)
        for page, count in best:
            top.add_row(page, f"{count:,}", "█" * round(30 * count / best[0][1]))
        return Group(facts, top)


def _query_engines(shop: Shop, url: str, console: Console) -> bool:
    """Query every engine, and return whether all results equal the shop's books."""
    expected = shop.revenue_by_country()
    table = RichTable(title="What customers spent, by country", box=None, title_justify="left")
    table.add_column("asked in")
    table.add_column("seconds", justify="right")
    for country, _ in expected:
        table.add_column(country, justify="right")
    table.add_row("the books", "", *(_money(spent) for _, spent in expected))
    given: list[Answer] = []
    for answer in answers(url, shop.database):
        given.append(answer)
        table.add_row(
            answer.engine, f"{answer.seconds:.3f}", *(_money(spent) for _, spent in answer.rows)
        )
    console.print(table)
    wrong = [answer.engine for answer in given if answer.rows != expected]
    for answer in given:
        console.print(Text(f"\n# {answer.engine}, for a notebook\n{answer.lines}", style="dim"))
    verdict = f"wrong: {', '.join(wrong)}" if wrong else "all as in the books"
    console.print(f"{len(given)} engines asked; {verdict}.", highlight=False)
    return not wrong


def _money(spent: Decimal) -> str:
    return f"{spent / 1000:,.1f}k"
