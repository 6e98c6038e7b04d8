"""The lines of `benchmarks/peer.py`: the tasks of both clients, and our targets.

The targets are the project's own, or else those of its study of pyfluss.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEYS = 10_000
LOOKUPS = 10_000
WIDE_SHARE = 5  # of the rows of six columns, this part is written with thirty
PEER_LOOKUPS = 50  # 10 000 would take the peer a quarter of an hour
WRITE_MIN = 1.2
READ_MIN = {100_000: 2.0, 10_000: 1.2}  # by the rows of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the table.

    Args:
        what: Its name.
        task: The task, of `_peer_tasks`.
        arguments: Its arguments.
        rows: How many rows it moves, where the figure is a rate.
        ratio_min: The target speed relative to the peer's.
        seconds_max: The target time.
        peer_arguments: A smaller task for the peer, where the whole one would take too long.
        peer_factor: The factor by which its time is multiplied then.
    """

    what: str
    task: str
    arguments: Mapping[str, Any]
    rows: int = 0
    ratio_min: float | None = None
    seconds_max: float | None = None
    peer_arguments: Mapping[str, Any] = field(default_factory=dict)
    peer_factor: float = 1.0

    def figure(self, seconds: float) -> str:
        """Format a time, or the rate it means."""
        if self.rows:
            return f"{self.rows / seconds / 1e6:.2f} M rows/s"
        return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"

    @property
    def target(self) -> str:
        """Format the target."""
        if self.ratio_min is not None:
            return f">= {self.ratio_min:.2f}x"
        if self.seconds_max is not None:
            return f"< {self.figure(self.seconds_max)}"
        return ""

    def verdict(self, mine: float, ratio: float | None = None) -> str:
        """Return whether the target was met."""
        slow = self.seconds_max is not None and mine >= self.seconds_max
        behind = self.ratio_min is not None and ratio is not None and ratio < self.ratio_min
        return "MISSED" if slow or behind else ""


def cases_of(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    """Return all lines with their targets."""
    return [*_bulk(options, tables), *_rows(options, tables), *_latencies(options, tables)]


def _bulk(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    found = []
    rows = options.rows
    for codec in ("ZSTD", "NONE"):
        for size in (100_000, 10_000):
            text, table = f"{codec}, {size // 1000}k batches", tables[f"{codec} {size}"]
            write = {"rows": rows, "batch_rows": size, "codec": codec}
            read = {"table": table, "rows": rows}
            read_min = READ_MIN[size]
            whats: tuple[tuple[str, str, dict[str, Any], float], ...] = (
                (f"write Arrow, {text}", "write_arrow", write, WRITE_MIN),
                (f"to_arrow, {text}", "to_arrow", read, read_min),
                (f"to_arrow, 2 columns, {text}", "to_arrow", read | {"projected": True}, read_min),
            )
            if codec == "ZSTD":
                whats += (
                    (f"to_pandas, {text}", "to_pandas", read, read_min),
                    (f"to_arrow_batch_reader, {text}", "batch_reader", read, read_min),
                    (f"poll_arrow, {text}", "poll_arrow", read, read_min),
                )
            found += [
                Case(what=what, task=task, arguments=given, rows=rows, ratio_min=ratio)
                for what, task, given, ratio in whats
            ]
    return found


def _rows(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    rows, polled = options.row_count, min(options.rows, 4 * options.row_count)
    few = rows // WIDE_SHARE
    poll = {"table": tables["ZSTD 10000"], "rows": polled}
    counted, looked = poll | {"look": False}, poll | {"look": True}
    nested = {"table": tables["nested"], "rows": few, "look": True}
    # Name, task, how many rows, further arguments, target.
    lines: tuple[tuple[str, str, int, dict[str, Any], float], ...] = (
        ("poll(), counted", "poll", polled, counted, 2.5),
        ("poll(), rows read", "poll", polled, looked, 1.1),
        ("poll(), nested rows read", "poll", few, nested, 1.0),
        ("append(dict), flush", "append_rows", rows, {}, 1.0),
        ("append(tuple), flush", "append_rows", rows, {"as_tuples": True}, 1.3),
        ("append(dict), 30 columns, half NULL", "append_rows", few, {"shape": "wide"}, 1.0),
        ("append(dict), nested", "append_rows", few, {"shape": "nested"}, 1.0),
        ("upsert(dict), new keys", "upsert_rows", rows, {}, 1.1),
        ("upsert(dict), known keys", "upsert_rows", rows, {"overwrites": True}, 1.1),
    )
    return [
        Case(what=what, task=task, arguments={"rows": count} | more, rows=count, ratio_min=ratio)
        for what, task, count, more, ratio in lines
    ]


def _latencies(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    keyed = {"table": tables["table"], "keys": KEYS}
    many = 50 if options.quick else 200
    return [
        Case(
            what="append().wait()",
            task="ack",
            arguments={"waits": True, "most": many},
            seconds_max=5e-3,
        ),
        Case(
            what="append, flush",
            task="ack",
            arguments={"waits": False, "most": many},
            seconds_max=5e-3,
        ),
        Case(
            what="append until a reader has it",
            task="tail",
            arguments={"samples": 5, "pause_s": 0.05},
            seconds_max=30e-3,
        ),
        Case(
            what="lookup",
            task="lookups",
            arguments={**keyed, "most": 4 * many},
            peer_arguments={**keyed, "most": many},
            seconds_max=0.3e-3,
        ),
        Case(
            what=f"{LOOKUPS:,} concurrent lookups",
            task="gathered",
            arguments={**keyed, "count": LOOKUPS},
            seconds_max=0.25,
            peer_arguments={**keyed, "count": PEER_LOOKUPS},
            peer_factor=LOOKUPS / PEER_LOOKUPS,
        ),
        Case(
            what="prefix lookup of 20 rows",
            task="prefix_lookups",
            arguments={"table": tables["prefixed"], "most": many},
            seconds_max=1e-3,
        ),
        Case(what="connect", task="connects", arguments={"most": 10}, seconds_max=5e-3),
        Case(
            what="connect to first rows",
            task="connects",
            arguments={"most": 10, "table": tables["ZSTD 10000"]},
            seconds_max=12e-3,
        ),
    ]
