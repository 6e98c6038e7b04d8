"""Takes the pictures of the documentation: `./dev docs screenshots [NAME ...]`.

Terminal pictures are SVG, drawn from commands that run in a pseudo terminal against a server of
their own. Pictures of pages are PNG with few colours, made by a headless Chromium of the site,
which must not ask another host for anything. All are written into docs/pictures.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image

import fluss
from fluss_server import LocalCluster
from tools.docs import site
from tools.docs.browser import Browser, BrowserMissingError, find_or_install_chromium
from tools.docs.terminal_pictures import Terminal

PICTURES = site.ROOT / "docs" / "pictures"
SCRIPTS = Path(sys.executable).parent
COLOURS = 48
DESKTOP, PHONE = (1280, 800), (390, 800)
COLUMNS = 84


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A picture of a page: a window of a size, after a script has ended."""

    name: str
    address: str
    window: tuple[int, int] = DESKTOP
    dark: bool = False
    script: str = ""
    shown: str = "true"


PAGES: Final = (
    Page(name="site-desktop", address="index.html"),
    Page(name="site-phone", address="cookbook/cron.html", window=PHONE, dark=True),
    Page(
        name="site-search",
        address="index.html?q=cursor",
        shown="document.querySelectorAll('.md-search-result__item').length > 3",
    ),
    Page(
        name="notebook",
        address="repository/examples/notebooks/tour_in_polars.ipynb.html",
        script="document.querySelector('img[alt=\"A plot\"]')?.scrollIntoView({block: 'center'})",
    ),
)


def take_screenshots(names: Sequence[str]) -> int:
    """Take the pictures of these names, or all."""
    known = [*TERMINALS, *(page.name for page in PAGES)]
    if unknown := set(names) - set(known):
        print(f"docs: no picture {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return 2
    try:
        _take_terminals([each for each in TERMINALS if not names or each in names])
        return _take_pages([each for each in PAGES if not names or each.name in names])
    except (BrowserMissingError, site.ToolsMissingError) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2


def _take_terminals(names: Sequence[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as folder, LocalCluster(durability="none") as cluster:
            environment = {
                "FLUSS_BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
                "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
                "HOME": folder,
            }
            _write(f"{name}.svg", TERMINALS[name](environment, cluster.url).encode())


def _demo(environment: Mapping[str, str], _: str) -> str:
    command = ["fluss", "demo", "--rounds", "6"]
    with Terminal(command, columns=COLUMNS, lines=48, environment=environment) as terminal:
        terminal.wait_for("engines asked")
        terminal.settle()
        return terminal.picture("fluss demo")


def _tail(environment: Mapping[str, str], url: str) -> str:
    with fluss.connect(url) as session:
        session.create_database("shop")
        rows = {"id": [1, 2], "country": ["DE", "FR"], "amount": [9.5, 20.0]}
        session.append("shop.orders", rows, create=True, buckets=1)
        command = ["fluss", "tail", "-f", "shop.orders"]
        with Terminal(command, columns=COLUMNS, lines=14, environment=environment) as terminal:
            terminal.wait_for("20")
            for number, country in enumerate(("JP", "DE", "IN"), start=3):
                more = {"id": [number], "country": [country], "amount": [number * 7.25]}
                session.append("shop.orders", more)
                terminal.wait_for(country)
                terminal.settle()
            return terminal.picture("fluss tail -f shop.orders")


def _sql(environment: Mapping[str, str], url: str) -> str:
    statements = {
        "SHOW TABLES;": r"\(1 row",
        "SELECT country, sum(amount) AS total FROM fluss.shop.orders GROUP BY ALL ORDER BY total;": (
            r"\(3 rows"
        ),
        "INSERT INTO fluss.shop.orders VALUES (5, 'IN', 12.5);": "1 row appended",
    }
    with fluss.connect(url) as session:
        session.create_database("shop")
        rows = {"id": [1, 2, 3], "country": ["DE", "FR", "JP"], "amount": [39.75, 20.0, 7.0]}
        session.append("shop.orders", rows, create=True)
    with Terminal(["fluss", "sql"], columns=100, lines=24, environment=environment) as terminal:
        terminal.wait_for("fluss> ")
        for statement, answer in statements.items():
            terminal.settle()
            terminal.send(f"{statement}\r")
            terminal.wait_for(answer)
        terminal.settle()
        return terminal.picture("fluss sql")


TERMINALS: Final[Mapping[str, Callable[[Mapping[str, str], str], str]]] = {
    "terminal-demo": _demo,
    "terminal-tail": _tail,
    "terminal-sql": _sql,
}


def _take_pages(pages: Sequence[Page]) -> int:
    if not pages:
        return 0
    for page in pages:
        if not (PICTURES / f"{page.name}.png").exists():  # pages show it, and must be built first
            Image.new("RGB", (1, 1)).save(PICTURES / f"{page.name}.png")
    if code := site.build(site.SITE):
        return code
    program = find_or_install_chromium()
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            with Browser(program) as browser:
                width, height = page.window
                address = f"file://{site.SITE}/{page.address}"
                browser.show(address, width=width, height=height, dark=page.dark)
                browser.wait_for(page.shown)
                browser.value(page.script)
                browser.wait_for("document.fonts.status == 'loaded'")
                browser.picture(Path(folder, "page.png"))
            _write(f"{page.name}.png", _with_few_colours(Path(folder, "page.png")))
            foreign = [
                each for each in browser.requested if not each.startswith(("file:", "data:"))
            ]
            if foreign or browser.complaints:
                print(f"docs: {page.address}: {[*foreign, *browser.complaints]}", file=sys.stderr)
                return 1
    return 0


def _with_few_colours(path: Path) -> bytes:
    small = path.with_name("small.png")
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS).save(small, optimize=True)
    return small.read_bytes()


def _write(name: str, data: bytes) -> None:
    (PICTURES / name).write_bytes(data)
    print(f"docs: docs/pictures/{name}, {len(data) / 1024:.0f} KiB")
