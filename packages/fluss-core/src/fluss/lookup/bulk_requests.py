"""Sends lookups of many keys: the caller encodes the requests and decodes the answers.

Unlike `lookup.lookup_queue`, which gathers single keys, this takes whole runs of keys, so nothing
is kept per key and the engine thread never looks at one. The caller (`lookup.bulk_lookup`) decides
how many keys go in one request, and how many requests are in flight.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np

from fluss.errors import FlussError, PartitionNotFoundError, error_from_code, unusable_answer
from fluss.lookup.lookup_messages import AskedBucket, LookupRoute, write_keys
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.auto_partition_names import historical_path, is_past, keeps_history
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.leader_requests import find_partition_id
from fluss.net.operation_deadline import operation, within
from fluss.rows.buffers.columns import Int64Array
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer, size_of
from fluss.wire.zero_copy.lookup_values import LOOKUP_RANGES_RESPONSE, PREFIX_LOOKUP_RESPONSE

# A table or partition, a bucket of it, and the bucket count by which keys were placed there.
PartitionBucket: TypeAlias = tuple[PhysicalTablePath, int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """The values of some keys of one bucket.

    Attributes:
        data: The bytes that hold the values.
        counts: How many values each key has: 0 or 1; a prefix has any number.
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
    """A bucket and the server that leads it.

    Attributes:
        path: The table or partition.
        bucket: The bucket.
        server_id: The server.
        bucket_count: How many buckets there are.
        original: The partition of the keys, where `path` is the partition of history.
    """

    path: PhysicalTablePath
    bucket: TableBucket
    server_id: int
    bucket_count: int
    original: str | None = None

    @property
    def asked(self) -> AskedBucket:
        """What requests and answers differ by."""
        return self.bucket, self.original


@dataclass(slots=True)
class Limit:
    """The deadline of some keys on the loop's clock; set when they are first sent."""

    deadline: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRun:
    """Keys of one bucket in one request."""

    leader: BucketLeader
    keys: tuple[bytes, ...]
    start: int = 0  # the number of the first of them


# Partition, bucket, and the original partition of keys in history.
_AnsweredBucket: TypeAlias = tuple[int | None, int, str | None]
_Answered: TypeAlias = tuple[_AnsweredBucket, "Values | FlussError"]


