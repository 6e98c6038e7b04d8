"""Writes the rows of one task to a log, once, however many attempts at it there are.

The rows are cut and encoded on the calling thread, and sent while the next ones are encoded. An
attempt that is not alone sends one batch at a time to a bucket, and checks that the batch is there
as it was sent before the next one goes: a server acknowledges every batch whose number it has.

`exactly_once.plan_ledger` decides which rows are in the log and what a refusal means, and
`exactly_once.plan_claims` who claims what. Here the log is read, and the waiting is done.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Self, TypeVar

import anyio
import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, WriterStateError
from fluss.exactly_once import claims, plan_ledger as plan
from fluss.exactly_once.chunks import chunks
from fluss.exactly_once.content import check_same_rows, crc_of, log_gained, more_claims, more_rows
from fluss.exactly_once.plan_claims import Receipt, Task
from fluss.exactly_once.writer_state import known_sequences
from fluss.log.extents import fetch_extents
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.leader_requests import Places
from fluss.scan.batch_headers import batches_by
from fluss.scan.split import ScanSplit
from fluss.write.frame_checks import rows_to_append
from fluss.write.plan_sender import SEQUENCE_ERRORS
from fluss.write.wire_rows import WireRows
from fluss.write.write_batch import WriteBatch
from fluss.write.write_buffer import all_completed
from fluss.write.write_encoding import Encoded
from fluss.write.writer_pool import writer_pool

T = TypeVar("T")

# A chunk's rows go to one bucket where there is no bucket key, and to all otherwise.
CHUNK_BYTES: Final = 2 * 1024 * 1024
CHUNK_BUCKETS_MAX: Final = 4
LOOK_PAUSE_S: Final = 0.1
CLOSE_WAIT_S: Final = 0.0
# Rows in flight are kept until they are in the log, in case they must be compared; the caller waits
# while there are more.
UNSETTLED_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(slots=True, kw_only=True, eq=False)
class _Item:
    """One batch of the task, until it is known to be in the log.

    Attributes:
        made: The encoded batch, without writer id and number.
        body: Its records; those of `made` are given up when an attempt at it ends.
        bucket: Where it belongs.
        start: How many of the task's rows there come before it.
        rows: Gives its rows, which are needed when they have to be compared.
        weight: About how many bytes they take.
        sent: The request in flight.
        error: How the last attempt ended.
    """

    made: WriteBatch
    body: Any
    bucket: TableBucket
    start: int
    rows: Callable[[], pa.RecordBatch]
    weight: int
    sent: WriteBatch | None = None
    error: FlussError | None = None


class TaskWriter:
    """Writes one task. One thread writes; it blocks while the servers have enough to do.

    Args:
        table: A log table.
        task: Which task; other attempts at it name the same.
        may_differ: Columns whose values may be others in another attempt.
    """

    def __init__(self, table: TableHandle, task: Task, *, may_differ: Collection[str] = ()) -> None:
        self._table = table
        self._task = task
        self._check = partial(check_same_rows, table, may_differ=may_differ)
        self._engine = table.connection.engine
        self._cluster = table.connection.cluster
        pool = writer_pool(table.connection)
        self._target = pool.log_target(table.info, choose=lambda _path: self._turn)
        self._sender = pool.pinned_sender(table.info)
        # Small steps do not all begin at bucket 0; attempts at one task begin at the same.
        self._turn = task.writer_id(task.step)
        self._paths: set[PhysicalTablePath] = set()
        self._places: dict[tuple[PhysicalTablePath, int], TableBucket] = {}
        self._path_of: dict[TableBucket, PhysicalTablePath] = {}
        self._ledgers: dict[TableBucket, plan.BucketLedger] = {}
        self._counts: dict[TableBucket, int] = defaultdict(int)
        self._pending: list[_Item] = []
        self._claims = 0
        self._is_shared = False
        self._epoch: tuple[int, int] | None = None
        self._rows = self._again = 0

    # --- writing --------------------------------------------------------------------------------

    def write(self, batches: Iterable[pa.RecordBatch]) -> Receipt:
        """Write all rows of the task, and wait until the servers have them.

        Raises:
            InvalidValueError: A row does not fit the table. Rows before it may be written.
            WriterStateError: Another attempt has written rows that this one does not have, or rows
                that had been acknowledged are gone.
            FlussError: The rows could not be written; another attempt goes on where this one ended.
        """
        spread = CHUNK_BUCKETS_MAX if self._table.info.bucket_keys else 1
        bytes_max = CHUNK_BYTES * min(spread, self._table.info.num_buckets)
        gained = self._run(claims.gained_columns(self._table, self._task))
        for chunk in chunks(batches, bytes_max=bytes_max, weightless=gained):
            self._write(chunk)
        self._settle_all()
        self._confirm()
        log_gained(self._table, gained, self._again)
        epoch, began_ms = self._epoch or (None, 0)
        return Receipt(
            rows=self._rows,
            part=self._task.part,
            claims=self._claims,
            epoch=epoch,
            began_ms=began_ms,
            ends={
                bucket: ledger.end
                for bucket, ledger in self._ledgers.items()
                if self._counts[bucket]
            },
            again=self._again,
            is_shared=self._is_shared,
        )

    def _write(self, chunk: pa.Table) -> None:
        for checked in rows_to_append(self._table, chunk):
            rows = checked.batch
            if not rows.num_rows:
                continue
            encoded = self._encoded(checked)
            self._turn += 1
            weight = rows.nbytes
            for place, made in enumerate(encoded.batches):
                self._settle_failed()
                self._make_room()
                part = weight * made.row_count // rows.num_rows
                self._add(made, partial(_part, rows, encoded, place), part)
            self._rows += rows.num_rows

    def _encoded(self, rows: WireRows) -> Encoded:
        """Encode rows, and claim the buckets of partitions that are new here."""
        encoded = self._target.encode(rows, None, is_frame=True)
        unclaimed = {each.path for each in encoded.batches} - self._paths
        self._claim(unclaimed)
        # A partition that was not known until now may have another bucket count than the table.
        is_right = all(
            each.bucket_count == self._target.bucket_count(each.path) for each in encoded.batches
        )
        return encoded if is_right else self._target.encode(rows, None, is_frame=True)

    def _make_room(self) -> None:
        """Wait for the first batch while too many bytes are in flight."""
        while sum(each.weight for each in self._pending) > UNSETTLED_BYTES_MAX:
            self._run(_settled(self._pending[:1]))
            self._settle_failed()

    def _add(self, made: WriteBatch, rows: Callable[[], pa.RecordBatch], weight: int) -> None:
        bucket = self._places[made.path, made.bucket_id]
        if self._is_shared and any(each.bucket == bucket for each in self._pending):
            self._settle_all()
        start = self._counts[bucket]
        self._counts[bucket] += made.row_count
        item = _Item(
            made=made, body=made.body, bucket=bucket, start=start, rows=rows, weight=weight
        )
        self._pending.append(item)
        self._go_on_with(item)

    # --- claims ---------------------------------------------------------------------------------

    def _claim(self, paths: set[PhysicalTablePath]) -> None:
        """Claim the buckets of tables and partitions before their first row."""
        if not paths:
            return
        named = sorted(paths, key=str)
        unclaimed = self._run(claims.buckets_of(self._table, named, self._sender.settings))
        self._paths |= paths
        while unclaimed:
            made = self._run(
                claims.claim_buckets(
                    self._table,
                    self._task,
                    self._claims,
                    unclaimed,
                    self._epoch,
                    now_ms=time.time_ns() // 1_000_000,
                )
            )
            self._claims += 1
            # An attempt whose rows broke off has claimed less here; the rest is claimed next.
            claimed = made.claim.buckets
            places = {bucket: path for bucket, path in unclaimed.items() if bucket in claimed}
            unclaimed = {
                bucket: path for bucket, path in unclaimed.items() if bucket not in claimed
            }
            self._begin(places, made)

    def _begin(self, places: Places, made: claims.Claimed) -> None:
        claim = made.claim
        self._epoch = (claim.epoch, claim.began_ms)
        self._path_of |= places
        for bucket, path in places.items():
            self._places[path, bucket.bucket_id] = bucket
            self._ledgers[bucket] = plan.BucketLedger(
                bucket,
                claim.buckets[bucket],
                partial(self._task.writer_id, claim.epoch),
            )
        if made.is_first:
            return
        if not self._is_shared:
            self._run(claims.share(self._table, self._task))
            self._is_shared = True
        self._look(places)

    def _confirm(self) -> None:
        """Check that all rows are there, and no others, if another attempt may have written, too.

        An attempt that began after all rows were acknowledged cannot have written between them.
        """
        if self._claims and not self._is_shared:
            self._is_shared = self._run(claims.is_shared(self._cluster, self._task))
            if not self._is_shared:
                return
        if self._run(claims.is_claimed(self._cluster, self._task, self._claims)):
            raise more_claims(self._table)
        if not self._claims:
            return
        self._look(self._path_of)
        for bucket, ledger in self._ledgers.items():
            more = ledger.surplus(self._counts[bucket])
            if more is not None:
                raise more_rows(self._table, more, bucket)

    # --- outcomes of batches -------------------------------------------------------------

    def _go_on_with(self, item: _Item) -> None:
        """Send a batch, or compare it with the rows in the log; it stays where it has to wait."""
        item.error = None
        if self._is_shared and any(
            each.bucket == item.bucket for each in self._pending[: self._pending.index(item)]
        ):
            return
        match self._ledgers[item.bucket].place(item.start, item.made.row_count):
            case plan.AlreadyWritten() as there:
                self._check(item.made, item.body, item.rows, there, item.bucket)
                self._again += there.row_count
                rest = self._rest(item, there.row_count)
                place = self._pending.index(item)
                self._pending[place : place + 1] = rest
                for generation in rest:
                    self._go_on_with(generation)
            case plan.SendNext(writer_id=writer_id, sequence=sequence):
                item.sent = replace(
                    item.made, body=item.body, writer_id=writer_id, sequence=sequence, waiters=[]
                )
                self._sender.memory.wait()
                self._sender.queue([item.sent], queued=lambda: True)
            case _:
                item.sent = None

    def _rest(self, item: _Item, count: int) -> list[_Item]:
        """The rest of a batch whose first rows are in the log."""
        left = item.made.row_count - count
        if not left:
            return []
        rows = item.rows().slice(count)
        items = []
        for made in self._target.encode_rest(item.made, rows):
            first = rows.num_rows - left
            items.append(
                _Item(
                    made=made,
                    body=made.body,
                    bucket=item.bucket,
                    start=item.start + count + first,
                    rows=partial(rows.slice, first, made.row_count),
                    weight=item.weight * made.row_count // item.made.row_count,
                )
            )
            left -= made.row_count
        return items

    def _reap(self) -> None:
        """Record the batches that were acknowledged or have failed."""
        taken: dict[TableBucket, list[tuple[_Item, plan.LoggedBatch]]] = {}
        for item in self._pending:
            batch = item.sent
            if batch is None or not batch.is_completed:
                continue
            item.sent = None
            item.error = batch.error
            if batch.error is None:
                taken.setdefault(item.bucket, []).append((item, _as_sent(item, batch)))
        if self._is_shared and taken:
            taken = self._standing(taken)
        for bucket, some in taken.items():
            for item, landed in some:
                self._ledgers[bucket].written(item.start, landed)
                self._pending.remove(item)

    def _standing(
        self, taken: Mapping[TableBucket, list[tuple[_Item, plan.LoggedBatch]]]
    ) -> dict[TableBucket, list[tuple[_Item, plan.LoggedBatch]]]:
        """The acknowledged batches that are in the log as they were sent."""
        offsets = {
            bucket: [
                landed.base_offset for _, landed in some if landed.base_offset != plan.NO_OFFSET
            ]
            for bucket, some in taken.items()
        }
        found = self._headers(
            {bucket: (min(some), max(some) + 1) for bucket, some in offsets.items() if some}
        )
        return {
            bucket: [(item, landed) for item, landed in some if landed in found.get(bucket, ())]
            for bucket, some in taken.items()
        }

    def _headers(
        self, ranges: Mapping[TableBucket, tuple[int, int]]
    ) -> dict[TableBucket, list[plan.LoggedBatch]]:
        """The batches of this task that begin in some ranges of offsets."""
        splits = []
        for bucket, (start, stop) in ranges.items():
            name = self._path_of[bucket].partition_name
            splits.append(ScanSplit.of_log(self._table.info, bucket, name, start=start, stop=stop))
        ids = {each for bucket in ranges for each in self._ledgers[bucket].writer_ids}
        found = batches_by(self._table, splits, ids)
        return {bucket: [_landed(each) for each in some] for bucket, some in found.items()}

    def _settle_all(self) -> None:
        while self._pending:
            self._run(_settled(self._pending))
            self._settle_failed()

    def _settle_failed(self) -> None:
        """Find out what happened to refused batches, and send what is missing."""
        self._reap()
        deadline = time.monotonic() + self._sender.settings.delivery_timeout_ms / 1_000
        while stuck := [each for each in self._pending if each.sent is None]:
            for item in stuck:
                if item.error is not None and item.error.error_code not in SEQUENCE_ERRORS:
                    raise self._failed(item, item.error)
            if time.monotonic() > deadline:
                raise self._failed(stuck[0], stuck[0].error or _never_seen())
            buckets = {each.bucket for each in stuck}
            # All requests in flight there end soon, because the first refusal has stopped them.
            theirs = [each for each in self._pending if each.bucket in buckets]
            self._run(_settled(theirs))
            self._reap()
            self._look({bucket: self._path_of[bucket] for bucket in buckets})
            waited = len(self._pending)
            for item in [each for each in theirs if each in self._pending]:
                self._go_on_with(item)
            if any(each.sent is None for each in self._pending):
                self._run(anyio.sleep(LOOK_PAUSE_S))
            if len(self._pending) < waited:
                deadline = time.monotonic() + self._sender.settings.delivery_timeout_ms / 1_000
            self._reap()

    def _look(self, places: Places) -> None:
        """Read which batches of this task the logs hold, and then which numbers leaders know."""
        extents = self._run(fetch_extents(self._cluster, places))
        ledgers = {each: self._ledgers[each] for each in places}
        found = self._headers(
            {
                bucket: (ledger.anchor, max(extents[bucket].end, ledger.anchor))
                for bucket, ledger in ledgers.items()
                if extents[bucket].earliest <= ledger.anchor
            }
        )
        for bucket, ledger in ledgers.items():
            ledger.look_again(
                earliest=extents[bucket].earliest,
                end=extents[bucket].end,
                found=found.get(bucket, ()),
            )
        known = self._run(
            known_sequences(
                self._cluster,
                places,
                {bucket: ledger.writer_id for bucket, ledger in ledgers.items()},
                schema_id=self._table.info.schema_id,
            )
        )
        for bucket, ledger in ledgers.items():
            ledger.ask_again(known[bucket])

    def _failed(self, item: _Item, error: FlussError) -> FlussError:
        table = str(self._table.info.table_path)
        return error.with_context(during=f"{item.made} could not be written", table=table)

    # --- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Send nothing more. Idempotent."""
        self._run(self._sender.close(timeout_s=CLOSE_WAIT_S))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._engine.run(work)


