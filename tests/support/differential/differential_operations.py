"""Random operations on a table of two servers: which kinds there are, and how often.

What is asked, and what both have to agree on, is in `twin_ddl`, `twin_writes` and `twin_reads`.
Left out is where the embedded server is meant to answer otherwise (`embedded_differences` and
docs/server.md): rows nobody could read, appends to keyed tables, requests of several batches of
which some are duplicates. Tests of their own look at those.
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
from tests.support.differential.differential_servers import Twins
from tests.support.differential.differential_tables import TwinTable
from tests.support.differential.differential_writes import append, put

Operation = Callable[[Random, Twins, TwinTable], None]


def operate(chance: Random, twins: Twins, table: TwinTable) -> None:
    """Do one random operation."""
    if not table.exists and chance.random() < 0.9:
        create(chance, twins, table)
        return
    pool = _ON_KEYS if table.kind.keys else _ON_LOGS
    operation = chance.choices(list(pool), weights=list(pool.values()))[0]
    operation(chance, twins, table)


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
