"""Examines a cluster: which servers answer and how soon, their clocks, buckets without leaders.

Nothing is written. Each server has a few seconds to answer, and one that does not is a finding, not
an error; so is a table whose facts cannot be read. What follows from the findings is in
`ClusterReport.advice`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, TypeVar

import anyio

from fluss.admin.admin import AdminCore
from fluss.admin.bucket_replicas import BucketReplicas, bucket_replicas
from fluss.admin.plan_clock_skew import SkewSearch
from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, TableNotFoundError
from fluss.model.offsets import OffsetSpec
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.servers import ServerNode, ServerType
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.list_offsets import list_offsets
from fluss.wire import messages
from fluss.wire.api import ApiKey

ANSWER_S_MAX: Final = 5.0
PINGS: Final = 5
TABLES_MAX: Final = 1_000
SKEW_MS_MAX: Final = 1_000
SLOW_MS: Final = 100.0
NAMES_SHOWN_MAX: Final = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHealth:
    """What was found of one server.

    Attributes:
        node: The server, as the cluster advertises it.
        error: Why it does not answer; None if it does.
        latency_ms: The median time of an answer.
        release: The line of releases whose APIs it has: `0.9`, or `1.0` for all later ones.
        clock_skew_ms: How far its clock is ahead of ours; None where that could not be found.
        leads: How many of the examined buckets it leads.
    """

    node: ServerNode
    error: str | None = None
    latency_ms: float | None = None
    release: str | None = None
    clock_skew_ms: int | None = None
    leads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """What was found of a cluster.

    Attributes:
        servers: Its servers, the coordinator first.
        databases: How many databases it has.
        tables: How many tables were examined.
        tables_left_out: How many were not, beyond the limit.
        buckets: How many buckets these have.
        leaderless: The buckets without a leader, as `database.table, partition day=1, bucket 0`.
        under_replicated: The buckets with a replica that is on a missing server, or behind.
        unreadable: The tables whose facts could not be read, with the reason.
    """

    servers: tuple[ServerHealth, ...]
    databases: int
    tables: int
    tables_left_out: int
    buckets: int
    leaderless: tuple[str, ...]
    under_replicated: tuple[str, ...]
    unreadable: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.advice

    @property
    def advice(self) -> tuple[str, ...]:
        """What is wrong, and what to do; empty if nothing is."""
        return (*self._about_servers(), *self._about_clocks(), *self._about_buckets())

    def _about_servers(self) -> list[str]:
        roles = {each.node.server_type for each in self.servers}
        found = [
            f"The cluster names no {name}: start one, or wait until it has registered."
            for role, name in (
                (ServerType.COORDINATOR, "coordinator server"),
                (ServerType.TABLET_SERVER, "tablet server"),
            )
            if role not in roles
        ]
        for server in self.servers:
            where = f"{server.node.uid} at {server.node.address}"
            if server.error is not None:
                found.append(
                    f"{where} does not answer: {server.error} Check that it runs and that this "
                    "address is reachable from here; 'address.map' names another."
                )
            elif server.latency_ms is not None and server.latency_ms > SLOW_MS:
                found.append(
                    f"{where} takes {server.latency_ms:,.0f} ms to answer: it is far away or busy."
                )
        return found

    def _about_clocks(self) -> list[str]:
        return [
            f"The clock of {each.node.uid} is {abs(each.clock_skew_ms) / 1_000:,.1f} s "
            f"{'ahead of' if each.clock_skew_ms > 0 else 'behind'} the one here: synchronise both; "
            "times such as `--start -10m` are off by as much."
            for each in self.servers
            if each.clock_skew_ms is not None and abs(each.clock_skew_ms) > SKEW_MS_MAX
        ]

    def _about_buckets(self) -> list[str]:
        found = []
        if self.leaderless:
            found.append(
                f"{len(self.leaderless)} buckets have no leader ({_some(self.leaderless)}): they "
                "cannot be read or written until one of their replicas is back."
            )
        if self.under_replicated:
            found.append(
                f"{len(self.under_replicated)} buckets lack replicas "
                f"({_some(self.under_replicated)}): bring the missing tablet servers back."
            )
        if self.unreadable:
            found.append(f"Tables could not be examined: {_some(self.unreadable)}.")
        return found


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN_MAX
    shown = "; ".join(names[:NAMES_SHOWN_MAX])
    return f"{shown}; and {more} more" if more > 0 else shown


async def cluster_report(admin: AdminCore, cluster: Cluster) -> ClusterReport:
    """Examine a cluster.

    Raises:
        FlussError: No server lists the servers and databases.
    """
    nodes = await admin.get_server_nodes()
    databases = await admin.list_databases()
    tablets = {each.id for each in nodes if each.server_type is ServerType.TABLET_SERVER}
    found = _Buckets(live=frozenset(tablets))
    await found.examine(admin, cluster, databases)
    servers = await asyncio.gather(*(_server(cluster, each, found) for each in nodes))
    return ClusterReport(
        servers=tuple(servers),
        databases=len(databases),
        tables=found.tables,
        tables_left_out=found.left_out,
        buckets=found.buckets,
        leaderless=tuple(found.leaderless),
        under_replicated=tuple(found.under_replicated),
        unreadable=tuple(found.unreadable),
    )


# --- buckets --------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Buckets:
    """The buckets of all tables.

    Attributes:
        led: A bucket that each tablet server leads, to ask it about its clock.
        leads: How many buckets each tablet server leads.
    """

    live: frozenset[int]
    tables: int = 0
    left_out: int = 0
    buckets: int = 0
    leaderless: list[str] = field(default_factory=list)
    under_replicated: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    led: dict[int, tuple[PhysicalTablePath, TableBucket]] = field(default_factory=dict)
    leads: dict[int, int] = field(default_factory=dict)

    async def examine(self, admin: AdminCore, cluster: Cluster, databases: Sequence[str]) -> None:
        """Examine the tables of these databases."""
        paths = [
            TablePath(database, table)
            for database in databases
            for table in sorted(await admin.list_tables(database))
        ]
        self.left_out = max(0, len(paths) - TABLES_MAX)
        for path in paths[:TABLES_MAX]:
            try:
                await self._examine_table(admin, cluster, path)
            except TableNotFoundError:
                continue  # dropped since it was listed
            except FlussError as error:
                self.unreadable.append(f"{path} ({error.sentence.rstrip('.')})")

    async def _examine_table(self, admin: AdminCore, cluster: Cluster, path: TablePath) -> None:
        info = await admin.get_table_info(path)
        ids: dict[str | None, int | None] = {None: None}
        names = None
        if info.is_partitioned():
            partitions = await admin.list_partition_infos(path)
            ids = {each.partition_name: each.partition_id for each in partitions}
            names = [each.partition_name for each in partitions]
        self.tables += 1
        for bucket in await bucket_replicas(cluster, path, names):
            self._note(info, bucket, ids.get(bucket.partition_name))

    def _note(self, info: TableInfo, bucket: BucketReplicas, partition_id: int | None) -> None:
        self.buckets += 1
        partition = "" if bucket.partition_name is None else f", partition {bucket.partition_name}"
        name = f"{info.table_path}{partition}, bucket {bucket.bucket_id}"
        if bucket.leader is None:
            self.leaderless.append(name)
        elif bucket.leader in self.live:
            self.leads[bucket.leader] = self.leads.get(bucket.leader, 0) + 1
            place = PhysicalTablePath(info.table_path, bucket.partition_name)
            found = TableBucket.with_partition(info.table_id, partition_id, bucket.bucket_id)
            self.led.setdefault(bucket.leader, (place, found))
        in_sync = bucket.replicas if bucket.in_sync is None else bucket.in_sync
        if not set(bucket.replicas) <= self.live & set(in_sync):
            self.under_replicated.append(name)


# --- servers --------------------------------------------------------------------------------------


async def _server(cluster: Cluster, node: ServerNode, buckets: _Buckets) -> ServerHealth:
    is_tablet = node.server_type is ServerType.TABLET_SERVER
    try:
        with anyio.fail_after(ANSWER_S_MAX):
            latency_ms, release = await _pinged(cluster, node, is_tablet=is_tablet)
            led = buckets.led.get(node.id) if is_tablet else None
            skew_ms = None if led is None else await _skew_ms(cluster, *led)
    except TimeoutError:
        return ServerHealth(node=node, error=f"there was no answer within {ANSWER_S_MAX:g} s.")
    except FlussError as error:
        return ServerHealth(node=node, error=error.message)
    return ServerHealth(
        node=node,
        latency_ms=latency_ms,
        release=release,
        clock_skew_ms=skew_ms,
        leads=buckets.leads.get(node.id, 0) if is_tablet else 0,
    )


async def _pinged(
    cluster: Cluster, node: ServerNode, *, is_tablet: bool
) -> tuple[float, str | None]:
    """Return the median time of an answer, and the line of releases of the server."""
    request, answer = messages.ListDatabasesRequest(), messages.ListDatabasesResponse

    async def ask() -> object:
        if is_tablet:
            return await cluster.ask_server(node.id, request, answer)
        return await cluster.ask_coordinator(request, answer)

    await ask()  # opens the connection
    times = [await _timed_ms(ask) for _ in range(PINGS)]
    if not is_tablet:
        return median(times), None
    apis = (await cluster.tablet_server(node.id)).apis
    newest = max((key for key in ApiKey if apis.offers(key)), default=None)
    return median(times), None if newest is None else newest.since


async def _timed_ms(ask: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await ask()
    return (time.perf_counter() - began) * 1_000


async def _skew_ms(cluster: Cluster, place: PhysicalTablePath, bucket: TableBucket) -> int | None:
    """Find the skew of the clock of a bucket's leader; None where the server does not show it."""
    search = SkewSearch()
    while not search.is_done:
        moment = time.time_ns() // 1_000_000 + search.guess_ms
        try:
            await list_offsets(cluster, {bucket: place}, OffsetSpec.timestamp(moment))
        except FlussError as error:
            if error.error_code != ErrorCode.INVALID_TIMESTAMP_EXCEPTION:
                return None
            search.note(is_future=True)
        else:
            search.note(is_future=False)
    return search.skew_ms
