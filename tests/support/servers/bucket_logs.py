"""Opens, fills and reads logs of the embedded server, in one call each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from fluss.model.paths import TableBucket
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import ArrowCompression, LogFormat
from fluss.model.types.factory import DataTypes
from fluss.records.arrow.compression import BodyCodec
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss_server.log.bucket_log import BucketLog
from fluss_server.log.log_recovery import open_log
from fluss_server.table_schemas import TableSchemas

SCHEMA = Schema.builder().column("id", DataTypes.int()).column("name", DataTypes.string()).build()
SCHEMAS = TableSchemas({1: SCHEMA}, LogFormat.ARROW)
BUCKET = TableBucket(7, 0)
PLAIN = BodyCodec(ArrowCompression.NONE)


def rows_of(count: int, *, first: int = 0) -> pa.RecordBatch:
    ids = list(range(first, first + count))
    names = [f"name {each}" for each in ids]
    return pa.RecordBatch.from_arrays(
        [pa.array(ids, pa.int32()), pa.array(names)], schema=SCHEMAS.layouts[1].wire_schema
    )


def batch_bytes(
    count: int = 3, *, first: int = 0, writer: tuple[int, int] = (-1, -1), schema_id: int = 1
) -> bytes:
    body = arrow_log_body(rows_of(count, first=first), PLAIN)
    parts = write_log_batch(
        body, schema_id=schema_id, writer_id=writer[0], batch_sequence=writer[1]
    )
    return b"".join(bytes(each) for each in parts)


def batches(*written: bytes) -> list[LogBatch]:
    return list(iter_log_batches(b"".join(written)))


def opened(directory: Path, *, segment_bytes: int = 1 << 20) -> BucketLog:
    return open_log(BUCKET, directory, segment_bytes=segment_bytes)


def append(log: BucketLog, *written: bytes, now_ms: int = 1_000) -> list[int]:
    """Append and publish batches; return their base offsets."""
    outcome = log.append(batches(*written), now_ms=now_ms)
    log.publish()
    return [each.base_offset for each in outcome]


def ids_in(log: BucketLog, offset: int = 0) -> list[int]:
    """Return the first column of every row from an offset on, as readers see it."""
    found: list[int] = []
    while offset < log.high_watermark:
        read = log.read(offset, 1 << 20, at_least_one=True)
        for batch in iter_log_batches(read.data, tail="refuse"):
            rows = batch.record_batch(SCHEMAS.layouts[1])
            found += rows.column(0).to_pylist()[max(offset - batch.base_offset, 0) :]
            offset = batch.next_offset
    return found


def torn(directory: Path) -> Sequence[Path]:
    return sorted(directory.glob("*.torn-*"))
