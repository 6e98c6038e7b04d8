"""Collects the rows of one writer until they are sealed, and counts what became of them.

Values of rows are only added to a list; sealing encodes them as batches and queues these. A call
that fills the buffer, waits for a row, or flushes, seals on its own thread; when the linger time
is over, a worker thread does. Sealing is serialised, so the order of the calls is the order in
every bucket. While the memory for writes is used up, sealing waits, and so does every thread that
writes more. The engine never waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic

import anyio.to_thread
import numpy as np
import pyarrow as pa

from fluss.errors import ClosedError, FlussError
from fluss.records.convert.flat_values import FlatRows
from fluss.rows.buffers.columns import BoolArray
from fluss.waiting import InterruptibleLock
from fluss.write.caller_rows import rows_counted
from fluss.write.collected_rows import joined_rows, marks_of, runs_of
from fluss.write.open_rows import Cells, OpenRows, Runs, TakenRows
from fluss.write.plan_accumulator import BatchSizes
from fluss.write.sender import Sender
from fluss.write.wire_rows import WireRows
from fluss.write.write_batch import WriteBatch
from fluss.write.write_encoding import Encoded, Target
from fluss.write.write_result import (
    Chunk,
    FrameResult,
    WriteResultHandle,
    copy_of,
    in_doubt,
)
from fluss.write.write_tally import WriteTally, failed_write

log = logging.getLogger("fluss.writer")

# Sealing so few rows is quick enough for the thread of an event loop.
ROWS_SEALED_HERE_MAX = 500
# Of a frame that is spread over many buckets more is encoded at a time, so that the batch of each
# bucket is worth its header and its checksum; never so much that nothing is in flight meanwhile.
_BATCH_BYTES_LEAST = 128 * 1024
_PARTS_IN_MEMORY = 4


class WriteBuffer:
    """The rows that one writer has taken. Any thread may write; the order is that of the calls.

    Args:
        sender: Delivers batches.
        target: Encodes rows.
        keeper: An object that must live as long as this: an unreferenced connection is closed.
    """

    def __init__(self, sender: Sender, target: Target, *, keeper: object = None) -> None:
        self._sender = sender
        self._keeper = keeper
        self._engine = sender.engine
        self._target = target
        self._sizes = BatchSizes(sender.settings)
        self.flat_rows = FlatRows(target.layout)
        self.open_rows = OpenRows(self, self.flat_rows.run_count)
        self._lock = self.open_rows.lock  # held during an append
        self._sealing = InterruptibleLock()  # held during a sealing; taken before the other
        self._linger_s = sender.settings.linger_ms / 1_000
        self._is_lingering = False
        self._taken: TakenRows | None = None  # are being sealed, or their sealing was interrupted
        self._closed: ClosedError | None = None
        self._frame_ratio = 0.5  # encoded bytes per byte of a frame, learned from the last ones
        self._rows_before = 0  # how many rows were taken before the open chunk
        self._spread = 1  # over how many buckets the rows of a frame go, learned from the last one
        self._open_chunk()
        # Only the engine thread touches these.
        self._incomplete: set[WriteBatch] = set()
        # Whether the rest of a frame is dropped once a batch has failed; single rows never are.
        self.stops_at_failure = False
        self.tally = WriteTally()
        self.progress = self.tally.report()  # of the last flush
        self._failure: FlussError | None = None  # the first, or the first that leaves a doubt
        # What flushes have found. Callers take it under the lock, each on its own thread.
        self._found: FlussError | None = None
        self._is_found_new = False
        self.failures_raised = 0

    @property
    def has_failed(self) -> bool:
        """Whether a batch has failed since the last flush."""
        return self._failure is not None

    @property
    def rows_taken(self) -> int:
        """How many rows were taken."""
        with self._lock:
            return self._rows_before + self.open_rows.count

    def _open_chunk(self) -> None:
        self.open_rows.begin(Chunk(self), self._sizes.target_bytes)
        self._frames: list[WireRows] = []
        self._deletes: list[tuple[int, int]] = []
        self._begun_at = 0.0

    # --- taking rows --------------------------------------------------------------------------

    def add_row(self, cells: Cells, runs: Runs, size: int, deletes: bool) -> WriteResultHandle:  # noqa: FBT001 - keywords cost what a value costs
        """Take one row of flattened values that takes about `size` bytes.

        `write.row_taker` does the same in fewer steps while `takes_values`.
        """
        rows = self.open_rows
        if rows.bytes >= rows.target_bytes:
            self.seal()
        with self._lock:
            rows.clear_stale()
            position = rows.count
            if not position or self._closed is not None:
                self._begin()
            handle = WriteResultHandle.of_row(rows.chunk, position)
            filled = rows.bytes + size
            is_full = filled >= rows.target_bytes
            marks = [(position, position + 1)] if deletes else []
            extending = map(list.extend, (rows.values, *rows.runs), (cells, *runs))
            # Signal handlers run after calls and in loops. There are none until the row is whole.
            self._deletes += marks
            rows.takes_values = not (is_full or self._frames)
            rows.bytes = filled
            rows.count = position + 1
            any(extending)
        if not self._is_lingering:
            self._start_lingering()
        if is_full:
            self.seal_full()
        return handle

    def seal_full(self) -> None:
        """Seal a full buffer; without memory for it, the next row waits.

        This one was taken, so the caller must get no error: it would write the row again.
        """
        with self._sealing:
            if self._sender.memory.is_left:
                self.seal(waits=False)

    def add_alone(self, cells: Cells, runs: Runs, size: int, deletes: bool) -> WriteResultHandle:  # noqa: ARG002, FBT001 - called like `add_row`
        """Take one row that may be too large, and encode it immediately."""
        batch = self.flat_rows.batch(cells, runs)
        marks = np.ones(1, dtype=np.bool_) if deletes else None
        return self._add_now([WireRows(batch=batch)], marks, is_frame=False)[0]

    def add_frame(self, rows: WireRows, *, deletes: bool = False) -> list[WriteResultHandle]:
        """Take at least one row; a small frame is collected until the buffer is sealed."""
        size = rows.batch.nbytes  # walks through all buffers, so it is asked once
        if size < self._sizes.large_frame_bytes:
            return [self._collect(rows, size, [(0, rows.batch.num_rows)] if deletes else [])]
        marks = np.ones(rows.batch.num_rows, dtype=np.bool_) if deletes else None
        return self._add_now(self._parts(rows, size), marks, is_frame=True)

    def add_changes(self, rows: WireRows, deletes: BoolArray) -> list[WriteResultHandle]:
        """Take rows of which some delete their keys; few are collected until all are sealed."""
        size = rows.batch.nbytes
        if size < self._sizes.large_frame_bytes:
            return [self._collect(rows, size, runs_of(deletes))]
        return self._add_now(self._parts(rows, size), deletes, is_frame=True)

    def _collect(
        self, frame: WireRows, size: int, deletes: Sequence[tuple[int, int]]
    ) -> WriteResultHandle:
        rows = self.open_rows
        if rows.bytes >= rows.target_bytes:
            self.seal()
        with self._lock:
            rows.clear_stale()
            position = rows.count
            if not position or self._closed is not None:
                self._begin()
            count = frame.batch.num_rows
            handle = FrameResult(rows.chunk, position, position + count)
            frames, is_gathered = [frame], bool(rows.values)
            if is_gathered:
                frames = [WireRows(batch=self.flat_rows.batch(rows.values, rows.runs)), frame]
            marks = [(position + first, position + stop) for first, stop in deletes]
            # Signal handlers run after calls and in loops. There are none until the frame is taken.
            self._frames += frames
            self._deletes += marks
            rows.is_stale = is_gathered
            rows.takes_values = False
            rows.bytes += size
            rows.count = position + count
            rows.clear_stale()
        if not self._is_lingering:
            self._start_lingering()
        return handle

    def _begin(self) -> None:
        """Begin a chunk with its first row; refuse a row of a closed writer."""
        if self._closed is not None:
            raise copy_of(self._closed)
        self._sender.check_open()
        self._begun_at = monotonic()

    def _add_now(
        self, parts: Iterable[WireRows], deletes: BoolArray | None, *, is_frame: bool
    ) -> list[WriteResultHandle]:
        """Encode and queue rows immediately, after what was collected before."""
        results: list[WriteResultHandle] = []
        first = 0
        with self._sealing:
            if self._closed is not None:
                raise copy_of(self._closed)
            self._seal_open_chunk()
            for part in parts:
                self._sender.check_open()
                self._sender.memory.wait()
                if self.stops_at_failure and self._failure is not None:
                    break  # the flush raises the failure
                row_count = part.batch.num_rows
                marks = None if deletes is None else deletes[first : first + row_count]
                # Errors count the rows of a frame within it, and other rows by the writer.
                with rows_counted(first=first if is_frame else self._rows_before):
                    encoded = self._target.encode(part, marks, is_frame=is_frame)
                first += row_count
                self._learn(part.batch, encoded)
                chunk = Chunk(self)
                self.tally.add(self._rows_before, row_count, chunk)
                self._rows_before += row_count
                self._queue(chunk, encoded)
                results.append(FrameResult(chunk, 0, row_count))
        return results

    def _parts(self, rows: WireRows, size: int) -> Iterator[WireRows]:
        """Cut a frame so that each part makes about one full batch, or many that are not tiny."""
        start, row_count = 0, rows.batch.num_rows
        while start < row_count:
            left = row_count - start
            # Ratio and spread are learned from the part before, which was cut in the same way.
            encoded = size * left / row_count * self._frame_ratio
            part_rows = -(-left // max(1, round(encoded / self._part_bytes())))
            yield rows.slice(start, part_rows)
            start += part_rows

    def _part_bytes(self) -> int:
        settings = self._sender.settings
        spread_bytes = self._spread * min(_BATCH_BYTES_LEAST, settings.batch_bytes_max)
        most = settings.buffer_bytes_max // _PARTS_IN_MEMORY
        return max(settings.batch_bytes_max, min(spread_bytes, most))

    def _learn(self, batch: pa.RecordBatch, encoded: Encoded) -> None:
        size = sum(each.size_bytes for each in encoded.batches)
        ratio = min(max(size / max(batch.nbytes, 1), 0.02), 2.0)
        self._frame_ratio += (ratio - self._frame_ratio) / 2
        self._spread = len({(each.path, each.bucket_id) for each in encoded.batches})

    # --- sealing ------------------------------------------------------------------------------

    def seal(self, *, waits: bool = True) -> None:
        """Encode the collected rows and queue their batches; waits for memory, on this thread.

        Raises:
            LimitExceededError: There was no memory in time. The rows stay in the buffer.
        """
        with self._sealing:
            if not self.open_rows.count and self._taken is None:
                return
            if waits:
                self._sender.memory.wait()
            self._seal_open_chunk()

    def _seal_open_chunk(self) -> None:
        if self._taken is not None:
            self._seal_taken(self._taken)
        self._take_open_rows()
        if self._taken is not None:
            self._seal_taken(self._taken)

    def _take_open_rows(self) -> None:
        rows = self.open_rows
        with self._lock:
            if not rows.count:
                return
            rows.clear_stale()
            taken = TakenRows(
                chunk=rows.chunk,
                first=self._rows_before,
                count=rows.count,
                values=rows.values.copy(),
                runs=[each.copy() for each in rows.runs],
                frames=self._frames,
                deletes=self._deletes,
            )
            self._sizes.observe(rows.bytes)
            following, target_bytes = Chunk(self), self._sizes.target_bytes
            # Signal handlers run after calls and in loops. There are none until the rows are taken.
            self._taken = taken
            self._rows_before += rows.count
            self._frames, self._deletes = [], []
            rows.chunk = following
            rows.target_bytes = target_bytes
            rows.takes_values = False
            rows.is_stale = True
            rows.bytes = rows.count = 0
            rows.clear_stale()

    def _seal_taken(self, taken: TakenRows) -> None:
        """Encode and queue rows; where a signal has interrupted that, do what is left."""
        try:
            if taken.encoded is None:
                self.tally.add(taken.first, taken.count, taken.chunk)
                taken.encoded = self._encoded(taken)
            self._queue(taken.chunk, taken.encoded)
        except FlussError as error:
            # The rows were taken, so their handles and the next flush raise the error.
            self._engine.post(partial(self._fail_chunk, taken.chunk, error))
        except BaseException as error:
            taken.failures += isinstance(error, Exception)
            if taken.failures <= 1:
                # Of a signal handler, very likely. The rows were taken: a worker seals them.
                self._engine.post(self._post_sealing)
                raise
            self._taken = None
            lost = FlussError(f"{taken.count} rows could not be sealed: {error!r}")
            self._engine.post(partial(self._fail_chunk, taken.chunk, lost))
            raise
        self._taken = None

    def _encoded(self, taken: TakenRows) -> Encoded:
        frames = list(taken.frames)
        if taken.values:
            frames.append(WireRows(batch=self.flat_rows.batch(taken.values, taken.runs)))
        marks = marks_of(taken.deletes, taken.count) if taken.deletes else None
        joined = joined_rows(frames, self._target.layout)
        with rows_counted(first=taken.first):
            return self._target.encode(joined, marks, is_frame=False)

    def _queue(self, chunk: Chunk, encoded: Encoded) -> None:
        batches = encoded.batches
        for batch in batches:
            batch.waiters.append(self._completed)
        self._sender.queue(batches, queued=partial(self._queued, chunk, encoded))

    def seal_soon(self, chunk: Chunk) -> None:
        """Seal a chunk that a caller waits for: here, unless that would block an event loop."""
        if chunk is not self.open_rows.chunk:
            return
        if self._in_loop() and not (
            self.open_rows.count <= ROWS_SEALED_HERE_MAX and self._sender.memory.is_left
        ):
            self.post(self._post_sealing)
        else:
            self.seal()

    def seal_if_quick(self) -> None:
        """Seal the collected rows if that is quick here; the flush that follows does the rest."""
        if 0 < self.open_rows.count <= ROWS_SEALED_HERE_MAX and self._sender.memory.is_left:
            with contextlib.suppress(FlussError):  # the flush raises it
                self.seal()

    def post(self, job: Callable[[], None]) -> None:
        """Run a job on the engine thread."""
        self._engine.post(job)

    @staticmethod
    def _in_loop() -> bool:
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            return True
        return False

    # --- the linger time ----------------------------------------------------------------------

    def _start_lingering(self) -> None:
        self._is_lingering = True
        self._engine.post(partial(self._call_later, self._linger_s))

    def _call_later(self, delay_s: float) -> None:
        self._engine.loop.call_later(delay_s, self._linger_ended)

    def _linger_ended(self) -> None:
        with self._lock:
            if not self.open_rows.count:
                self._is_lingering = False
                return
            left = self._begun_at + self._linger_s - monotonic()
        if left > 0:
            self._call_later(left)
            return
        self._post_sealing()
        self._call_later(max(self._linger_s, _WORKER_PAUSE_S))

    def _post_sealing(self) -> None:
        self._engine.loop.create_task(self._seal_in_worker())

    async def _seal_in_worker(self) -> None:
        try:
            await anyio.to_thread.run_sync(self.seal)
        except ClosedError as error:
            self._drop(error)
        except FlussError as error:
            # No memory in time: the rows stay in the buffer until the next tick.
            log.debug("rows wait for write memory: %s", error.message)

    def _drop(self, error: FlussError) -> None:
        """Fail the collected rows: the connection is closed."""
        with self._lock:
            chunk, count, first = self.open_rows.chunk, self.open_rows.count, self._rows_before
            self._rows_before += count
            self._open_chunk()
        taken = self._taken
        if taken is not None and self._sealing.is_free:
            self._taken = None
            self._fail_chunk(taken.chunk, error)
        if count:
            self.tally.add(first, count, chunk)
            self._fail_chunk(chunk, error)

    # --- on the engine thread -----------------------------------------------------------------

    def _queued(self, chunk: Chunk, encoded: Encoded) -> bool:
        """Note the batches of a chunk; False if they are queued already."""
        if chunk.batches is not None:
            return False
        self._incomplete.update(encoded.batches)
        chunk.sealed(encoded.batches, encoded.batch_of_row)
        return True

    def _completed(self, batch: WriteBatch) -> None:
        self._incomplete.discard(batch)
        if batch.error is not None:
            self._note_failure(batch.error)

    def _fail_chunk(self, chunk: Chunk, error: FlussError) -> None:
        if chunk.batches is not None:
            return  # it was queued, and a signal came afterwards
        self._note_failure(error)
        chunk.failed(error)

    def _note_failure(self, error: FlussError) -> None:
        if self._failure is None or (in_doubt(error) and not in_doubt(self._failure)):
            self._failure = error

    async def flush(self) -> None:
        """Wait until everything taken so far is written. Runs on the engine's loop.

        Raises:
            FlussError: Something could not be written since the last flush. It is raised once.
        """
        raised_before = self.failures_raised
        await self.flushed()
        self.raise_failure(raised_before)

    async def flushed(self) -> None:
        """The same, but the failure is kept for `raise_failure`. Runs on the engine's loop."""
        await self.completed()
        failure = self.settle()
        if failure is None:
            return
        found = failed_write(self._target.table, failure, self.progress)
        with self._lock:
            if not (self._is_found_new and self._found is not None and in_doubt(self._found)):
                self._found = found
            self._is_found_new = True

    def raise_failure(self, raised_before: int) -> None:
        """Raise what `flushed` has found; called where the caller gets the result of its flush.

        Flushes that run concurrently wait for the same rows, and all of them raise the failure.
        One whose caller has stopped waiting leaves it to the next.

        Args:
            raised_before: The number of `failures_raised` when the flush was called.
        """
        with self._lock:
            if self._is_found_new:
                self._is_found_new = False
                self.failures_raised += 1
            found = self._found
            if self.failures_raised == raised_before or found is None:
                return
        raise copy_of(found)

    async def completed(self) -> None:
        """Wait until all that was taken is written or has failed. Runs on the engine's loop."""
        if self.open_rows.count or self._taken is not None or not self._sealing.is_free:
            await anyio.to_thread.run_sync(self.seal)
        else:
            await asyncio.sleep(0)  # a worker may have queued batches a moment ago
        pending = [each for each in self._incomplete if not each.is_completed]
        if pending:
            await all_completed(pending)
        with self._lock:
            if not (self.open_rows.count or self._incomplete):
                self._sizes.pause()
                self.open_rows.target_bytes = self._sizes.target_bytes

    def settle(self) -> FlussError | None:
        """Report the rows until now in `progress`, and count from here on; the first failure.

        Runs on the engine's loop, which does nothing else meanwhile.
        """
        self.progress = self.tally.report()
        self.tally.reset()
        failure, self._failure = self._failure, None
        return failure

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to report: all rows are written, and were reported."""
        is_sealed = self._taken is None and self._sealing.is_free
        is_empty = not self.open_rows.count and is_sealed and self.tally.is_empty
        return is_empty and not self._incomplete and self._failure is None

    def number_from(self, first: int) -> None:
        """Count the next row as row `first`; nothing is collected at the moment."""
        with self._lock:
            self._rows_before = first

    async def close(self) -> None:
        """Flush, and take no more rows."""
        reason = ClosedError("The writer has been closed.", hint="Make a new one from the table.")
        with self._lock:
            self._closed = reason
            self.open_rows.takes_values = False
        await self.flush()


_WORKER_PAUSE_S = 0.005


async def all_completed(batches: Sequence[WriteBatch]) -> None:
    """Wait until these batches are completed. Runs on the engine's loop."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(batches)

    def completed(_: WriteBatch) -> None:
        nonlocal left
        left -= 1
        if not left and not done.done():
            done.set_result(None)

    for batch in batches:
        batch.waiters.append(completed)
    await done
