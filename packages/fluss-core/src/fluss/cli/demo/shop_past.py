"""The past of the shop: its tables are copied into a lake, and old rows leave the log.

Only with the package fluss-lake, and on the demo's own server. The engines that are asked
afterwards read lake and log together, without a word about it in their programs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from rich.console import Console

from fluss.cli.demo.shop import Shop
from fluss.install_hints import how_to_install
from fluss.session import Session

PACKAGE: Final = "fluss_lake"
# Without the lake, a server keeps expired rows; so these may expire while the shop is open.
IN_LAKE: Final[Mapping[str, str]] = {"table.datalake.enabled": "true", "table.log.ttl": "1s"}
EXPIRY_S: Final = 1.0
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.1


def has_lake() -> bool:
    """Return whether the package that writes lakes is installed."""
    return find_spec(PACKAGE) is not None


def with_lake(url: str) -> str:
    """Return the URL of an embedded server, with a lake where the package is installed."""
    return f"{url}?lake" if has_lake() else url


def print_without_lake(console: Console) -> None:
    """Say in one sentence what the package would add."""
    if not has_lake():
        how = how_to_install("fluss-lake")
        console.print(
            f"\nWith fluss-lake the shop has a past in a lake, too: {how}", soft_wrap=True
        )


def copy_into_lake(session: Session, shop: Shop, console: Console) -> None:
    """Copy the shop's tables into the lake, wait until old rows have left the log, and say so."""
    time.sleep(EXPIRY_S)
    began = time.perf_counter()
    names = [f"{shop.database}.{name}" for name in ("orders", "customers", "clicks")]
    done = import_module(PACKAGE).tier(names, cluster=session, now=True)
    took = time.perf_counter() - began
    if done.errors:
        console.print(f"\nNot all of it is in the lake: {next(iter(done.errors.values()))}")
        return
    left = _count_after_expiry(shop)
    console.print(f"\nThe lake (Iceberg): all tables copied in {took:.1f} s", style="bold")
    in_lake, all_of_it = shop.clicks.count(lake="only"), shop.clicks.count()
    console.print(
        f"  clicks: {in_lake:,} in the lake, {left:,} left in the log; read: {all_of_it:,}"
    )


def _count_after_expiry(shop: Shop) -> int:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        left = shop.clicks.count(lake="off")
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_POLL_S)
