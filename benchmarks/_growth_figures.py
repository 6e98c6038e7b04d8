"""The figures of `benchmarks/growth.py`: how they are compared, and their tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# Above this exponent a cost grows faster than its axis; the rest is noise.
LINEAR_MAX = 1.15
WORSE = "WORSE THAN LINEAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of call.

    Args:
        name: Its name.
        unit: What its figures are divided by: a row, a call, a partition.
        is_counted: Whether the axis counts these units: 10^7 rows are as many rows.
    """

    name: str
    unit: str = "call"
    is_counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One work at one size: seconds and processor seconds of a unit."""

    work: Work
    size: int
    seconds: float
    cpu: float

    @property
    def text(self) -> str:
        """Time, and in brackets the processor time."""
        return f"{duration(self.seconds)} ({duration(self.cpu)})"


class Axis(Protocol):
    """What grows."""

    @property
    def name(self) -> str:
        """Its name."""


def growth(figures: Sequence[Figure]) -> float | None:
    """Return the exponent of a work's total processor time between its two largest sizes.

    None with fewer than two sizes, or where a processor time is not known.
    """
    if len(figures) < 2:
        return None
    small, large = sorted(figures, key=lambda each: each.size)[-2:]
    if small.cpu <= 0 or large.cpu <= 0 or small.size == large.size:
        return None
    exponent = math.log(large.cpu / small.cpu) / math.log(large.size / small.size)
    return exponent + 1 if large.work.is_counted else exponent


def duration(seconds: float) -> str:
    """Format a time with the unit that fits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e9:.0f} ns"


def by_work(figures: Sequence[Figure]) -> dict[Work, list[Figure]]:
    """Return the figures of each work, by rising size."""
    found: dict[Work, list[Figure]] = {}
    for each in sorted(figures, key=lambda each: each.size):
        found.setdefault(each.work, []).append(each)
    return found


def table_rows(axis: Axis, figures: Sequence[Figure]) -> list[list[str]]:
    """Return the table of an axis: its head, then a line for each work with its growth."""
    sizes = sorted({each.size for each in figures})
    rows = [[f"with {axis.name}:", *(f"{size:,}" for size in sizes), "growth", ""]]
    for work, found in by_work(figures).items():
        known = {each.size: each.text for each in found}
        exponent = growth(found)
        rows.append(
            [
                f"{work.name}, per {work.unit}",
                *(known.get(size, "") for size in sizes),
                "" if exponent is None else f"{exponent:.2f}",
                WORSE if exponent is not None and exponent > LINEAR_MAX else "",
            ]
        )
    return rows


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of Markdown; the last column joins the one before it."""
    joined = [[*row[:-2], " ".join(filter(None, row[-2:]))] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in joined]
    return "\n".join([lines[0], "|---" * len(joined[0]) + "|", *lines[1:]])


def with_block(page: str, name: str, text: str) -> str:
    """Replace the block of this name in a page: what is between its two comments.

    Raises:
        ValueError: The page has no such block.
    """
    block = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    changed, count = block.subn(lambda found: f"{found[1]}{text}\n{found[2]}", page)
    if count != 1:
        raise ValueError(f"the page has {count} blocks named {name}, not one")
    return changed