class BulkLookups:
    """Looks up many keys of one table. Coroutines run on the engine's loop, the rest anywhere.

    Args:
        cluster: The connection's route to the servers.
        table: The table.
        is_prefix: Whether the keys are prefixes of keys.
        is_inserting: Whether missing keys are inserted, with nothing but the key.
    """

    def __init__(
        self, cluster: Cluster, table: TableInfo, *, is_prefix: bool, is_inserting: bool = False
    ) -> None:
        self._cluster = cluster
        self._table = table
        self._api = ApiKey.PREFIX_LOOKUP if is_prefix else ApiKey.LOOKUP
        self._is_inserting = is_inserting

    def is_new(self, path: PhysicalTablePath) -> bool:
        """Whether nothing is known of a partition yet."""
        return path.partition_name is not None and self._cluster.view.partition_id(path) is None

    async def find_partitions(self, paths: Sequence[PhysicalTablePath]) -> None:
        """Learn the bucket counts of partitions; those that do not exist are left out."""
        new = [each for each in paths if self.is_new(each)]
        if len(new) > 1:
            with suppress(PartitionNotFoundError):
                await self._cluster.retrying(lambda: self._cluster.refresh(new))
        for path in new:
            with suppress(PartitionNotFoundError):
                await find_partition_id(self._cluster, path)

    def bucket_count(self, path: PhysicalTablePath) -> int | None:
        """How many buckets a partition has, where that is known to differ from its table."""
        return self._cluster.view.bucket_count(path)

    async def leaders(
        self, buckets: Iterable[PartitionBucket]
    ) -> dict[PartitionBucket, BucketLeader | None]:
        """The leaders of these buckets; None where the partition does not exist.

        Raises:
            PartitionNotFoundError: A partition does not exist, and keys were to be inserted.
            FlussError: The cluster names no leader.
        """
        requested = list(buckets)
        found = await asyncio.gather(*(self._leader(*bucket) for bucket in requested))
        return dict(zip(requested, found, strict=True))

    async def _leader(
        self,
        path: PhysicalTablePath,
        bucket_id: int,
        bucket_count: int,
        original: str | None = None,
    ) -> BucketLeader | None:
        try:
            partition_id = await find_partition_id(self._cluster, path)
            bucket = TableBucket.with_partition(self._table.table_id, partition_id, bucket_id)
            leader = await self._cluster.leader(path, bucket)
        except PartitionNotFoundError:
            if self._is_inserting:
                raise
            if original is not None or not self._may_be_history(path):
                return None
            # Java's client places the keys of all expired partitions by the count of the table.
            history = historical_path(path)
            return await self._leader(history, bucket_id, bucket_count, path.partition_name)
        return BucketLeader(
            path=path,
            bucket=bucket,
            server_id=leader.server_id,
            bucket_count=bucket_count,
            original=original,
        )

    def _may_be_history(self, path: PhysicalTablePath) -> bool:
        """Whether the rows of a partition that does not exist may be in the lake."""
        name, is_single = path.partition_name, self._api is ApiKey.LOOKUP
        if name is None or not is_single or not keeps_history(self._table):
            return False
        return is_past(self._table, name, datetime.now(UTC))

    def request(self, runs: Sequence[KeyRun]) -> list[Buffer]:
        """The request for runs of keys, each of another bucket, with the same leader."""
        route = LookupRoute(
            runs[0].leader.server_id, self._table.table_id, self._api, self._is_inserting
        )
        keys = {each.leader.asked: each.keys for each in runs}
        return write_keys(
            route,
            keys,
            counts={each.leader.asked: each.leader.bucket_count for each in runs},
            timeout_ms=self._cluster.settings.request_timeout_ms,
        )

    async def ask(self, server_id: int, request: Sequence[Buffer], limit: Limit) -> memoryview:
        """Send a request once, and return the bytes of the answer."""
        timeout_s = self._cluster.settings.retry_timeout_ms / 1_000
        limit.deadline = asyncio.get_running_loop().time() + timeout_s
        return await self._cluster.send(server_id, self._api, request, deadline=limit.deadline)

    def answers(self, answer: memoryview, runs: Sequence[KeyRun]) -> list[Values | FlussError]:
        """The values of each run of a request, or its error.

        Raises:
            ProtocolError: The bytes are not such an answer.
        """
        read = self._prefix_values if self._is_prefix else self._values
        found = dict(read(answer))
        return [self._checked(each, found) for each in runs]

    async def retry(self, run: KeyRun, limit: Limit, error: FlussError) -> Values:
        """Look up one run alone, with retries: its leader may have moved.

        Args:
            run: The keys.
            limit: Their deadline.
            error: The error of the first request for them.

        Raises:
            FlussError: The server did not answer in time.
        """
        cluster, bucket = self._cluster, run.leader.bucket
        if not error.is_retriable or asyncio.get_running_loop().time() >= limit.deadline:
            raise error

        async def attempt() -> Values:
            leader = await cluster.leader(run.leader.path, bucket)
            answer = await cluster.send(leader.server_id, self._api, self.request([run]))
            (values,) = self.answers(answer, [run])
            if isinstance(values, FlussError):
                cluster.view.forget_leader(bucket)
                raise values
            return values

        cluster.view.forget_leader(bucket)
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
        for bucket in LOOKUP_RANGES_RESPONSE.read(answer).buckets_resp:
            edges = np.array(bucket.ranges, dtype=np.int64).reshape(-1, 2)
            starts, ends = edges[:, 0], edges[:, 1]
            present = starts >= 0
            values = Values(
                data=answer,
                counts=present.astype(np.int64),
                starts=starts[present],
                ends=ends[present],
            )
            asked = (bucket.partition_id, bucket.bucket_id, bucket.original_partition_name)
            yield asked, self._error(bucket) or values

    def _prefix_values(self, answer: memoryview) -> Iterator[_Answered]:
        for bucket in PREFIX_LOOKUP_RESPONSE.read(answer).buckets_resp:
            lists = bucket.value_lists
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
            yield (bucket.partition_id, bucket.bucket_id, None), self._error(bucket) or values

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
        self, run: KeyRun, found: dict[_AnsweredBucket, Values | FlussError]
    ) -> Values | FlussError:
        bucket = run.leader.bucket
        asked = (bucket.partition_id, bucket.bucket_id, run.leader.original)
        values = found.get(asked) or Values.none(0)
        if isinstance(values, FlussError) or len(values.counts) == len(run.keys):
            return values
        why = f"it answers {len(values.counts)} of the {len(run.keys)} keys of {bucket}"
        return unusable_answer(self._api.name, why, bucket=bucket.bucket_id)