async def _settled(items: Sequence[_Item]) -> None:
    """Wait until the requests in flight of some batches have ended."""
    in_flight = [item.sent for item in items if item.sent and not item.sent.is_completed]
    if in_flight:
        await all_completed(in_flight)


def _part(rows: pa.RecordBatch, encoded: Encoded, place: int) -> pa.RecordBatch:
    if encoded.batch_of_row is None:
        return rows
    return rows.filter(pa.array(encoded.batch_of_row == place))


def _as_sent(item: _Item, batch: WriteBatch) -> plan.LoggedBatch:
    """An acknowledged batch as it must be in the log."""
    return plan.LoggedBatch(
        writer_id=batch.writer_id,
        sequence=batch.sequence,
        base_offset=plan.NO_OFFSET if batch.offset is None else batch.offset,
        row_count=batch.row_count,
        crc=crc_of(item.made, item.body, batch.writer_id, batch.sequence),
        schema_id=item.made.route.schema_id,
    )


def _landed(header: Any) -> plan.LoggedBatch:
    return plan.LoggedBatch(
        writer_id=header.writer_id,
        sequence=header.batch_sequence,
        base_offset=header.base_offset,
        row_count=header.record_count,
        crc=header.crc,
        schema_id=header.schema_id,
    )


def _never_seen() -> WriterStateError:
    return WriterStateError(
        "The leader knows the batch, but it does not become certain: it was written by another "
        "attempt and its replicas do not follow, or it lies before where this task was claimed.",
        hint="If all tablet servers run and this comes again, begin with a new checkpoint.",
    )
