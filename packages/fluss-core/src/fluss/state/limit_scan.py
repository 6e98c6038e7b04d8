"""LIMIT_SCAN: a few rows of one bucket, without reading its log.

A log bucket gives its last rows, a bucket of a primary-key table its first ones by key. Servers
support neither filters nor projections here, so both are applied to their answers; where a filter
leaves too few rows, more are requested until there are enough or no more. The coroutine runs on the
engine's loop and decodes answers on a worker thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
import pyarrow as pa

from fluss.connection.arguments import check_bucket_id
from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, InvalidValueError
from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.fetch_messages import Fetched, read_headers
from fluss.log.plan_fetch import Position
from fluss.lookup.stored_rows import ValueDecoder
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.predicates.predicate import Predicate
from fluss.net.leader_requests import find_partition_path
from fluss.records.kv.value_batch import read_value_batch, schema_ids_of
from fluss.state.kv_scan import limit_scan
from fluss.wire.byte_buffers import Buffer

LIMIT_MAX = 2**31 - 1
MORE_ROWS = 8  # times as many are requested where a filter left too few
NO_OFFSET = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    records: Buffer
    is_log: bool


class LimitScanCore:
    """Reads a few rows of one bucket, once.

    Args:
        table: The table.
        bucket: The bucket.
        limit: How many rows, at most.
        columns: The positions of the columns, in the requested order; None for all.
        predicate: Which rows to return; None for all.

    Raises:
        InvalidValueError: The bucket is not one of the table, or the limit is not above 0.
    """

    def __init__(
        self,
        table: TableHandle,
        bucket: TableBucket,
        limit: int,
        columns: Sequence[int] | None = None,
        predicate: Predicate | None = None,
    ) -> None:
        self._handle = table
        self._limit = limit
        self._is_filtered = predicate is not None
        self._check_bucket(bucket)
        self.bucket = bucket
        self._decoder = Decoder(table, columns, predicate)
        self.schema: pa.Schema = self._decoder.schema

    async def read(self) -> list[DecodedBatch]:
        """Read the rows, in the order of their offsets or keys.

        Raises:
            FlussError: The bucket cannot be read.
        """
        table, cluster = self._handle.info.table_path, self._handle.connection.cluster
        path = await find_partition_path(cluster, table, self.bucket.partition_id)
        check_bucket_id(
            self._handle.info,
            self.bucket.bucket_id,
            count=cluster.view.bucket_count(path),
            partition=path.partition_name,
        )
        limit = self._limit
        while True:
            answer = await self._ask(path, limit)
            seen, batches = await anyio.to_thread.run_sync(self._decode, answer, path)
            found = sum(each.num_rows for each in batches)
            if not self._is_filtered or found >= self._limit or seen < limit:
                return _limited(batches, self._limit, from_end=answer.is_log)
            limit = min(limit * MORE_ROWS, LIMIT_MAX)

    async def _ask(self, path: PhysicalTablePath, limit: int) -> _Answer:
        answer = await limit_scan(self._handle.connection.cluster, path, self.bucket, limit=limit)
        records = answer.records[0] if answer.records else b""
        is_log = bool(answer.is_log_table)
        await self._handle.schemas.load(self._schema_ids(records, is_log=is_log))
        return _Answer(records=records, is_log=is_log)

    def _schema_ids(self, records: Buffer, *, is_log: bool) -> set[int]:
        if not len(records):
            return set()
        if is_log:
            headers = read_headers(records, magic_1=self._handle.connection.magic_1)
            if headers.error is not None:
                raise headers.error
            return headers.schema_ids
        return set(schema_ids_of(read_value_batch(records)).tolist())

    # --- decoding -----------------------------------------------------------------------------

    def _decode(self, answer: _Answer, path: PhysicalTablePath) -> tuple[int, list[DecodedBatch]]:
        """How many rows the server sent, and those that pass the filter."""
        if not len(answer.records):
            return 0, []
        if not answer.is_log:
            return self._decode_values(answer.records)
        headers = read_headers(answer.records, magic_1=self._handle.connection.magic_1)
        fetched = Fetched(
            position=Position(bucket=self.bucket, path=path, offset=NO_OFFSET),
            data=answer.records,
            start=NO_OFFSET,
            stop=headers.next_offset,
            projected=False,
        )
        return headers.rows, list(self._decoder.decode(fetched))

    def _decode_values(self, records: Buffer) -> tuple[int, list[DecodedBatch]]:
        values = read_value_batch(records)
        batch = ValueDecoder(self._handle, self._decoder.read_layout).decode(values)
        matching = self._decoder.filtered(DecodedBatch(batch=batch, bucket=self.bucket))
        return len(values), [] if matching is None else [matching]

    def _check_bucket(self, bucket: TableBucket) -> None:
        table = self._handle.info
        if not isinstance(bucket, TableBucket):
            raise InvalidValueError(
                f"A bucket is a TableBucket, not {bucket!r}.",
                hint="TableBucket(table.get_table_info().table_id, 0) is the first.",
            )
        if bucket.table_id != table.table_id:
            raise InvalidValueError(
                f"{bucket} is not a bucket of {table.table_path}, whose id is {table.table_id}.",
                table=str(table.table_path),
            )
        if not table.is_partitioned():
            check_bucket_id(table, bucket.bucket_id)
        if table.is_partitioned() == (bucket.partition_id is None):
            raise FlussError(
                f"{table.table_path} is {'' if table.is_partitioned() else 'not '}partitioned, "
                f"and {bucket} is {'not ' if bucket.partition_id is None else ''}a bucket of a "
                "partition.",
                hint="TableBucket.with_partition(table_id, partition_id, bucket) is one.",
                table=str(table.table_path),
            )


def _limited(batches: Sequence[DecodedBatch], limit: int, *, from_end: bool) -> list[DecodedBatch]:
    """The first rows, or the last ones."""
    kept: list[DecodedBatch] = []
    for batch in reversed(batches) if from_end else batches:
        if limit <= 0:
            break
        count = min(batch.num_rows, limit)
        start = batch.num_rows - count if from_end else 0
        kept.append(batch if count == batch.num_rows else batch.slice(start, count))
        limit -= count
    return kept[::-1] if from_end else kept
