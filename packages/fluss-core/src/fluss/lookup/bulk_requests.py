"""Sends lookups of many keys at once: bytes that the caller encoded, answers that he decodes.

Unlike `lookup.lookup_queue`, which gathers single keys, whole runs of keys come in here, so nothing
is kept per key and the engine thread never looks at one. How many go in one request and how many
requests are under way is the caller's business (`lookup.bulk_lookup`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fluss.errors import FlussError, PartitionNotFoundError, ProtocolError, error_from_code
from fluss.lookup.lookup_messages import Way, write_keys
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.operation_deadline import operation, within
from fluss.net.partition_ids import find_partition_id
from fluss.rows.buffers.columns import Int64Array
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer, size_of
from fluss.wire.zero_copy.lookup_values import (
    LOOKUP_RANGES_RESPONSE,
    PREFIX_LOOKUP_RESPONSE,
)

PartitionBucket: TypeAlias = tuple[PhysicalTablePath, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """What keys of one bucket gave.

    Attributes:
        data: Bytes that the values are in.
        counts: How many values each key has: 0 or 1, of a prefix any number.
        starts: Where each value starts in `data`, in the order of the keys.
        ends: Where it ends.
    """

    data: Buffer
    counts: Int64Array
    starts: Int64Array
    ends: Int64Array

    @classmethod
    def none(cls, key_count: int) -> Values:
        """No value for any of so many keys."""
        nothing = np.zeros(0, dtype=np.int64)
        counts = np.zeros(key_count, dtype=np.int64)
        return cls(data=b"", counts=counts, starts=nothing, ends=nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLeader:
    """Where the keys of a bucket are asked for."""

    path: PhysicalTablePath
    bucket: TableBucket
    server_id: int


@dataclass(slots=True)
class Limit:
    """When the lookup of some keys ends, on the loop's clock; set when they are first sent."""

    deadline: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRun:
    """Keys of one bucket that travel together."""

    home: BucketLeader
    keys: tuple[bytes, ...]


_Answered: TypeAlias = tuple[tuple[int | None, int], "Values | FlussError"]


