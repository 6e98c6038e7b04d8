"""Sends lookups in the company that `plan.lookups` decides, and hands each its own answer.

One queue serves all lookupers of a connection. Questions come in by `Engine.post`, many for one
wake-up of the engine, and are answered through their callers, many for one wake-up of the caller's
loop. A bucket whose leader moved is asked again at its new leader until the deadline.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import anyio

from fluss.engine.cluster import Cluster
from fluss.engine.crossing import Caller
from fluss.engine.partitions import find_partition_id
from fluss.errors import (
    ClosedError,
    FlussError,
    PartitionNotFoundError,
    ProtocolError,
    error_from_code,
)
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.plan.lookups import LookupPlan, LookupSettings
from fluss.plan.retry import decide_retry
from fluss.wire.api import ApiKey
from fluss.wire.envelope.lookup import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    PREFIX_LOOKUP_REQUEST,
    PREFIX_LOOKUP_RESPONSE,
    LookupBucket,
    LookupRequest,
    PrefixLookupBucket,
    PrefixLookupRequest,
)

ACKS_ALL = -1


@dataclass(slots=True, eq=False, kw_only=True)
class Question:
    """One key, or the beginning of keys, in one bucket; and who wants to know.

    The answer is the value's bytes or None, and for a prefix the tuple of all values.
    """

    api: ApiKey
    path: PhysicalTablePath
    table_id: int
    bucket_id: int
    key: bytes
    caller: Caller[Any]
    insert_if_not_exists: bool = False
    attempt: int = 0
    deadline: float = 0.0
    bucket: TableBucket | None = None
    is_answered: bool = False

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


class _Way(NamedTuple):
    server_id: int
    table_id: int
    api: ApiKey
    insert_if_not_exists: bool


class LookupQueue:
    """All lookups of one connection. Lives on the engine's loop."""

    def __init__(self, cluster: Cluster, settings: LookupSettings | None = None) -> None:
        settings = settings or LookupSettings()
        self._cluster = cluster
        self._plan: LookupPlan[Question] = LookupPlan(
            keys_per_request_max=settings.keys_per_request_max,
            in_flight_max=settings.in_flight_max,
        )
        self._retry_policy = replace(cluster.retry_policy, attempts_max=settings.retries_max + 1)
        self._fresh: list[Question] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def put(self, question: Question) -> None:
        """Take a question in; it leaves as soon as its way is free. On the engine thread only."""
        if self._closed:
            question.fail(ClosedError("The connection has been closed."))
            return
        loop = asyncio.get_running_loop()
        question.deadline = loop.time() + self._cluster.settings.retry_timeout_ms / 1_000
        if not self._fresh:
            # All questions of one wake-up are looked at together.
            loop.call_soon(self._route_fresh)
        self._fresh.append(question)

    def close(self) -> None:
        """Fail what waits and what is under way."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()

    # --- finding the way ----------------------------------------------------------------------

    def _route_fresh(self) -> None:
        fresh, self._fresh = self._fresh, []
        lost = self._route(fresh)
        if lost:
            self._start(self._find_leaders(lost), lost)

    def _route(self, questions: Sequence[Question]) -> list[Question]:
        """Put questions on their ways; those whose leader is unknown come back."""
        lost = []
        ways: dict[_Way, None] = {}
        view = self._cluster.view
        for question in questions:
            bucket = question.bucket or self._bucket_of(question)
            leader = None if bucket is None else view.leader_of(bucket)
            if bucket is None or leader is None:
                lost.append(question)
                continue
            question.bucket = bucket
            way = _Way(
                leader.server_id, question.table_id, question.api, question.insert_if_not_exists
            )
            self._plan.add(way, question)
            ways[way] = None
        for way in ways:
            self._send_next(way)
        return lost

    def _bucket_of(self, question: Question) -> TableBucket | None:
        if question.path.partition_name is None:
            return TableBucket(question.table_id, question.bucket_id)
        partition_id = self._cluster.view.partition_id(question.path)
        if partition_id is None:
            return None
        return TableBucket.with_partition(question.table_id, partition_id, question.bucket_id)

    async def _find_leaders(self, questions: Sequence[Question]) -> None:
        by_path: dict[PhysicalTablePath, list[Question]] = defaultdict(list)
        for question in questions:
            by_path[question.path].append(question)
        await asyncio.gather(*(self._find_leader(*each) for each in by_path.items()))

    async def _find_leader(self, path: PhysicalTablePath, questions: list[Question]) -> None:
        try:
            partition_id = await find_partition_id(self._cluster, path)
            for bucket_id in {each.bucket_id for each in questions}:
                bucket = TableBucket.with_partition(questions[0].table_id, partition_id, bucket_id)
                await self._cluster.leader(path, bucket)
        except PartitionNotFoundError:
            # A key of a partition that does not exist is a key that does not exist.
            for question in questions:
                question.answer(() if question.api is ApiKey.PREFIX_LOOKUP else None)
        except FlussError as error:
            _fail_all(questions, error)
        else:
            self._start_again(questions)

    def _start_again(self, questions: Sequence[Question]) -> None:
        lost = self._route(questions)
        if lost:
            self._start(self._find_leaders(lost), lost)

    # --- asking -------------------------------------------------------------------------------

    def _send_next(self, way: _Way) -> None:
        while batch := self._plan.next_batch(way):
            self._start(self._ask(way, batch), batch)

    def _start(self, work: Any, questions: Sequence[Question]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)

        def ended(done: asyncio.Task[None]) -> None:
            self._tasks.discard(done)
            if done.cancelled():
                _fail_all(questions, ClosedError("The connection has been closed."))
            elif (error := done.exception()) is not None:
                _fail_all(questions, error)

        task.add_done_callback(ended)

    async def _ask(self, way: _Way, batch: Sequence[Question]) -> None:
        by_bucket: dict[TableBucket, list[Question]] = defaultdict(list)
        for question in batch:
            if question.bucket is not None:
                by_bucket[question.bucket].append(question)
        try:
            answers = await self._request(way, by_bucket)
        except FlussError as error:
            answers = dict.fromkeys(by_bucket, error)
        finally:
            self._plan.finished(way)
            if not self._closed:
                self._send_next(way)
        refused: list[tuple[list[Question], FlussError]] = []
        for bucket, questions in by_bucket.items():
            answer = answers.get(bucket) or _unanswered(way, bucket, len(questions))
            if isinstance(answer, FlussError):
                refused.append((questions, answer))
                continue
            if len(answer) != len(questions):
                refused.append((questions, _unanswered(way, bucket, len(questions))))
                continue
            for question, value in zip(questions, answer, strict=True):
                question.answer(value)
        for questions, reason in refused:
            await self._ask_again(questions, reason)

    async def _request(
        self, way: _Way, by_bucket: dict[TableBucket, list[Question]]
    ) -> dict[TableBucket, Any]:
        if way.api is ApiKey.PREFIX_LOOKUP:
            body = PREFIX_LOOKUP_REQUEST.write(
                PrefixLookupRequest(
                    table_id=way.table_id,
                    buckets_req=tuple(
                        PrefixLookupBucket(
                            partition_id=bucket.partition_id,
                            bucket_id=bucket.bucket_id,
                            keys=tuple(each.key for each in questions),
                        )
                        for bucket, questions in by_bucket.items()
                    ),
                )
            )
            answer = await self._cluster.send(way.server_id, way.api, body)
            return {
                _bucket(way, each): _error_of(way, each) or each.value_lists
                for each in PREFIX_LOOKUP_RESPONSE.read(answer).buckets_resp
            }
        inserting = way.insert_if_not_exists
        body = LOOKUP_REQUEST.write(
            LookupRequest(
                table_id=way.table_id,
                buckets_req=tuple(
                    LookupBucket(
                        partition_id=bucket.partition_id,
                        bucket_id=bucket.bucket_id,
                        keys=tuple(each.key for each in questions),
                    )
                    for bucket, questions in by_bucket.items()
                ),
                insert_if_not_exists=True if inserting else None,
                acks=ACKS_ALL if inserting else None,
                timeout_ms=self._cluster.settings.request_timeout_ms if inserting else None,
            )
        )
        answer = await self._cluster.send(way.server_id, way.api, body)
        return {
            _bucket(way, each): _error_of(way, each) or each.values
            for each in LOOKUP_RESPONSE.read(answer).buckets_resp
        }

    async def _ask_again(self, questions: list[Question], error: FlussError) -> None:
        loop = asyncio.get_running_loop()
        attempt = max(each.attempt for each in questions) + 1
        retry = decide_retry(
            self._retry_policy,
            error,
            attempt=attempt,
            now=loop.time(),
            deadline=min(each.deadline for each in questions),
            dice=random.random(),  # noqa: S311 - spreads clients, hides nothing
        )
        if retry is None or self._closed:
            _fail_all(questions, error)
            return
        self._cluster.counters.retries += 1
        for question in questions:
            question.attempt = attempt
        if retry.refresh_metadata:
            self._cluster.view.forget_leaders({each.bucket for each in questions if each.bucket})
        await anyio.sleep(max(0.0, retry.at - loop.time()))
        self._start_again(questions)


def _fail_all(questions: Sequence[Question], error: BaseException) -> None:
    for question in questions:
        question.fail(error)


def _bucket(way: _Way, answer: Any) -> TableBucket:
    return TableBucket.with_partition(way.table_id, answer.partition_id, answer.bucket_id)


def _error_of(way: _Way, answer: Any) -> FlussError | None:
    if answer.error_code is None:
        return None
    return error_from_code(
        answer.error_code, answer.error_message, table_id=way.table_id, bucket=answer.bucket_id
    )


def _unanswered(way: _Way, bucket: TableBucket, keys: int) -> ProtocolError:
    why = f"it does not answer the {keys} keys of bucket {bucket.bucket_id}"
    return ProtocolError(
        f"The answer to {way.api.name} cannot be used: {why}.",
        what=way.api.name,
        at=0,
        why=why,
        bucket=bucket.bucket_id,
    )
