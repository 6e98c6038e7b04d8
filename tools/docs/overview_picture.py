"""Draws the picture of the landing page: what connects to what, for light and for dark pages.

The picture is narrow and its letters are large, so that it can be read on a phone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 500
_LEFT, _RIGHT = 20, WIDTH - 20
_GAP = 10
_FONT: Final = "font-family='system-ui, -apple-system, Segoe UI, Roboto, sans-serif'"

ENGINES: Final = (
    ("Polars", "lazy frames"),
    ("DuckDB", "SQL"),
    ("pandas", "frames"),
    ("Spark", "streams"),
    ("Python", "sync, async"),
    ("terminal", "fluss …"),
)
TABLES: Final = (
    ("log tables", "append, in order"),
    ("primary-key tables", "one row per key"),
    ("changelogs", "every change of a row"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Palette:
    text: str
    quiet: str
    line: str
    engine: str
    core: str
    core_text: str
    server: str
    table: str


_LIGHT: Final = _Palette(
    text="#1c2733",
    quiet="#51606f",
    line="#8fa1b3",
    engine="#eef3f8",
    core="#2c5f8a",
    core_text="#ffffff",
    server="#f6f1e4",
    table="#fffdf6",
)
_DARK: Final = _Palette(
    text="#e7edf3",
    quiet="#a9b7c4",
    line="#6d8196",
    engine="#24303c",
    core="#4a8fc7",
    core_text="#0d1720",
    server="#2f2b20",
    table="#3c3727",
)


def overview_pictures() -> dict[str, str]:
    """Return both pictures, by their path in docs."""
    return {
        "pictures/overview-light.svg": _picture(_LIGHT),
        "pictures/overview-dark.svg": _picture(_DARK),
    }


def _picture(colours: _Palette) -> str:
    title = (
        "Polars, DuckDB, pandas, Spark, programs and the terminal use fluss-core, which speaks the "
        "protocol of Fluss with a cluster or with the embedded server. Tables are logs, "
        "primary-key tables and their changelogs."
    )
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' {_FONT}>",
        f"<title>{escape(title)}</title>",
        *_engines(colours),
        *_core(colours),
        *_servers(colours),
        "</svg>",
    ]
    return "\n".join(parts).replace("'", '"') + "\n"


def _engines(colours: _Palette) -> Iterator[str]:
    width = _share(len(ENGINES))
    for index, (name, what) in enumerate(ENGINES):
        left = _LEFT + index * (width + _GAP)
        yield _box(left, 14, width, 74, colours.engine, colours.line)
        yield _text(left + width / 2, 47, name, 18, colours.text, bold=True)
        yield _text(left + width / 2, 70, what, 14, colours.quiet)
        yield _arrow(left + width / 2, 88, 128, colours.line)


def _core(colours: _Palette) -> Iterator[str]:
    yield _box(_LEFT, 132, _RIGHT - _LEFT, 88, colours.core, colours.core)
    middle = WIDTH / 2
    yield _text(middle, 168, "fluss-core, in Python", 22, colours.core_text, bold=True)
    yield _text(
        middle,
        198,
        "plans scans · batches writes · looks up keys · decodes Arrow",
        17,
        colours.core_text,
    )
    for left in (middle - 170, middle + 170):
        yield _arrow(left, 220, 272, colours.line)
    yield _text(middle, 252, "the protocol of Fluss", 16, colours.quiet)


def _servers(colours: _Palette) -> Iterator[str]:
    width = _share(2)
    servers = (
        ("Apache Fluss", "a cluster, with replicas"),
        ("fluss server", "one process, no Java: laptops, tests"),
    )
    yield _box(_LEFT, 276, _RIGHT - _LEFT, 208, colours.server, colours.line)
    for index, (name, what) in enumerate(servers):
        middle = _LEFT + index * (width + _GAP) + width / 2
        yield _text(middle, 310, name, 20, colours.text, bold=True)
        yield _text(middle, 335, what, 16, colours.quiet)
    yield _text(WIDTH / 2, 310, "or", 16, colours.quiet)
    inner = (_RIGHT - _LEFT - 40 - 2 * _GAP) / len(TABLES)
    for index, (name, what) in enumerate(TABLES):
        left = _LEFT + 20 + index * (inner + _GAP)
        yield _box(left, 364, inner, 96, colours.table, colours.line)
        yield _text(left + inner / 2, 405, name, 17, colours.text, bold=True)
        yield _text(left + inner / 2, 432, what, 15, colours.quiet)


def _share(parts: int) -> float:
    return (_RIGHT - _LEFT - (parts - 1) * _GAP) / parts


def _box(left: float, top: float, width: float, height: float, fill: str, line: str) -> str:
    return (
        f"<rect x='{left:.1f}' y='{top}' width='{width:.1f}' height='{height}' rx='9' fill='{fill}' "
        f"stroke='{line}'/>"
    )


def _text(x: float, y: float, text: str, size: int, fill: str, *, bold: bool = False) -> str:
    weight = " font-weight='600'" if bold else ""
    return (
        f"<text x='{x:.1f}' y='{y}' font-size='{size}' fill='{fill}' text-anchor='middle'{weight}>"
        f"{escape(text)}</text>"
    )


def _arrow(x: float, top: float, bottom: float, line: str) -> str:
    """Draw an arrow with two heads: data goes both ways."""
    heads = "".join(
        f"<path d='M{x - 5:.1f} {tip + turn * 8} L{x:.1f} {tip} L{x + 5:.1f} {tip + turn * 8}' fill='none' "
        f"stroke='{line}' stroke-width='2'/>"
        for tip, turn in ((top + 3, 1), (bottom, -1))
    )
    shaft = f"<path d='M{x:.1f} {top + 3} V{bottom}' stroke='{line}' stroke-width='2'/>"
    return shaft + heads