class BulkLookups:
    """Asks one table for many keys. Coroutines run on the engine's loop, the rest anywhere.

    Args:
        cluster: The connection's way to the servers.
        table: The table.
        is_prefix: Whether keys are beginnings of keys.
        is_inserting: Whether a key that is missing is inserted, with nothing but the key.
    """

    def __init__(
        self, cluster: Cluster, table: TableInfo, *, is_prefix: bool, is_inserting: bool = False
    ) -> None:
        self._cluster = cluster
        self._table = table
        self._api = ApiKey.PREFIX_LOOKUP if is_prefix else ApiKey.LOOKUP
        self._is_inserting = is_inserting

    async def homes(
        self, places: Iterable[PartitionBucket]
    ) -> dict[PartitionBucket, BucketLeader | None]:
        """Where the keys of these places are asked for; None where their partition is missing.

        Raises:
            PartitionNotFoundError: A partition is missing, and keys were to be inserted.
            FlussError: The cluster cannot say.
        """
        wanted = list(places)
        found = await asyncio.gather(*(self._home(*each) for each in wanted))
        return dict(zip(wanted, found, strict=True))

    async def _home(self, path: PhysicalTablePath, bucket_id: int) -> BucketLeader | None:
        try:
            partition_id = await find_partition_id(self._cluster, path)
            bucket = TableBucket.with_partition(self._table.table_id, partition_id, bucket_id)
            leader = await self._cluster.leader(path, bucket)
        except PartitionNotFoundError:
            if self._is_inserting:
                raise
            return None
        return BucketLeader(path=path, bucket=bucket, server_id=leader.server_id)

    def request(self, runs: Sequence[KeyRun]) -> list[Buffer]:
        """The request for runs of keys, each of another bucket, that have the same server."""
        way = Way(runs[0].home.server_id, self._table.table_id, self._api, self._is_inserting)
        keys = {each.home.bucket: each.keys for each in runs}
        return write_keys(way, keys, timeout_ms=self._cluster.settings.request_timeout_ms)

    async def ask(self, server_id: int, request: Sequence[Buffer], limit: Limit) -> memoryview:
        """Send a request, once; the answer is bytes."""
        timeout_s = self._cluster.settings.retry_timeout_ms / 1_000
        limit.deadline = asyncio.get_running_loop().time() + timeout_s
        return await self._cluster.send(server_id, self._api, request, deadline=limit.deadline)

    def answers(self, answer: memoryview, runs: Sequence[KeyRun]) -> list[Values | FlussError]:
        """What an answer says about each run of its request.

        Raises:
            ProtocolError: The bytes are no answer.
        """
        read = self._prefix_values if self._is_prefix else self._values
        found = dict(read(answer))
        return [self._checked(each, found) for each in runs]

    async def ask_again(self, run: KeyRun, limit: Limit, error: FlussError) -> Values:
        """Ask for one run by itself, again while that may help: its leader has moved, perhaps.

        Args:
            run: The keys.
            limit: When their lookup ends.
            error: What the first request for them ended with.

        Raises:
            FlussError: There was no answer in time.
        """
        cluster, home = self._cluster, run.home
        if not error.is_retriable or asyncio.get_running_loop().time() >= limit.deadline:
            raise error

        async def attempt() -> Values:
            leader = await cluster.leader(home.path, home.bucket)
            answer = await cluster.send(leader.server_id, self._api, self.request([run]))
            (values,) = self.answers(answer, [run])
            if isinstance(values, FlussError):
                cluster.view.forget_leader(home.bucket)
                raise values
            return values

        cluster.view.forget_leader(home.bucket)
        cluster.counters.retries += 1
        try:
            with operation(cluster.settings.retry_timeout_ms, deadline=limit.deadline) as call:
                return await within(call, cluster.retrying(attempt))
        except PartitionNotFoundError:
            if self._is_inserting:
                raise
            return Values.none(len(run.keys))

    @property
    def _is_prefix(self) -> bool:
        return self._api is ApiKey.PREFIX_LOOKUP

    def _values(self, answer: memoryview) -> Iterator[_Answered]:
        for each in LOOKUP_RANGES_RESPONSE.read(answer).buckets_resp:
            edges = np.array(each.ranges, dtype=np.int64).reshape(-1, 2)
            starts, ends = edges[:, 0], edges[:, 1]
            present = starts >= 0
            values = Values(
                data=answer,
                counts=present.astype(np.int64),
                starts=starts[present],
                ends=ends[present],
            )
            yield (each.partition_id, each.bucket_id), self._error(each) or values

    def _prefix_values(self, answer: memoryview) -> Iterator[_Answered]:
        for each in PREFIX_LOOKUP_RESPONSE.read(answer).buckets_resp:
            lists = each.value_lists
            sizes = np.fromiter(
                (size_of(value) for values in lists for value in values), dtype=np.int64
            )
            ends = np.cumsum(sizes)
            values = Values(
                data=b"".join(value for values in lists for value in values),
                counts=np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)),
                starts=ends - sizes,
                ends=ends,
            )
            yield (each.partition_id, each.bucket_id), self._error(each) or values

    def _error(self, answer: Any) -> FlussError | None:
        if answer.error_code is None:
            return None
        return error_from_code(
            answer.error_code,
            answer.error_message,
            table=str(self._table.table_path),
            bucket=answer.bucket_id,
        )

    def _checked(
        self, run: KeyRun, found: dict[tuple[int | None, int], Values | FlussError]
    ) -> Values | FlussError:
        bucket = run.home.bucket
        values = found.get((bucket.partition_id, bucket.bucket_id)) or Values.none(0)
        if isinstance(values, FlussError) or len(values.counts) == len(run.keys):
            return values
        why = f"it answers {len(values.counts)} of the {len(run.keys)} keys of {bucket}"
        return ProtocolError(
            f"The answer to {self._api.name} cannot be used: {why}.",
            what=self._api.name,
            at=0,
            why=why,
            bucket=bucket.bucket_id,
        )
