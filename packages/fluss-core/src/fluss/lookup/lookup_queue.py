"""Sends single-key lookups in the batches that `lookup.plan_lookups` decides.

One queue serves all lookupers of a connection. Lookups come in by `Engine.post`, many for one
wake-up of the engine, and are answered through their result sinks, many for one wake-up of the
caller's loop. A lookup whose bucket has a new leader is sent to that leader, until its deadline.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from fluss.errors import ClosedError, FlussError, PartitionNotFoundError
from fluss.lookup import lookup_messages as messages
from fluss.lookup.plan_lookups import LookupPlan, LookupSettings
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.handoff import ResultSink
from fluss.net.leader_requests import find_partition_id
from fluss.net.operation_deadline import Operation, limited
from fluss.net.plan_retry import decide_retry
from fluss.wire.api import ApiKey


@dataclass(slots=True, eq=False, kw_only=True)
class LookupTarget:
    """The bucket that keys are looked up in. One object for all keys of a bucket and lookuper.

    Attributes:
        api: LOOKUP or PREFIX_LOOKUP.
        path: The table, with the partition where there is one.
        table_id: The table's id.
        bucket_id: The bucket.
        bucket_count: How many buckets the table or partition has, by which the keys were placed.
        place: The bucket of a key by another count: called with the path, the key's bucket key and
            the count, and with `original`.
        original: The partition of the keys, where they are looked up in the partition of history.
        history: The bucket of a key in the partition of history; None for a key that is not there.
        bucket: The same with the partition's id, as soon as that is known.
    """

    api: ApiKey
    path: PhysicalTablePath
    table_id: int
    bucket_id: int
    bucket_count: int
    place: Callable[[PhysicalTablePath, bytes, int, str | None], LookupTarget]
    history: Callable[[PhysicalTablePath, bytes], LookupTarget | None]
    original: str | None = None
    bucket: TableBucket | None = None

    def with_count(self, bucket_key: bytes, count: int) -> LookupTarget:
        """The bucket of a key by another count of the same partition."""
        return self.place(self.path, bucket_key, count, self.original)

    def in_history(self, bucket_key: bytes) -> LookupTarget | None:
        """Where a key is looked up whose partition does not exist; None where nowhere."""
        return None if self.original is not None else self.history(self.path, bucket_key)


@dataclass(slots=True, eq=False)
class PendingLookup:
    """One key, or prefix of keys, in one bucket, and the sink of its result.

    The answer is the value's bytes or None, and for a prefix the tuple of all values.
    """

    target: LookupTarget
    key: bytes
    caller: ResultSink[Any]
    bucket_key: bytes
    attempt: int = 0
    deadline: float = 0.0
    is_answered: bool = False

    def answer(self, value: Any) -> None:
        """Give the caller the answer; only the first result counts."""
        if not self.is_answered:
            self.is_answered = True
            self.caller.succeed(value)

    def fail(self, error: BaseException) -> None:
        """Give the caller a copy of the error: a raised error collects tracebacks."""
        if not self.is_answered:
            self.is_answered = True
            self.caller.fail(copy.copy(error))


class LookupQueue:
    """All lookups of one connection. Lives on the engine's loop."""

    def __init__(self, cluster: Cluster, settings: LookupSettings | None = None) -> None:
        settings = settings or LookupSettings()
        self._cluster = cluster
        self._plan: LookupPlan[PendingLookup] = LookupPlan(settings)
        self._retry_policy = replace(cluster.retry_policy, attempts_max=settings.retries_max + 1)
        self._fresh: list[PendingLookup] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def put(self, lookup: PendingLookup) -> None:
        """Take a lookup; it is sent as soon as its route is free. On the engine thread only."""
        if self._closed:
            lookup.fail(ClosedError("The connection has been closed."))
            return
        if not self._fresh:
            # All lookups of one wake-up are sent together.
            asyncio.get_running_loop().call_soon(self._send_fresh)
        self._fresh.append(lookup)

    def close(self) -> None:
        """Fail all lookups that wait or are in flight."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()

    # --- routing ------------------------------------------------------------------------------

    def _send_fresh(self) -> None:
        fresh, self._fresh = self._fresh, []
        now = asyncio.get_running_loop().time()
        deadline = now + self._cluster.settings.retry_timeout_ms / 1_000
        for lookup in fresh:
            lookup.deadline = deadline
        self._send_all(fresh)

    def _send_all(self, lookups: Sequence[PendingLookup]) -> None:
        lost = self._enqueue(lookups)
        if lost:
            self._start(self._find_leaders(lost), lost)

    def _enqueue(self, lookups: Sequence[PendingLookup]) -> list[PendingLookup]:
        """Add lookups to the plan; returns those whose leader is not known."""
        self._place_by_counts(lookups)
        lost: list[PendingLookup] = []
        routes: dict[messages.LookupRoute, None] = {}
        for target, asked in _by_target(lookups).items():
            route = self._route_to(target)
            if route is None:
                lost += asked
            else:
                self._plan.add(route, asked)
                routes[route] = None
        for route in routes:
            self._send_next(route)
        return lost

    def _place_by_counts(self, lookups: Sequence[PendingLookup]) -> None:
        """Place the keys of partitions whose bucket counts have become known, or are others."""
        for lookup in lookups:
            target = lookup.target
            if target.path.partition_name is None:
                continue
            count = self._cluster.view.bucket_count(target.path)
            if count is not None and count != target.bucket_count:
                lookup.target = target.with_count(lookup.bucket_key, count)

    def _route_to(self, target: LookupTarget) -> messages.LookupRoute | None:
        if target.bucket is None or target.bucket.partition_id is not None:
            # A partition that was dropped and created again has another id.
            target.bucket = self._bucket_of(target)
        leader = None if target.bucket is None else self._cluster.view.leader_of(target.bucket)
        if leader is None:
            return None
        return messages.LookupRoute(leader.server_id, target.table_id, target.api)

    def _bucket_of(self, target: LookupTarget) -> TableBucket | None:
        if target.path.partition_name is None:
            return TableBucket(target.table_id, target.bucket_id)
        partition_id = self._cluster.view.partition_id(target.path)
        if partition_id is None:
            return None
        return TableBucket.with_partition(target.table_id, partition_id, target.bucket_id)

    async def _find_leaders(self, lookups: Sequence[PendingLookup]) -> None:
        by_path: dict[PhysicalTablePath, list[PendingLookup]] = defaultdict(list)
        for lookup in lookups:
            by_path[lookup.target.path].append(lookup)
        await asyncio.gather(*(self._find_leader(*each) for each in by_path.items()))

    async def _find_leader(self, path: PhysicalTablePath, lookups: list[PendingLookup]) -> None:
        table_id = lookups[0].target.table_id

        async def find(_: Operation) -> None:
            partition_id = await find_partition_id(self._cluster, path)
            self._place_by_counts(lookups)
            for bucket_id in {each.target.bucket_id for each in lookups}:
                bucket = TableBucket.with_partition(table_id, partition_id, bucket_id)
                await self._cluster.leader(path, bucket)

        try:
            timeout_ms = self._cluster.settings.retry_timeout_ms
            await limited(timeout_ms, find, deadline=min(each.deadline for each in lookups))
        except PartitionNotFoundError:
            self._look_up_in_history(lookups)
        except FlussError as error:
            await self._retry(lookups, error)
        else:
            self._send_all(lookups)

    def _look_up_in_history(self, lookups: Sequence[PendingLookup]) -> None:
        """Send keys of a partition that does not exist to the one that stands for the past."""
        moved: list[PendingLookup] = []
        for lookup in lookups:
            target = lookup.target.in_history(lookup.bucket_key)
            if target is not None:
                lookup.target = target
                moved.append(lookup)
                continue
            # A key of a partition that does not exist is a key that does not exist.
            is_prefix = lookup.target.api is ApiKey.PREFIX_LOOKUP
            lookup.answer(() if is_prefix else None)
        self._send_all(moved)

    # --- sending ------------------------------------------------------------------------------

    def _send_next(self, route: messages.LookupRoute) -> None:
        while batch := self._plan.next_batch(route):
            self._start(self._request_all(route, batch), batch)

    def _start(self, work: Coroutine[Any, Any, None], lookups: Sequence[PendingLookup]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)

        def ended(done: asyncio.Task[None]) -> None:
            self._tasks.discard(done)
            if done.cancelled():
                _fail_all(lookups, ClosedError("The connection has been closed."))
            elif (error := done.exception()) is not None:
                _fail_all(lookups, error)

        task.add_done_callback(ended)

    async def _request_all(
        self, route: messages.LookupRoute, batch: Sequence[PendingLookup]
    ) -> None:
        by_bucket = _by_bucket(batch)
        answers: Mapping[messages.AskedBucket, Sequence[Any] | FlussError]
        try:
            deadline = min(each.deadline for each in batch)
            answers = await self._request(route, by_bucket, deadline=deadline)
        except FlussError as error:
            answers = dict.fromkeys(by_bucket, error)
        finally:
            self._plan.finished(route)
            if not self._closed:
                self._send_next(route)
        refused: list[tuple[list[PendingLookup], FlussError]] = []
        for asked, lookups in by_bucket.items():
            answer = answers.get(asked)
            if isinstance(answer, FlussError):
                refused.append((lookups, answer))
            elif answer is None or len(answer) != len(lookups):
                refused.append((lookups, messages.unanswered(route, asked[0], len(lookups))))
            else:
                for lookup, value in zip(lookups, answer, strict=True):
                    lookup.answer(value)
        await asyncio.gather(*(self._retry(*each) for each in refused))

    async def _request(
        self,
        route: messages.LookupRoute,
        by_bucket: Mapping[messages.AskedBucket, Sequence[PendingLookup]],
        *,
        deadline: float,
    ) -> dict[messages.AskedBucket, Sequence[Any] | FlussError]:
        keys = {bucket: tuple(each.key for each in asked) for bucket, asked in by_bucket.items()}
        request = messages.write_keys(
            route,
            keys,
            counts={bucket: asked[0].target.bucket_count for bucket, asked in by_bucket.items()},
            timeout_ms=self._cluster.settings.request_timeout_ms,
        )
        answer = await self._cluster.send(route.server_id, route.api, request, deadline=deadline)
        return messages.read_values(route, answer)

    async def _retry(self, lookups: list[PendingLookup], error: FlussError) -> None:
        loop = asyncio.get_running_loop()
        attempt = max(each.attempt for each in lookups) + 1
        retry = decide_retry(
            self._retry_policy,
            error,
            attempt=attempt,
            now=loop.time(),
            deadline=max(each.deadline for each in lookups),
            jitter=random.random(),  # noqa: S311 - spreads clients, hides nothing
        )
        if retry is None or self._closed:
            _fail_all(lookups, error)
            return
        # They may have been sent at different times, and some may have reached their deadlines.
        _fail_all([each for each in lookups if each.deadline <= retry.at], error)
        left = [each for each in lookups if each.deadline > retry.at]
        self._cluster.counters.retries += 1
        for lookup in left:
            lookup.attempt = attempt
        if retry.refresh_metadata:
            self._forget_leaders(left)
        await anyio.sleep(max(0.0, retry.at - loop.time()))
        self._send_all(left)

    def _forget_leaders(self, lookups: Sequence[PendingLookup]) -> None:
        for target in _by_target(lookups):
            if target.bucket is not None:
                self._cluster.view.forget_leader(target.bucket)
                self._cluster.view.forget_partition(target.path)


def _fail_all(lookups: Sequence[PendingLookup], error: BaseException) -> None:
    for lookup in lookups:
        lookup.fail(error)


def _by_target(lookups: Iterable[PendingLookup]) -> dict[LookupTarget, list[PendingLookup]]:
    found: dict[LookupTarget, list[PendingLookup]] = defaultdict(list)
    for lookup in lookups:
        found[lookup.target].append(lookup)
    return found


def _by_bucket(lookups: Iterable[PendingLookup]) -> dict[messages.AskedBucket, list[PendingLookup]]:
    """Group lookups by bucket: lookupers have own targets, a request has each bucket once.

    Only the partition of history may be there several times, for several original partitions.
    """
    found: dict[messages.AskedBucket, list[PendingLookup]] = {}
    for target, asked in _by_target(lookups).items():
        if target.bucket is None:
            raise AssertionError("a lookup in flight has a bucket")
        found.setdefault((target.bucket, target.original), []).extend(asked)
    return found
