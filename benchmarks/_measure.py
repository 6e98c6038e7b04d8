"""Shared code of the benchmarks: servers, measuring, printing.

The machines are shared and noisy, so a single time means little. A figure is the median of several
rounds with its spread; a comparison alternates the two sides within one run, in both orders, and
reports the ratio of each pair. No benchmark asserts a speed: a missed target is printed as a miss.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The times of several rounds of the same work, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median round."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> str:
        """The fastest and the slowest round, relative to the median."""
        low, high = min(self.seconds) / self.median, max(self.seconds) / self.median
        return f"{low:.2f}-{high:.2f}"


def rounds(work: Callable[[], object], *, count: int = 9, seconds_min: float = 0.05) -> Rounds:
    """Time `work` in `count` rounds, each repeated until it lasts `seconds_min`."""
    work()
    repeats = 1
    while True:
        taken = _time(work, repeats)
        if taken >= seconds_min or repeats >= 1_000_000:
            break
        repeats = max(repeats * 2, int(repeats * seconds_min / max(taken, 1e-9)))
    return Rounds(seconds=tuple(_time(work, repeats) / repeats for _ in range(count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Times of two sides, taken in turns."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Our speed relative to the peer's, for each pair."""
        return tuple(peer / ours for ours, peer in zip(self.ours, self.peer, strict=True))

    @property
    def ratio(self) -> float:
        """The median ratio."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> str:
        """The worst and the best ratio."""
        return f"{min(self.ratios):.2f}-{max(self.ratios):.2f}"


def interleaved(ours: Callable[[], float], peer: Callable[[], float], *, pairs: int = 7) -> Pairs:
    """Run both sides alternately, every second pair in reverse order; each returns its seconds."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(pairs):
        if number % 2 == 0:
            mine.append(ours())
            theirs.append(peer())
        else:
            theirs.append(peer())
            mine.append(ours())
    return Pairs(ours=tuple(mine), peer=tuple(theirs))


@contextmanager
def cluster(bootstrap: str | None) -> Iterator[str]:
    """Yield the cluster at an address, or a real one that runs during the measurement."""
    if bootstrap:
        yield bootstrap
        return
    from fluss_testkit.java_cluster import JavaCluster

    with JavaCluster() as running:
        yield running.bootstrap_servers


def machine() -> str:
    """Return the machine and the versions in one line."""
    import numpy as np
    import pyarrow as pa

    return (
        f"{_processor()}, {platform.system()} {platform.release()}, Python {sys.version.split()[0]}, "
        f"pyarrow {pa.__version__}, numpy {np.__version__}"
    )


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table under the name of the machine."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    print(f"{title}\n{machine()}\n")
    for row in (heads, ["-" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print()


def resident_bytes(pid: int | None = None) -> int:
    """Return the resident memory of a process, or of this one; 0 where that is not reported."""
    with suppress(OSError):
        fields = Path(f"/proc/{'self' if pid is None else pid}/statm").read_text()
        return int(fields.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _time(work: Callable[[], object], repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    return time.perf_counter() - started


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()
