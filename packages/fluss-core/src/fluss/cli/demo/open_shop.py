"""The open shop: rounds are written, and the display follows what arrives in Fluss."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from fluss.cli.demo.closing import closing_time
from fluss.cli.demo.shop import Shop
from fluss.scan import Follow
from fluss.waiting import join, wait_until

ROUNDS_UNSEEN: Final = 20
ROUND_S: Final = 0.25
BARS_MAX: Final = 30
_TOP: Final = 8
# What a line of the display needs beside its bar: the page, the clicks, and the space between.
_BESIDE_BARS: Final = 24
HOW_TO_GO_ON: Final = "Ctrl-C: ask the engines"


def run_shop(shop: Shop, console: Console, rounds: int | None) -> None:
    """Write rounds until their number is reached or the user ends it; on a screen, show them."""
    board = _Board(shop)
    with closing_time() as is_closing, board.follower:
        if sys.stdout.isatty():
            _show(shop, board, console, rounds, is_closing)
        else:
            for _ in range(rounds or ROUNDS_UNSEEN):
                if is_closing.is_set():
                    break
                shop.write_round()
        console.print(board.caught_up().picture(console.width))


def _show(
    shop: Shop,
    board: _Board,
    console: Console,
    rounds: int | None,
    is_closing: threading.Event,
) -> None:
    """Show the board while another thread writes rounds."""
    writer = _Writer(shop, rounds, is_closing)
    writer.start()
    footer = Text(f"\n{HOW_TO_GO_ON}", style="bold")
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        while writer.is_alive():
            live.update(Group(board.caught_up().picture(console.width), footer))
            wait_until(is_closing.wait, ROUND_S / 2)
            if is_closing.is_set():
                break
    join(writer)
    if writer.error is not None:
        raise writer.error


class _Writer(threading.Thread):
    """Writes a round, and a quarter of a second later the next."""

    def __init__(self, shop: Shop, rounds: int | None, is_closing: threading.Event) -> None:
        super().__init__(name="shop")
        self._shop = shop
        self._left = rounds
        self._is_closing = is_closing
        self.error: BaseException | None = None

    def run(self) -> None:
        """Write until the rounds are written or the shop closes."""
        try:
            while not self._is_closing.is_set() and self._left != 0:
                began = time.perf_counter()
                self._shop.write_round()
                self._left = None if self._left is None else self._left - 1
                self._is_closing.wait(max(0.0, ROUND_S - (time.perf_counter() - began)))
        except BaseException as error:  # noqa: BLE001 - the thread that shows the board raises it
            self.error = error


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

    def picture(self, width: int) -> RenderableType:
        """Draw the display for a screen of a width."""
        shop, seconds = self._shop, time.perf_counter() - self._began
        facts = Text.assemble(
            (f"{shop.row_count:,}", "bold"),
            f" rows written, {shop.row_count / seconds:,.0f} a second\n",
            f"  {shop.order_count:,} orders, a log partitioned by day\n",
            f"  {shop.change_count:,} changes of {shop.customer_count:,} customers, by key\n",
            f"  {shop.click_count:,} clicks, a log that is followed:\n",
        )
        top = RichTable(box=None, show_header=False, padding=(0, 1))
        top.add_column(no_wrap=True)
        top.add_column(justify="right", no_wrap=True)
        top.add_column(no_wrap=True)
        best = self._seen.most_common(_TOP)
        bars = max(1, min(BARS_MAX, width - _BESIDE_BARS))
        for page, count in best:
            top.add_row(page, f"{count:,}", "█" * round(bars * count / best[0][1]))
        return Group(facts, top)
