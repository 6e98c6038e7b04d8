"""Random operations on a table of two servers: their kinds and their frequencies.

`differential_ddl`, `differential_writes` and `differential_reads` send the requests and compare the
responses. Cases in which the embedded server differs on purpose are left out
(`embedded_differences` and docs/server.md): rows that no reader can read, appends to primary-key
tables, requests of several batches of which some are duplicates. Separate tests cover those.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.support.differential.differential_ddl import alter, create, describe, drop, partition
from tests.support.differential.differential_reads import (
    fetch,
    limit_scan,
    lookup,
    offsets,
    prefix,
    snapshots,
    stats,
)
from tests.support.differential.differential_servers import ServerPair
from tests.support.differential.differential_tables import DifferentialTable
from tests.support.differential.differential_writes import append, put

Operation = Callable[[Random, ServerPair, DifferentialTable], None]


def operate(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    """Perform one random operation."""
    if not table.exists and chance.random() < 0.9:
        create(chance, servers, table)
        return
    pool = _ON_KEYS if table.kind.keys else _ON_LOGS
    operation = chance.choices(list(pool), weights=list(pool.values()))[0]
    operation(chance, servers, table)


_ON_BOTH: dict[Operation, int] = {
    create: 1,
    drop: 1,
    alter: 3,
    describe: 2,
    partition: 3,
    fetch: 12,
    offsets: 4,
    limit_scan: 4,
    lookup: 4,
    stats: 1,
    snapshots: 1,
}
_ON_LOGS: dict[Operation, int] = {**_ON_BOTH, append: 30}
_ON_KEYS: dict[Operation, int] = {**_ON_BOTH, put: 40, lookup: 12, prefix: 4}
