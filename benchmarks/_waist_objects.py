"""Measures the memory that a client keeps for each connection, follower and split.

`python -m benchmarks._waist_objects [URL]` prints a line for each; without a URL it starts an
embedded server, which is a process of its own. Each kind is measured between two readings of the
resident memory, after some objects of the kind have been made: modules and caches are not in it.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

import fluss
from benchmarks._measure import resident_bytes
from benchmarks._waist_memory import MB
from fluss.session import Session
from fluss_server import LocalCluster

COUNT = 200
WARM = 20
BUCKETS = 100
TIMEOUT_MS = 60_000
ALL: list[Any] = []  # everything that was made, until the end


def main() -> None:
    """Print the lines."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    with LocalCluster() as cluster:
        measure(cluster.url)


def measure(url: str) -> None:
    """Measure on a cluster; the database is dropped again."""
    with ExitStack() as stack:
        session = stack.enter_context(fluss.connect(url))
        database = "memory_of_objects"
        session.create_database(database, ignore_if_exists=True)
        stack.callback(session.drop_database, database, cascade=True)
        schema = pa.schema([(f"c{each}", pa.int64()) for each in range(6)])
        one = session.create_table(f"{database}.one", schema, buckets=1)
        many = session.create_table(f"{database}.many", schema, buckets=BUCKETS)
        one.append({name: [1] for name in schema.names})
        many.append({name: list(range(10_000)) for name in schema.names})

        _line("a connection", _kept(lambda number: _connected(url, number)))
        _line("a follower of one bucket", _kept(lambda _: _following(one)))
        _line("a split of a plan", _kept(lambda _: many.scan().splits()) / BUCKETS)
        sizes = [len(pickle.dumps(split)) for split in many.scan().splits()]
        _line("a pickled split", sum(sizes) / len(sizes) / MB)


def _connected(url: str, number: int) -> Session:
    # Sessions with equal settings would share one connection.
    session = fluss.connect(url, request_timeout_ms=TIMEOUT_MS + number)
    session.databases()
    return session


def _following(table: Any) -> Any:
    follower = table.follow(start="latest")
    follower.poll(0)
    return follower


def _kept(make: Callable[[int], Any]) -> float:
    """The memory that an object keeps, in MB. Nothing is freed: the next kind would get that."""
    ALL.extend(make(number) for number in range(WARM))
    gc.collect()
    before = resident_bytes() / MB
    ALL.extend(make(WARM + number) for number in range(COUNT))
    gc.collect()
    return (resident_bytes() / MB - before) / COUNT


def _line(what: str, size_mb: float) -> None:
    sys.stdout.write(f"{what:<28} {1_000 * size_mb:8.2f} kB\n")


if __name__ == "__main__":
    main()
