"""Sends the requests that `log.plan_fetch` decides on, and keeps the answers undecoded.

When an answer comes, only the headers of its batches are read: for the next offset, so that the
next request is sent before anything is decoded, and for the schemas of the batches, so that they
are loaded when the reader decodes. Records that have moved to the remote store are read from there
(`log.remote_log`) and take the same way.

A bucket that cannot be read does not stop the others. Its error takes its place in the queue, is
raised when the reader comes to it, and again whenever nothing else can be taken.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import anyio

from fluss.connection.connection import TableHandle
from fluss.errors import ClosedError, FlussError, ServerError
from fluss.log import fetch_messages as messages, plan_fetch_errors as decisions
from fluss.log.log_services import remote_log_reader
from fluss.log.plan_fetch import Fetch, FetchLimits, FetchPlan, Position
from fluss.model.offsets import OffsetSpec
from fluss.model.paths import TableBucket
from fluss.net.leader_requests import find_partition_path
from fluss.net.list_offsets import list_offsets
from fluss.net.schema_cache import SchemaCache
from fluss.net.wait_notices import notices
from fluss.records.arrow.projection import Projection
from fluss.records.log.log_header import Magic1
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer
from fluss.wire.zero_copy.fetch_log import FetchedBucket, RemoteLogFetchInfo

log = logging.getLogger("fluss.fetcher")


class Fetcher:
    """Fetches one scanner's buckets ahead of its reader. Lives on the engine's loop.

    Args:
        table: The first table; more may be added.
        target: What is fetched of it.
        limits: How much is fetched per request, and may be unread, of all tables together.
        is_bounded: Whether each bucket is read up to the end that its leader names first.
    """

    def __init__(
        self,
        table: TableHandle,
        target: messages.FetchTarget,
        *,
        limits: FetchLimits,
        is_bounded: bool,
    ) -> None:
        self.plan = FetchPlan(limits, is_bounded)
        self._magic_1: Magic1 = table.connection.magic_1
        self._cluster = table.connection.cluster
        self._schemas: dict[int, SchemaCache] = {}
        self._targets: dict[int, messages.FetchTarget] = {}
        self.add_table(table, target)
        self._remote = remote_log_reader(table.connection)
        self._loop = asyncio.get_running_loop()
        # Fetched batches; and in its place in the order, each position that has failed.
        self._ready: deque[messages.Fetched | Position] = deque()
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], Position | None] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = False

    # --- for the reader -----------------------------------------------------------------

    def add_table(self, table: TableHandle, target: messages.FetchTarget) -> None:
        """Let buckets of one more table be subscribed; all tables share requests and limits."""
        self._schemas[target.table_id] = table.schemas
        self._targets[target.table_id] = target

    def remove_table(self, table_id: int) -> None:
        """Stop reading a table."""
        for bucket in [each for each in self.plan.positions if each.table_id == table_id]:
            self.unsubscribe(bucket)
        # Requests in flight still find what they were sent for.

    def subscribe(self, position: Position) -> None:
        """Read a bucket from a position on; an earlier position is dropped."""
        self.unsubscribe(position.bucket)
        self.plan.subscribe(position, now=self._loop.time())
        self._begin(position)

    def unsubscribe(self, bucket: TableBucket) -> None:
        """Stop reading a bucket; its unread bytes are dropped."""
        position = self.plan.unsubscribe(bucket)
        if position is None:
            return
        for task in [task for task, its in self._tasks.items() if its is position]:
            task.cancel()
        self._ready = deque(each for each in self._ready if each.bucket != bucket)

    async def take(
        self, timeout_s: float | None, *, fetches_on: bool = True
    ) -> list[messages.Fetched]:
        """Take all that has been fetched; wait for it, at most `timeout_s`.

        Args:
            timeout_s: How long to wait; None for as long as it takes.
            fetches_on: Whether the next requests are sent now, and not when the reader comes back.

        Returns:
            An empty list when the time is over, or at the end of a bounded read.

        Raises:
            ClosedError: The fetcher has been closed.
            FlussError: A bucket cannot be read; raised after all before it has been taken.
        """
        self._pump()
        if self._has_nothing():
            if timeout_s is None:
                await self._wait_for_news()
            else:
                with anyio.move_on_after(timeout_s):
                    await self._wait_for_news()
        if self._closed:
            raise ClosedError("The scanner has been closed.", hint="Create a new one.")
        taken = self._take_ready()
        if taken:
            self._taken.set()
            if fetches_on:
                self._pump()
            return taken
        failed = self._next_failed()
        if failed is not None:
            raise self._reported(failed)
        return []

    def close(self) -> None:
        """Stop fetching, and drop unread bytes."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        self._ready.clear()
        self._news.set()

    async def _wait_for_news(self) -> None:
        while self._has_nothing():
            self._news.clear()
            await self._news.wait()

    def _has_nothing(self) -> bool:
        return not (
            self._ready or self._closed or self.plan.is_finished or self.plan.failed() is not None
        )

    def _take_ready(self) -> list[messages.Fetched]:
        taken = []
        while self._ready and isinstance(fetched := self._ready[0], messages.Fetched):
            self._ready.popleft()
            self.plan.consumed(fetched.position, len(fetched.data))
            taken.append(fetched)
        return taken

    def _next_failed(self) -> Position | None:
        if self._ready and isinstance(position := self._ready[0], Position):
            self._ready.popleft()
            return position
        return self.plan.failed()

    def _reported(self, position: Position) -> FlussError:
        error = position.error
        if error is None:
            raise AssertionError("a position that failed has an error")
        if error.is_retriable:
            decisions.forgive(position)
            self._begin(position)
        # An error that is raised again must not collect the tracebacks of the times before.
        return error.with_context(table=str(position.path.table_path))

    # --- requests -------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send the requests of the plan."""
        if self._closed:
            return
        now = self._loop.time()
        fetches, leaderless = self.plan.next_fetches(
            now=now, leader_of=self._cluster.view.leader_of
        )
        for fetch in fetches:
            self._start(self._fetch(fetch), None)
        for position in leaderless:
            self._start(self._find_leader(position), position)
        self._set_alarm(now)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        end = self.plan.next_pause_end(now=now)
        if end is not None:
            self._alarm = self._loop.call_at(end, self._pump)

    async def _fetch(self, fetch: Fetch) -> None:
        starts = {each.bucket: each.offset for each in fetch.positions}
        deadline = decisions.give_up_at(
            fetch.positions, now=self._loop.time(), patience_s=self._context().patience_s
        )
        request = [messages.write_fetch(fetch, self._targets, self._cluster.view)]
        try:
            body = await self._cluster.send(
                fetch.server_id,
                ApiKey.FETCH_LOG,
                request,
                deadline=deadline,
                idle_ms=fetch.wait_ms_max or 0,
            )
            answer = messages.read_fetch(body)
        except FlussError as error:
            self.plan.ended(fetch)
            for position in fetch.positions:
                self._refused(position, error)
        else:
            self.plan.ended(fetch)
            current = [
                each
                for each in fetch.positions
                if self.plan.is_current(each) and each.offset == starts[each.bucket]
            ]
            self._take_in(fetch, {each: answer.get(each.bucket) for each in current})
        self._pump()

    # --- answers ------------------------------------------------------------------------------

    def _take_in(self, fetch: Fetch, answers: dict[Position, FetchedBucket | None]) -> None:
        served: list[Position] = []
        empty: list[tuple[Position, int]] = []
        for position, found in answers.items():
            if found is None:
                self._fail(position, messages.unanswered(position))
            elif found.error_code is not None:
                self._refused(position, messages.error_of(position, found))
            elif self._take_in_bucket(
                position, found, projected=self._target_of(position).projects(fetch)
            ):
                served.append(position)
            elif found.high_watermark is None:
                self._fail(position, messages.unanswered(position))
            else:
                empty.append((position, found.high_watermark))
        self.plan.served(served)
        if served:
            return  # the answer was full before it came to the others
        for position, high_watermark in empty:
            self._apply(position, decisions.decide_stall(position, high_watermark, self._context()))

    def _take_in_bucket(self, position: Position, found: FetchedBucket, *, projected: bool) -> bool:
        """Take in the part of an answer for one bucket; whether it brought anything."""
        if found.high_watermark is not None:
            self.plan.pin(position, found.high_watermark)
        if position.is_finished:
            self._news.set()
            return True
        if found.remote_log_fetch_info is not None:
            self._start(self._read_remote(position, found.remote_log_fetch_info), position)
            return True
        before = position.offset
        for records in filter(len, found.records):
            headers = messages.read_headers(records, magic_1=self._magic_1)
            if self._unknown_schemas(position, headers):
                # This is rare: the rest of the answer is dropped and fetched again.
                self._start(self._learn(position, headers, records, projected=projected), position)
                return True
            self._publish(position, records, headers, projected=projected)
        if found.filtered_end_offset is not None:
            self._advance(position, found.filtered_end_offset, unread_bytes=0)
        return position.offset > before or position.error is not None

    def _target_of(self, position: Position) -> messages.FetchTarget:
        return self._targets[position.bucket.table_id]

    def _unknown_schemas(self, position: Position, headers: messages.Headers) -> list[int]:
        known = self._schemas[position.bucket.table_id]
        return [each for each in headers.schema_ids if known.get(each) is None]

    async def _learn(
        self, position: Position, headers: messages.Headers, records: Buffer, *, projected: bool
    ) -> None:
        unknown = self._unknown_schemas(position, headers)
        try:
            await self._schemas[position.bucket.table_id].load(unknown)
        except FlussError as error:
            # A call may also time out while it retries after the server has refused.
            if not isinstance(error, ServerError) and not isinstance(error.__cause__, ServerError):
                raise
            known = records[: messages.size_before(records, unknown, magic_1=self._magic_1)]
            headers = messages.read_headers(known, magic_1=self._magic_1)
            self._publish(position, known, headers, projected=projected)
            raise messages.unreadable(position, f"a schema of {unknown} is unknown") from error
        self._publish(position, records, headers, projected=projected)

    def _publish(
        self, position: Position, records: Buffer, headers: messages.Headers, *, projected: bool
    ) -> None:
        """Queue records for the reader; all their schemas are loaded."""
        if headers.next_offset is not None:
            self._ready.append(
                messages.Fetched(
                    position=position,
                    data=records[: headers.size],
                    start=max(position.offset, 0),
                    stop=position.stop,
                    projected=projected,
                    headers=None if headers.placed is None else tuple(headers.placed),
                )
            )
            self._advance(position, headers.next_offset, unread_bytes=headers.size)
            position.batch_bytes = headers.size // headers.batches
            self._cluster.counters.batches_read += headers.batches
            self._cluster.counters.rows_read += headers.rows
        last_schema_id = headers.last_schema_id
        if last_schema_id is not None and self._target_of(position).has_all_columns(last_schema_id):
            # All older batches, without the column, have been read: the server can project again.
            position.pushes_projection = True
        if headers.error is not None:
            self._fail(position, messages.unreadable(position, headers.error.message))

    def _advance(self, position: Position, next_offset: int, *, unread_bytes: int) -> None:
        self.plan.advance(
            position, next_offset=next_offset, unread_bytes=unread_bytes, now=self._loop.time()
        )
        self._news.set()

    async def _read_remote(self, position: Position, info: RemoteLogFetchInfo) -> None:
        try:
            target = self._target_of(position)
            columns = None
            if target.positions is not None:
                columns = partial(self._remote_projection, target)
            records_read = self._remote.read(info, position.offset, position.stop, columns)
            async with aclosing(records_read) as pieces:
                async for records in pieces:
                    headers = messages.read_headers(records.data, magic_1=self._magic_1)
                    await self._learn(position, headers, records.data, projected=records.projected)
                    if position.is_finished or position.error is not None:
                        break
                    await self._room()
        except FlussError as error:
            self._apply(position, decisions.decide_remote_failure(position, error, self._context()))

    async def _remote_projection(
        self, target: messages.FetchTarget, schema_id: int
    ) -> Projection | None:
        """How to read the columns of a remote batch; None where it is read whole."""
        with suppress(ServerError):  # what the schema lacks is reported with its batch
            await self._schemas[target.table_id].load([schema_id])
        return target.projection_of(schema_id)

    async def _room(self) -> None:
        """Wait until the reader has made room; unread bytes are bounded for files, too."""
        while self.plan.is_full:
            self._taken.clear()
            await self._taken.wait()

    # --- errors ------------------------------------------------------------------------------

    def _refused(self, position: Position, error: FlussError) -> None:
        log.debug("bucket %s: %s", position.bucket, error.message)
        context = self._context()
        self._apply(position, decisions.decide_refusal(position, error, context))
        if position.attempts and position.error is None:
            notices.retried(
                f"rows of bucket {position.bucket.bucket_id} of {position.path}",
                error.message,
                since=position.failing_since,
                now=context.now,
                limit_ms=round(context.patience_s * 1_000),
            )

    def _apply(self, position: Position, recovery: decisions.Recovery) -> None:
        if not self.plan.is_current(position):
            return
        match recovery:
            case decisions.Recovery.GIVEN_UP:
                self._ready.append(position)
                self._news.set()
            case decisions.Recovery.LEADER:
                self._cluster.counters.retries += 1
                self._cluster.view.forget_leader(position.bucket)
            case decisions.Recovery.RANGE:
                self._start(self._find_range(position), position)
            case decisions.Recovery.NOTHING:
                pass

    def _fail(self, position: Position, error: FlussError) -> None:
        self._apply(position, decisions.give_up(position, error))

    def _context(self) -> decisions.RetryContext:
        return decisions.RetryContext(
            policy=self._cluster.retry_policy,
            patience_s=self._cluster.settings.retry_timeout_ms / 1_000,
            now=self._loop.time(),
            jitter=random.random(),  # noqa: S311 - spreads clients, hides nothing
        )

    # --- lookups --------------------------------------------------------------------------

    def _begin(self, position: Position) -> None:
        if position.needs_name:
            self._start(self._find_name(position), position)

    async def _find_name(self, position: Position) -> None:
        table, partition_id = position.path.table_path, position.bucket.partition_id
        position.path = await find_partition_path(self._cluster, table, partition_id)

    async def _find_offset(self, position: Position, spec: OffsetSpec) -> int:
        found = await list_offsets(self._cluster, {position.bucket: position.path}, spec)
        return found[position.bucket]

    async def _find_leader(self, position: Position) -> None:
        await self._cluster.leader(position.path, position.bucket)

    async def _find_range(self, position: Position) -> None:
        earliest, latest = await asyncio.gather(
            self._find_offset(position, OffsetSpec.earliest()),
            self._find_offset(position, OffsetSpec.latest()),
        )
        if position.may_skip_trimmed and 0 <= position.offset < earliest:
            self._advance(position, earliest, unread_bytes=0)
        error = decisions.out_of_range(position, earliest=earliest, latest=latest)
        if error is not None:
            raise error
        if position.offset < 0:
            position.offset = earliest

    # --- tasks --------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None], position: Position | None) -> None:
        """Do something that waits; for one position, which is busy meanwhile, or for several."""
        task = self._loop.create_task(work)
        if position is not None:
            position.is_busy = True
        self._tasks[task] = position
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        position = self._tasks.pop(task)
        if position is not None:
            position.is_busy = False
        if task.cancelled() or self._closed:
            return
        error = task.exception()
        if error is not None:
            if not isinstance(error, FlussError):
                log.error("a fetch ended unexpectedly", exc_info=error)
                error = FlussError(f"A fetch ended unexpectedly: {error!r}.")
            for failed in (
                [position] if position is not None else list(self.plan.positions.values())
            ):
                self._fail(failed, error)
        if position is not None:
            self._pump()
