"""Sends lookups in the company that `lookup.plan_lookups` decides, and hands each its own answer.

One queue serves all lookupers of a connection. Questions come in by `Engine.post`, many for one
wake-up of the engine, and are answered through their callers, many for one wake-up of the caller's
loop. A bucket whose leader moved is asked again at its new leader until the deadline.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from fluss.errors import ClosedError, FlussError, PartitionNotFoundError
from fluss.lookup.lookup_messages import (
    Way,
    read_values,
    unanswered,
    write_keys,
)
from fluss.lookup.plan_lookups import LookupPlan, LookupSettings
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.handoff import ResultSink
from fluss.net.operation_deadline import Operation, limited
from fluss.net.partition_ids import find_partition_id
from fluss.net.plan_retry import decide_retry
from fluss.wire.api import ApiKey


@dataclass(slots=True, eq=False, kw_only=True)
class LookupTarget:
    """Where keys are asked for, and how. One object for all keys of a bucket and lookuper.

    Attributes:
        api: LOOKUP or PREFIX_LOOKUP.
        path: The table, with the partition where there is one.
        table_id: The table's id.
        bucket_id: The bucket.
        insert_if_not_exists: Whether a key that is missing is inserted.
        bucket: The same with the partition's id, as soon as that is known.
    """

    api: ApiKey
    path: PhysicalTablePath
    table_id: int
    bucket_id: int
    insert_if_not_exists: bool = False
    bucket: TableBucket | None = None


class PendingLookup:
    """One key, or the beginning of keys, in one bucket; and who wants to know.

    The answer is the value's bytes or None, and for a prefix the tuple of all values.
    """

    __slots__ = ("attempt", "caller", "deadline", "is_answered", "key", "place")

    def __init__(self, place: LookupTarget, key: bytes, caller: ResultSink[Any]) -> None:
        self.place = place
        self.key = key
        self.caller = caller
        self.attempt = 0
        self.deadline = 0.0
        self.is_answered = False

    def answer(self, value: Any) -> None:
        """Hand the answer to whoever asked; only the first counts."""
        if not self.is_answered:
            self.is_answered = True
            self.caller.succeed(value)

    def fail(self, error: BaseException) -> None:
        """Hand an error to whoever asked, one of his own: a raised error collects tracebacks."""
        if not self.is_answered:
            self.is_answered = True
            self.caller.fail(copy.copy(error))


class LookupQueue:
    """All lookups of one connection. Lives on the engine's loop."""

    def __init__(self, cluster: Cluster, settings: LookupSettings | None = None) -> None:
        settings = settings or LookupSettings()
        self._cluster = cluster
        self._plan: LookupPlan[PendingLookup] = LookupPlan(
            keys_per_request_max=settings.keys_per_request_max,
            in_flight_max=settings.in_flight_max,
        )
        self._retry_policy = replace(cluster.retry_policy, attempts_max=settings.retries_max + 1)
        self._fresh: list[PendingLookup] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def put(self, question: PendingLookup) -> None:
        """Take a question in; it leaves as soon as its way is free. On the engine thread only."""
        if self._closed:
            question.fail(ClosedError("The connection has been closed."))
            return
        if not self._fresh:
            # All questions of one wake-up are looked at together.
            asyncio.get_running_loop().call_soon(self._route_fresh)
        self._fresh.append(question)

    def close(self) -> None:
        """Fail what waits and what is under way."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()

    # --- finding the way ----------------------------------------------------------------------

    def _route_fresh(self) -> None:
        fresh, self._fresh = self._fresh, []
        now = asyncio.get_running_loop().time()
        deadline = now + self._cluster.settings.retry_timeout_ms / 1_000
        for question in fresh:
            question.deadline = deadline
        self._route_all(fresh)

    def _route_all(self, questions: Sequence[PendingLookup]) -> None:
        lost = self._route(questions)
        if lost:
            self._start(self._find_leaders(lost), lost)

    def _route(self, questions: Sequence[PendingLookup]) -> list[PendingLookup]:
        """Put questions on their ways; those whose leader is unknown come back."""
        lost: list[PendingLookup] = []
        ways: dict[Way, None] = {}
        for place, asked in _by_place(questions).items():
            way = self._way(place)
            if way is None:
                lost += asked
            else:
                self._plan.add(way, asked)
                ways[way] = None
        for way in ways:
            self._send_next(way)
        return lost

    def _way(self, place: LookupTarget) -> Way | None:
        if place.bucket is None or place.bucket.partition_id is not None:
            # A partition that was dropped and made again has another id.
            place.bucket = self._bucket_of(place)
        leader = None if place.bucket is None else self._cluster.view.leader_of(place.bucket)
        if leader is None:
            return None
        return Way(leader.server_id, place.table_id, place.api, place.insert_if_not_exists)

    def _bucket_of(self, place: LookupTarget) -> TableBucket | None:
        if place.path.partition_name is None:
            return TableBucket(place.table_id, place.bucket_id)
        partition_id = self._cluster.view.partition_id(place.path)
        if partition_id is None:
            return None
        return TableBucket.with_partition(place.table_id, partition_id, place.bucket_id)

    async def _find_leaders(self, questions: Sequence[PendingLookup]) -> None:
        by_path: dict[PhysicalTablePath, list[PendingLookup]] = defaultdict(list)
        for question in questions:
            by_path[question.place.path].append(question)
        await asyncio.gather(*(self._find_leader(*each) for each in by_path.items()))

    async def _find_leader(self, path: PhysicalTablePath, questions: list[PendingLookup]) -> None:
        table_id = questions[0].place.table_id
        bucket_ids = {each.place.bucket_id for each in questions}

        async def find(_: Operation) -> None:
            partition_id = await find_partition_id(self._cluster, path)
            for bucket_id in bucket_ids:
                bucket = TableBucket.with_partition(table_id, partition_id, bucket_id)
                await self._cluster.leader(path, bucket)

        try:
            timeout_ms = self._cluster.settings.retry_timeout_ms
            await limited(timeout_ms, find, deadline=min(each.deadline for each in questions))
        except PartitionNotFoundError:
            # A key of a partition that does not exist is a key that does not exist.
            for question in questions:
                is_prefix = question.place.api is ApiKey.PREFIX_LOOKUP
                question.answer(() if is_prefix else None)
        except FlussError as error:
            await self._ask_again(questions, error)
        else:
            self._route_all(questions)

    # --- asking -------------------------------------------------------------------------------

    def _send_next(self, way: Way) -> None:
        while batch := self._plan.next_batch(way):
            self._start(self._ask(way, batch), batch)

    def _start(self, work: Coroutine[Any, Any, None], questions: Sequence[PendingLookup]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)

        def ended(done: asyncio.Task[None]) -> None:
            self._tasks.discard(done)
            if done.cancelled():
                _fail_all(questions, ClosedError("The connection has been closed."))
            elif (error := done.exception()) is not None:
                _fail_all(questions, error)

        task.add_done_callback(ended)

    async def _ask(self, way: Way, batch: Sequence[PendingLookup]) -> None:
        by_bucket = _by_bucket(batch)
        answers: Mapping[TableBucket, Sequence[Any] | FlussError]
        try:
            deadline = min(each.deadline for each in batch)
            answers = await self._request(way, by_bucket, deadline=deadline)
        except FlussError as error:
            answers = dict.fromkeys(by_bucket, error)
        finally:
            self._plan.finished(way)
            if not self._closed:
                self._send_next(way)
        refused: list[tuple[list[PendingLookup], FlussError]] = []
        for bucket, questions in by_bucket.items():
            answer = answers.get(bucket)
            if isinstance(answer, FlussError):
                refused.append((questions, answer))
            elif answer is None or len(answer) != len(questions):
                refused.append((questions, unanswered(way, bucket, len(questions))))
            else:
                for question, value in zip(questions, answer, strict=True):
                    question.answer(value)
        await asyncio.gather(*(self._ask_again(*each) for each in refused))

    async def _request(
        self, way: Way, by_bucket: Mapping[TableBucket, Sequence[PendingLookup]], *, deadline: float
    ) -> dict[TableBucket, Sequence[Any] | FlussError]:
        keys = {bucket: tuple(each.key for each in asked) for bucket, asked in by_bucket.items()}
        request = write_keys(way, keys, timeout_ms=self._cluster.settings.request_timeout_ms)
        answer = await self._cluster.send(way.server_id, way.api, request, deadline=deadline)
        return read_values(way, answer)

    async def _ask_again(self, questions: list[PendingLookup], error: FlussError) -> None:
        loop = asyncio.get_running_loop()
        attempt = max(each.attempt for each in questions) + 1
        retry = decide_retry(
            self._retry_policy,
            error,
            attempt=attempt,
            now=loop.time(),
            deadline=max(each.deadline for each in questions),
            jitter=random.random(),  # noqa: S311 - spreads clients, hides nothing
        )
        if retry is None or self._closed:
            _fail_all(questions, error)
            return
        # They may have been asked at different times: the time of some may be over.
        _fail_all([each for each in questions if each.deadline <= retry.at], error)
        left = [each for each in questions if each.deadline > retry.at]
        self._cluster.counters.retries += 1
        for question in left:
            question.attempt = attempt
        if retry.refresh_metadata:
            self._forget_leaders(left)
        await anyio.sleep(max(0.0, retry.at - loop.time()))
        self._route_all(left)

    def _forget_leaders(self, questions: Sequence[PendingLookup]) -> None:
        for place in _by_place(questions):
            if place.bucket is not None:
                self._cluster.view.forget_leader(place.bucket)
                self._cluster.view.forget_partition(place.path)


def _fail_all(questions: Sequence[PendingLookup], error: BaseException) -> None:
    for question in questions:
        question.fail(error)


def _by_place(questions: Iterable[PendingLookup]) -> dict[LookupTarget, list[PendingLookup]]:
    found: dict[LookupTarget, list[PendingLookup]] = {}
    for question in questions:
        asked = found.get(question.place)
        if asked is None:
            asked = found[question.place] = []
        asked.append(question)
    return found


def _by_bucket(questions: Iterable[PendingLookup]) -> dict[TableBucket, list[PendingLookup]]:
    """Lookupers have places of their own, and a request has each bucket once."""
    found: dict[TableBucket, list[PendingLookup]] = {}
    for place, asked in _by_place(questions).items():
        if place.bucket is None:
            raise AssertionError("a question that is on its way has a bucket")
        found.setdefault(place.bucket, []).extend(asked)
    return found
