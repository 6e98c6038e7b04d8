"""Fetches what `plan.fetch` decides, and keeps it undecoded until somebody reads.

When an answer comes, only the batches' headers are looked at: to know the next offset, so that the
next request leaves before anything is decoded, and to know the schemas the batches were written
with, so that whoever decodes has them at hand. Records that have moved to the remote store are
fetched from there (`engine.remote_log`) and take the same way.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import anyio

from fluss.engine.cluster import Cluster
from fluss.engine.offsets import latest_offset
from fluss.engine.remote_log import RemoteLogReader
from fluss.engine.schemas import SchemaBook
from fluss.errors import (
    FlussError,
    OffsetOutOfRangeError,
    ProtocolError,
    TableNotFoundError,
    error_from_code,
)
from fluss.model.offsets import LATEST_OFFSET
from fluss.model.paths import TableBucket
from fluss.plan.fetch import Fetch, FetchLimits, FetchPlan, Position, check_not_backwards
from fluss.plan.retry import decide_retry
from fluss.records.log_batch import iter_log_headers
from fluss.records.log_header import Magic1
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.buffers import Buffer
from fluss.wire.envelope.fetch import FETCH_LOG_RESPONSE, FetchedBucket, RemoteLogFetchInfo
from fluss.wire.messages import write_message

log = logging.getLogger("fluss.fetcher")

CLIENT_IS_NO_FOLLOWER = -1
INVALID_COLUMN_PROJECTION_CODE = 34
UNKNOWN_TABLE_OR_BUCKET_CODE = 21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fetched:
    """Batches of one bucket as they were received.

    Attributes:
        position: Where they belong.
        data: The bytes; the last batch may be cut off.
        start: The first offset wanted; the first batch may begin before it.
        stop: The first offset not wanted, where one is known.
        projected: Whether they hold the projected columns only, with stale checksums.
    """

    position: Position
    data: Buffer
    start: int
    stop: int | None
    projected: bool

    @property
    def bucket(self) -> TableBucket:
        """The bucket the batches are of."""
        return self.position.bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTarget:
    """What is fetched of a table: which columns, and which schemas have them all.

    Batches of which no row can fulfil `pruning`, a predicate over the fields of one schema, may be
    left out by servers that can tell.
    """

    table_id: int
    positions: tuple[int, ...] | None  # ascending; None for whole batches
    has_all_columns: Callable[[int], bool]  # whether batches of a schema id have every column
    pruning: messages.PbPredicate | None = None
    pruning_schema_id: int | None = None


class Fetcher:
    """Fetches one scanner's buckets ahead of its reader. Lives on the engine's loop."""

    def __init__(
        self,
        cluster: Cluster,
        book: SchemaBook,
        target: FetchTarget,
        *,
        limits: FetchLimits,
        is_bounded: bool,
        magic_1: Magic1,
        remote: RemoteLogReader,
    ) -> None:
        self.plan = FetchPlan(limits, is_bounded)
        self.magic_1: Magic1 = magic_1
        self._cluster = cluster
        self._book = book
        self._target = target
        self._remote = remote
        self._ready: deque[Fetched] = deque()
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._error: FlussError | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = False

    # --- what the reader does -----------------------------------------------------------------

    def subscribe(self, position: Position) -> None:
        """Read a bucket from a position on."""
        self._drop_unread(position.bucket)
        position.started_at = asyncio.get_running_loop().time()
        self.plan.subscribe(position)
        if position.offset == LATEST_OFFSET:
            # At once, and not at the first read: rows that come in between are wanted.
            position.in_flight = True
            self._start(self._find_latest(position))

    def unsubscribe(self, bucket: TableBucket) -> None:
        """Read a bucket no more; what lies unread of it is thrown away."""
        self._drop_unread(bucket)
        self.plan.unsubscribe(bucket)

    async def take(self, timeout_s: float | None) -> list[Fetched]:
        """All that has been fetched; waits for something, at most `timeout_s`.

        Returns:
            Nothing when the time is over, or when a bounded read has come to its end.

        Raises:
            FlussError: What keeps a bucket from being read, after all before it has been taken.
        """
        self._pump()
        if not self._ready and not self._is_over():
            with anyio.move_on_after(timeout_s):
                while not self._ready and not self._is_over():
                    self._news.clear()
                    await self._news.wait()
        taken = list(self._ready)
        self._ready.clear()
        for fetched in taken:
            self.plan.consumed(fetched.position, len(fetched.data))
        self._taken.set()
        if taken:
            self._pump()
            return taken
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return []

    def close(self) -> None:
        """Fetch no more, and forget what lies unread."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        self._ready.clear()
        self._news.set()
        self._taken.set()

    def _is_over(self) -> bool:
        return self._closed or self._error is not None or self.plan.is_finished

    def _drop_unread(self, bucket: TableBucket) -> None:
        if any(each.bucket == bucket for each in self._ready):
            kept = [each for each in self._ready if each.bucket != bucket]
            self._ready.clear()
            self._ready.extend(kept)

    # --- fetching -----------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send whatever the plan wants sent now."""
        if self._closed or self._error is not None:
            return
        now = asyncio.get_running_loop().time()
        fetches, leaderless = self.plan.next_fetches(
            now=now, leader_of=self._cluster.view.leader_of
        )
        for fetch in fetches:
            self._start(self._fetch(fetch))
        for position in leaderless:
            position.in_flight = True
            self._start(self._find_leader(position))
        self._set_alarm(now)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        end = self.plan.next_pause_end(now=now)
        if end is not None:
            self._alarm = asyncio.get_running_loop().call_at(end, self._pump)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, FlussError):
                self._fail(error)
            else:
                log.error("a fetch ended unexpectedly", exc_info=error)
                self._fail(FlussError(f"A fetch ended unexpectedly: {error!r}."))

    def _fail(self, error: FlussError) -> None:
        if self._error is None:
            self._error = error
        self._news.set()

    async def _find_leader(self, position: Position) -> None:
        try:
            await self._cluster.leader(position.path, position.bucket)
        finally:
            position.in_flight = False
        self._pump()

    async def _find_latest(self, position: Position) -> None:
        async def attempt() -> int:
            leader = await self._cluster.leader(position.path, position.bucket)
            return await latest_offset(self._cluster, leader.server_id, position.bucket)

        try:
            offset = await self._cluster.retrying(attempt)
        finally:
            position.in_flight = False
        if position.offset == LATEST_OFFSET:
            position.offset = offset
        self._pump()

    async def _fetch(self, fetch: Fetch) -> None:
        starts = {each.bucket: each.offset for each in fetch.positions}
        try:
            body = await self._cluster.send(
                fetch.server_id, ApiKey.FETCH_LOG, [self._request(fetch)]
            )
            answer = FETCH_LOG_RESPONSE.read(body)
        except FlussError as error:
            self.plan.ended(fetch)
            for position in fetch.positions:
                self._retry(position, error)
            self._pump()
            return
        self.plan.ended(fetch)
        answered = {
            TableBucket.with_partition(table.table_id, each.partition_id, each.bucket_id): each
            for table in answer.tables_resp
            for each in table.buckets_resp
        }
        for position in fetch.positions:
            found = answered.get(position.bucket)
            if found is None:
                raise _unanswered(position)
            if self.plan.is_current(position) and position.offset == starts[position.bucket]:
                await self._take_in(position, found, projected=self._projects(fetch))
        self._pump()

    def _projects(self, fetch: Fetch) -> bool:
        return fetch.pushes_projection and self._target.positions is not None

    def _request(self, fetch: Fetch) -> bytes:
        request = messages.FetchLogRequest(
            follower_server_id=CLIENT_IS_NO_FOLLOWER,
            max_bytes=fetch.bytes_max,
            max_wait_ms=fetch.wait_ms_max,
            min_bytes=fetch.bytes_min,
        )
        projects = self._projects(fetch)
        table = request.tables_req.add(
            table_id=self._target.table_id, projection_pushdown_enabled=projects
        )
        if projects and self._target.positions is not None:
            table.projected_fields.extend(self._target.positions)
        if self._target.pruning is not None:
            table.filter_predicate.CopyFrom(self._target.pruning)
            table.filter_schema_id = self._target.pruning_schema_id
        for position in fetch.positions:
            table.buckets_req.add(
                partition_id=position.bucket.partition_id,
                bucket_id=position.bucket.bucket_id,
                fetch_offset=position.offset,
                max_fetch_bytes=fetch.bytes_max_for_bucket,
            )
        return write_message(request)

    async def _take_in(self, position: Position, found: FetchedBucket, *, projected: bool) -> None:
        if found.error_code is not None:
            self._refused(position, error_from_code(found.error_code, found.error_message or ""))
            return
        check_not_backwards(position, found.high_watermark)
        if found.high_watermark is not None:
            self.plan.pin(position, found.high_watermark)
        if found.remote_log_fetch_info is not None:
            position.reads_remote = True
            self._start(self._read_remote(position, found.remote_log_fetch_info))
            return
        next_offset = found.filtered_end_offset or position.offset
        if found.records:
            for records in filter(len, found.records):
                end = await self._publish(position, records, projected=projected)
                next_offset = max(next_offset, end)
        elif position.stop is not None and not position.is_finished and position.offset < 0:
            # "Earliest" of an empty bucket: the answer carries no batch to tell the offset by.
            next_offset = position.stop
        self.plan.advance(
            position,
            next_offset=next_offset,
            unread_bytes=0,
            now=asyncio.get_running_loop().time(),
        )
        if position.is_finished:
            self._news.set()

    async def _publish(self, position: Position, records: Buffer, *, projected: bool) -> int:
        """Hand records to the reader; returns the offset behind them."""
        next_offset = position.offset
        schema_ids = set()
        last_schema_id = None
        for _, header in iter_log_headers(records, magic_1=self.magic_1):
            next_offset = header.next_offset
            last_schema_id = header.schema_id
            schema_ids.add(last_schema_id)
        if any(self._book.known(each) is None for each in schema_ids):
            await self._book.learn(schema_ids)
        if not self.plan.is_current(position):
            return next_offset
        self._ready.append(
            Fetched(
                position=position,
                data=records,
                start=max(position.offset, 0),
                stop=position.stop,
                projected=projected,
            )
        )
        self.plan.advance(
            position,
            next_offset=next_offset,
            unread_bytes=len(records),
            now=asyncio.get_running_loop().time(),
        )
        if (
            not position.pushes_projection
            and last_schema_id is not None
            and self._target.has_all_columns(last_schema_id)
        ):
            # The old batches without the column are behind us: the server can project again.
            position.pushes_projection = True
        self._news.set()
        return next_offset

    async def _read_remote(self, position: Position, info: RemoteLogFetchInfo) -> None:
        try:
            async for records in self._remote.read(info, position.offset):
                if not self.plan.is_current(position) or position.is_finished:
                    break
                await self._publish(position, records, projected=False)
                await self._room()
        finally:
            position.reads_remote = False
            self._news.set()
        self._pump()

    async def _room(self) -> None:
        """Wait until the reader has made room; the unread bytes are bounded for files, too."""
        while self.plan.is_full and not self._closed:
            self._taken.clear()
            await self._taken.wait()

    # --- what goes wrong ----------------------------------------------------------------------

    def _refused(self, position: Position, error: FlussError) -> None:
        code = error.error_code
        if code == INVALID_COLUMN_PROJECTION_CODE and position.pushes_projection:
            # A batch here is older than one of the columns, and the server refuses to project it
            # at all. Whole batches are read instead, and the column is NULL in them.
            log.debug("bucket %s is read without projection: %s", position.bucket, error.message)
            position.pushes_projection = False
            return
        if isinstance(error, OffsetOutOfRangeError):
            raise _out_of_range(position, error)
        self._retry(position, error)

    def _retry(self, position: Position, error: FlussError) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        position.attempts += 1
        if position.attempts == 1:
            position.started_at = now
        retry = decide_retry(
            self._cluster.retry_policy,
            error,
            attempt=position.attempts,
            now=now,
            deadline=position.started_at + self._cluster.settings.retry_timeout_ms / 1_000,
            dice=random.random(),  # noqa: S311 - spreads clients, hides nothing
        )
        if retry is None:
            self._fail(error)
            return
        self._cluster.counters.retries += 1
        if retry.refresh_metadata:
            self._cluster.view.forget_leader(position.bucket)
        if error.error_code == UNKNOWN_TABLE_OR_BUCKET_CODE:
            self._start(self._check_exists(position))
        self.plan.pause(position, until=retry.at)

    async def _check_exists(self, position: Position) -> None:
        """A bucket that is unknown is new, or belongs to a table that is gone."""
        path = position.path.table_path
        request = messages.GetTableInfoRequest()
        request.table_path.database_name = path.database_name
        request.table_path.table_name = path.table_name
        answer = await self._cluster.ask_any(
            ApiKey.GET_TABLE_INFO, request, messages.GetTableInfoResponse
        )
        if answer.table_id != self._target.table_id:
            raise TableNotFoundError(
                f"Table '{path}' was dropped and created again while it was read.",
                hint="Get the table anew and subscribe again: its offsets are others now.",
                table=str(path),
            )


def _unanswered(position: Position) -> ProtocolError:
    why = f"it says nothing of bucket {position.bucket.bucket_id}"
    return ProtocolError(
        f"The answer to FETCH_LOG cannot be used: {why}.", what="FETCH_LOG", at=0, why=why
    )


def _out_of_range(position: Position, error: FlussError) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"Offset {position.offset} of bucket {position.bucket.bucket_id} of {position.path} cannot "
        f"be read: {error.message}",
        hint="It lies beyond the end, or the rows there are older than the table keeps "
        "(table.log.ttl). EARLIEST_OFFSET reads from the first row there is.",
        table=str(position.path.table_path),
        bucket=position.bucket.bucket_id,
        offset=position.offset,
    )
