"""Sends the batches of all writers of one connection, as `write.plan_sender` decides.

Batches come in from any thread by `queue`; everything else happens on the engine's loop. Several
requests to one server are in flight concurrently, in the order of the plan. Writer ids, leaders and
missing partitions are requested while other buckets continue. What an error means for a batch is
never decided here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import anyio.to_thread

from fluss.errors import ClosedError, FlussError, RetriableServerError, TableNotFoundError
from fluss.hints import Hint, HintKey
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import Engine
from fluss.net.operation_deadline import Operation, note_waiting, operation, within
from fluss.net.wait_notices import notices
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.write.partition_finder import PathFinder
from fluss.write.plan_sender import ProduceRequest, SendPlan
from fluss.write.write_batch import BatchResult, WriteBatch, WriterSettings
from fluss.write.write_memory import MemoryClaim, WriteMemory
from fluss.write.write_requests import BucketAnswer, read_answers, write_request_body

log = logging.getLogger("fluss.sender")

# The longest pause between two calls of the plan, whatever `wake_at` is.
ALARM_S_MAX = 60.0
# A table whose writes fail again and again gets at most one line in the log in this time.
SILENT_S: Final = 60.0
TABLES_MAX: Final = 1_024
# The versions that know the original partition of rows of history; others would mix them up.
HISTORY_VERSIONS: Final = {ApiKey.PRODUCE_LOG: 1, ApiKey.PUT_KV: 3}


class Sender:
    """Sends what its plan decides; all writers of a connection share one.

    A writer with its own sequences has its own sender and plan (`write.plan_pinned_sender`).
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: WriterSettings,
        *,
        engine: Engine,
        plan: SendPlan | None = None,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.memory = WriteMemory(settings.buffer_bytes_max, wait_ms_max=settings.buffer_wait_ms)
        self._cluster = cluster
        self._plan = plan or SendPlan(settings, policy=cluster.retry_policy)
        self._paths = PathFinder(cluster, settings)
        self._plan.in_history = self._paths.in_history
        self._paths.writes_history = self._plan.writes_history
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking_writer_id = False
        self._pump_is_due = False
        self._alarm: asyncio.TimerHandle | None = None
        self._idle: set[asyncio.Future[None]] = set()
        self._closed: ClosedError | None = None
        self._failures = FailureLog()

    def register(
        self,
        table: TablePath,
        partition_keys: Sequence[str],
        *,
        has_expired: Callable[[str], bool] | None = None,
    ) -> None:
        """Note what is needed for partitions that do not exist.

        Args:
            table: The table.
            partition_keys: Its partition keys, for partitions that have to be created.
            has_expired: Whether the rows of a partition go to that of history; None where the table
                has none.
        """
        self._paths.partition_keys[table] = tuple(partition_keys)
        if has_expired is not None:
            self._paths.has_expired[table] = has_expired

    def check_open(self) -> None:
        """Refuse to write after the sender was closed.

        Raises:
            ClosedError: The sender has been closed.
        """
        if self._closed is not None:
            raise ClosedError(self._closed.message, hint=self._closed.hint)

    def queue(self, batches: Sequence[WriteBatch], *, queued: Callable[[], bool]) -> None:
        """Queue sealed batches; any thread may call this. The order of the calls is kept.

        Args:
            batches: The batches; their memory is taken now and released when they are completed.
            queued: Called on the engine thread before any of them can be completed. False if a
                call that a signal has interrupted has queued them already.
        """
        self.check_open()
        claim = MemoryClaim(sum(each.size_bytes for each in batches))
        try:
            self.memory.claim(claim)
            self.engine.post(partial(self._take, batches, claim, queued))
        except BaseException:
            # A signal handler has raised it, perhaps after the posting: then `_take` claims again.
            self.memory.give_back(claim)
            raise

    # --- life ---------------------------------------------------------------------------------

    async def close(self, *, timeout_s: float) -> int:
        """Deliver the queued batches within a time; returns how many rows were not delivered."""
        if self._closed is not None:
            return 0
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._until_idle()
        reason = ClosedError(
            "The connection has been closed; nothing can be written through it any more.",
            hint="Open a new connection.",
        )
        self._closed = reason
        self.memory.close(reason)
        if self._alarm is not None:
            self._alarm.cancel()
        return await self._abandon(timeout_s)

    async def _until_idle(self) -> None:
        while not self._plan.is_idle:
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.add(idle)
            try:
                await idle
            finally:
                self._idle.discard(idle)

    async def _abandon(self, timeout_s: float) -> int:
        left = list(self._plan.incomplete())
        rows = sum(each.row_count for each in left)
        error = ClosedError(
            f"The connection was closed, and its {timeout_s:g} s for delivering were over.",
            hint="Flush before you close, or give close() more time.",
        )
        self._complete(self._plan.give_up(left, error))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for batch in list(self._plan.incomplete()):
            self._failed(batch, error, sent=batch.is_sent)
        return rows

    # --- deciding and sending -----------------------------------------------------------------

    def _take(
        self, batches: Sequence[WriteBatch], claim: MemoryClaim, queued: Callable[[], bool]
    ) -> None:
        self.memory.keep(claim)
        if not queued():
            self.memory.release(claim.size_bytes)
            return
        now = self._now()
        for batch in batches:
            self._plan.add(batch, now=now)
        if self._closed is not None:
            self._complete(self._plan.give_up(batches, self._closed))
            return
        self._pump_soon()

    def _pump_soon(self) -> None:
        # All batches of one wake-up go into the same requests.
        if not self._pump_is_due:
            self._pump_is_due = True
            self.engine.loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_is_due = False
        if self._closed is not None:
            return
        plan = self._plan.next_requests(self._cluster.view, now=self._now())
        self._complete(plan.results)
        for batches in plan.misplaced:
            self._start(self._place_again(batches))
        for request in plan.requests:
            self._start(self._deliver(request))
        if plan.needs_writer_id and not self._asking_writer_id:
            self._asking_writer_id = True
            self._start(self._ask_writer_id())
        for paths in self._paths.unasked(plan.paths_unknown):
            self._start(self._find(paths))
        self._set_alarm(plan.wake_at)
        if self._plan.is_idle:
            for idle in self._idle:
                if not idle.done():
                    idle.set_result(None)

    def _set_alarm(self, at: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if at is not None:
            at = min(at, self._now() + ALARM_S_MAX)
            self._alarm = self.engine.loop.call_at(at, self._pump_soon)

    async def _deliver(self, request: ProduceRequest) -> None:
        try:
            await self._exchange(request)
        except Exception as bug:
            log.exception("a bug in the client broke a write request")
            error = FlussError(f"A bug in the client broke the write request: {bug!r}")
            self._answer_all(request, error, sent=True)
        self._pump_soon()

    async def _exchange(self, request: ProduceRequest) -> None:
        deadline = self._plan.give_up_at(request, now=self._now())
        with operation(self.settings.delivery_timeout_ms, deadline=deadline) as call:
            await self._send(request, call)

    async def _send(self, request: ProduceRequest, call: Operation) -> None:
        try:
            answer = await within(call, self._depart(request))
        except FlussError as error:
            self._answer_all(request, error, sent=False)
            return
        for batch in request.batches:
            batch.is_sent = True
        try:
            answers = read_answers(request, await within(call, answer))
        except FlussError as error:
            self._answer_all(request, error, sent=True)
            return
        for batch, outcome in answers:
            self._answer(batch, outcome)

    async def _depart(self, request: ProduceRequest) -> asyncio.Future[memoryview]:
        connection = await self._cluster.tablet_server(request.server_id)
        api = ApiKey.PUT_KV if request.route.is_kv else ApiKey.PRODUCE_LOG
        if request.batches[0].original is not None:
            connection.apis.check_version(api, HISTORY_VERSIONS[api])
        note_waiting(f"{connection.address} to answer {api.name}")
        body = write_request_body(request, self.settings)
        return await connection.send(api, body, timeout_ms=self.settings.request_timeout_ms)

    def _answer_all(self, request: ProduceRequest, error: FlussError, *, sent: bool) -> None:
        for batch in request.batches:
            if not batch.is_completed:
                self._failed(batch, error, sent=sent)

    def _answer(self, batch: WriteBatch, answer: BucketAnswer) -> None:
        now = self._now()
        if answer.pressure:
            self._plan.note_pressure(batch, answer.pressure, now=now)
        if answer.error is not None:
            self._failed(batch, answer.error, sent=True)
        else:
            self._complete([self._plan.written(batch, offset=answer.offset, now=now)])

    def _failed(self, batch: WriteBatch, error: FlussError, *, sent: bool) -> None:
        view = self._cluster.view
        if error.refresh_metadata:
            view.forget_leader(batch.bucket)
        decide = self._plan.failed if sent else self._plan.unsent
        results = decide(batch, error, now=self._now(), jitter=random.random())  # noqa: S311 - spreads clients, hides nothing
        if not results:
            self._cluster.counters.retries += 1
            log.debug("%s will be sent again: %s", batch, error.message)
            notices.retried(
                f"a server to take {batch}",
                error.message,
                since=batch.queued_at,
                now=self._now(),
                limit_ms=self.settings.delivery_timeout_ms,
            )
        self._complete(results)

    # --- misplaced batches ----------------------------------------------------------------------

    async def _place_again(self, batches: Sequence[WriteBatch]) -> None:
        """Encode the batches of a partition again, now that its bucket count is known."""
        path = batches[0].path
        count = self._cluster.view.bucket_count(path) or 0
        log.debug("%d batches of %s are placed again in %d buckets", len(batches), path, count)
        placed = await anyio.to_thread.run_sync(_placed_again, batches, count)
        parts: list[tuple[WriteBatch, list[WriteBatch]]] = []
        failed: list[BatchResult] = []
        for whole, made in placed:
            if not self._plan.is_replacing(whole):
                continue
            if isinstance(made, FlussError):
                failed.append(BatchResult(batch=whole, error=made))
                continue
            self._join(whole, made)
            parts.append((whole, made))
        self._plan.placed_again(path, parts, now=self._now())
        self._complete(failed)
        self._pump_soon()

    def _join(self, whole: WriteBatch, parts: Sequence[WriteBatch]) -> None:
        """Complete a batch when all batches that replace it are completed."""
        self.memory.take(sum(each.size_bytes for each in parts))
        left = len(parts)

        def completed(_: WriteBatch) -> None:
            nonlocal left
            left -= 1
            if not left:
                error = next((each.error for each in parts if each.error is not None), None)
                offset = parts[0].offset if len(parts) == 1 else None
                self._settle(BatchResult(batch=whole, offset=offset, error=error))

        for part in parts:
            part.waiters.append(completed)

    def _complete(self, results: Iterable[BatchResult]) -> None:
        counters = self._cluster.counters
        for result in results:
            batch = result.batch
            if result.error is None:
                counters.batches_written += 1
                counters.rows_written += batch.row_count
            else:
                table, message = batch.path.table_path, result.error.message
                self._failures.failed(table, message, now=self._now())
            self._settle(result)

    def _settle(self, result: BatchResult) -> None:
        batch = result.batch
        batch.offset, batch.error = result.offset, result.error
        batch.is_completed = True
        batch.body = batch.place_again = None
        self.memory.release(batch.size_bytes)
        waiters, batch.waiters = batch.waiters, []
        for waiter in waiters:
            waiter(batch)

    # --- writer ids, leaders and partitions ---------------------------------------------------

    async def _ask_writer_id(self) -> None:
        try:
            writer_id = await self._cluster.retrying(self._writer_id)
            self._plan.take_writer_id(writer_id)
            log.debug("the writer id is %d", writer_id)
        except FlussError as error:
            self._complete(self._plan.give_up(list(self._plan.incomplete()), error))
        finally:
            self._asking_writer_id = False
            self._pump_soon()

    async def _writer_id(self) -> int:
        servers = self._cluster.view.tablet_servers
        if not servers:
            await self._cluster.refresh()
            servers = self._cluster.view.tablet_servers
        if not servers:
            raise RetriableServerError("The cluster names no tablet server at the moment.")
        request = messages.InitWriterRequest()
        for table in {each.path.table_path for each in self._plan.incomplete()}:
            request.table_path.add(database_name=table.database_name, table_name=table.table_name)
        answer = await self._cluster.ask_any_tablet_server(request, messages.InitWriterResponse)
        return int(answer.writer_id)

    async def _find(self, paths: Sequence[PhysicalTablePath]) -> None:
        try:
            async for path, error in self._paths.find(paths):
                self._complete(self._plan.give_up(self._plan.waiting_for(path), error))
            for path in paths:
                self._give_up_predecessors(path.table_path)
        finally:
            self._pump_soon()

    def _give_up_predecessors(self, table: TablePath) -> None:
        """Fail the batches for a table that was dropped and created again under its name."""
        table_id = self._cluster.view.table_id(table)
        old = [each for each in self._plan.waiting_for(table) if each.route.table_id != table_id]
        if table_id is not None and old:
            error = TableNotFoundError(
                f"The table {table} with the id {old[0].route.table_id} does not exist any more; "
                f"the one of that name now has the id {table_id}.",
                hint=Hint(HintKey.GET_TABLE_AGAIN, table=str(table)),
                table=str(table),
            )
            self._complete(self._plan.give_up(old, error))

    # --- tasks --------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.engine.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a bug in the client broke a task of the sender", exc_info=error)

    def _now(self) -> float:
        return self.engine.loop.time()


def _placed_again(
    batches: Sequence[WriteBatch], bucket_count: int
) -> list[tuple[WriteBatch, list[WriteBatch] | FlussError]]:
    return [(batch, _parts(batch, bucket_count)) for batch in batches]


def _parts(batch: WriteBatch, bucket_count: int) -> list[WriteBatch] | FlussError:
    if batch.place_again is None:
        # Rows without a key may lie in any bucket.
        bucket_id = batch.bucket_id % bucket_count
        return [
            replace(
                batch,
                bucket_id=bucket_id,
                bucket_count=bucket_count,
                waiters=[],
                attempts=0,
                is_sent=False,
                partition_id=None,
            )
        ]
    try:
        return batch.place_again()
    except FlussError as error:
        return error
    except Exception as bug:
        log.exception("a bug in the client broke the encoding of a batch")
        return FlussError(f"A bug in the client broke the encoding of {batch}: {bug!r}")


class FailureLog:
    """Logs failed writes to tables, one line for many of them. For one thread.

    A server that dies while a writer uses it fails hundreds of batches within a second. The caller
    gets one error for all of them; the log gets the first, and a count of the others.
    """

    def __init__(self) -> None:
        self._silent_until: dict[TablePath, float] = {}
        self._unlogged: dict[TablePath, int] = {}

    def failed(self, table: TablePath, message: str, *, now: float) -> None:
        """Log or count a batch that could not be written."""
        if now < self._silent_until.get(table, now):
            self._unlogged[table] = self._unlogged.get(table, 0) + 1
            return
        if len(self._silent_until) >= TABLES_MAX:
            self._silent_until.clear()
            self._unlogged.clear()
        self._silent_until[table] = now + SILENT_S
        more = self._unlogged.pop(table, 0)
        before = f" ({more} more batches failed since the last such line.)" if more else ""
        log.warning("%s%s", message, before)
