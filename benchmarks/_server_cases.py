"""The lines of `benchmarks/server.py`: the tasks for both servers, and our targets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEYS = 100_000
LOOKUPS = 20_000
RATIO_MIN = 1.0
TAIL_SECONDS_MAX = 5e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCase:
    """One line of the table.

    Args:
        what: Its name.
        client: The client.
        task: The task, of `_peer_tasks` and `_server_tasks`.
        arguments: Its arguments.
        table: The filled table that it reads.
        rows: How many rows it moves, where the figure is a rate.
        ratio_min: The target speed relative to the real server's.
        seconds_max: The target time.
    """

    what: str
    client: str
    task: str
    arguments: Mapping[str, Any]
    table: str | None = None
    rows: int = 0
    ratio_min: float | None = None
    seconds_max: float | None = None

    def is_selected(self, words: Sequence[str]) -> bool:
        """Return whether the line's name has one of the words; no words select every line."""
        return not words or any(word in f"{self.what} {self.client}" for word in words)

    def arguments_on(self, tables: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments with the server's name of the table."""
        named = {} if self.table is None else {"table": tables[self.table]}
        return {**self.arguments, **named}

    def figure(self, seconds: float) -> str:
        """Format a time, or the rate it means."""
        if self.rows:
            rate = self.rows / seconds
            return f"{rate / 1e6:.2f} M rows/s" if rate >= 1e6 else f"{rate / 1e3:.0f} k rows/s"
        return f"{seconds * 1e3:.2f} ms"

    @property
    def bar(self) -> str:
        """Format the target."""
        if self.ratio_min is not None:
            return f">= {self.ratio_min:.2f}x"
        return "" if self.seconds_max is None else f"< {self.figure(self.seconds_max)}"

    def verdict(self, mine: float, ratio: float) -> str:
        """Return whether the target was met."""
        slow = self.seconds_max is not None and mine >= self.seconds_max
        behind = self.ratio_min is not None and ratio < self.ratio_min
        return "MISSED" if slow or behind else ""


def cases_of(options: argparse.Namespace) -> list[ServerCase]:
    """Return all lines of both clients."""
    return [
        case
        for client in ("ours", "pyfluss")
        for case in (*_logs(options, client), *_keys(options, client), *_latencies(client))
    ]


def _logs(options: argparse.Namespace, client: str) -> list[ServerCase]:
    found = []
    rows = options.rows
    for codec in ("ZSTD", "NONE"):
        for size in (100_000, 10_000):
            text, table = f"{codec}, {size // 1000}k batches", f"{codec} {size}"
            write = {"rows": rows, "batch_rows": size, "codec": codec}
            read = {"rows": rows}
            whats: tuple[tuple[str, str, dict[str, Any], str | None], ...] = (
                (f"append, {text}", "write_arrow", write, None),
                (f"scan, {text}", "to_arrow", read, table),
                (f"scan 2 columns, {text}", "to_arrow", read | {"projected": True}, table),
            )
            found += [
                ServerCase(
                    what=what,
                    client=client,
                    task=task,
                    arguments=given,
                    table=named,
                    rows=rows,
                    ratio_min=RATIO_MIN,
                )
                for what, task, given, named in whats
            ]
    return found


def _keys(options: argparse.Namespace, client: str) -> list[ServerCase]:
    if client == "pyfluss":
        rows = options.rows // 20
        return [
            ServerCase(
                what="upsert dicts, new keys",
                client=client,
                task="upsert_rows",
                arguments={"rows": rows},
                rows=rows,
                ratio_min=RATIO_MIN,
            )
        ]
    rows = options.rows // 5
    upserts = [
        ServerCase(
            what=f"upsert Arrow, {what}",
            client=client,
            task="upsert_arrow",
            arguments={"rows": rows, "batch_rows": 10_000, "again": again},
            rows=rows,
            ratio_min=RATIO_MIN,
        )
        for what, again in (("new keys", False), ("known keys", True))
    ]
    lookups = [
        ServerCase(
            what=what,
            client=client,
            task=task,
            arguments={"keys": KEYS, "count": LOOKUPS},
            table="keyed",
            rows=LOOKUPS,
            ratio_min=RATIO_MIN,
        )
        for what, task in (
            (f"{LOOKUPS:,} lookups, one call", "lookup_arrow"),
            (f"{LOOKUPS:,} concurrent lookups", "gathered"),
        )
    ]
    return [*upserts, *lookups]


def _latencies(client: str) -> list[ServerCase]:
    return [
        ServerCase(
            what="one row until acknowledged, p50",
            client=client,
            task="ack",
            # pyfluss's handles wait for a batch to fill; its flush does not.
            arguments={"waits": client == "ours", "most": 400},
            ratio_min=RATIO_MIN,
        ),
        ServerCase(
            what="acknowledged until a parked reader has it",
            client=client,
            task="tail",
            arguments={"samples": 20, "pause_s": 0.02, "after_acknowledged": True},
            seconds_max=TAIL_SECONDS_MAX if client == "ours" else None,
        ),
    ]
