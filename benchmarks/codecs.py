"""The speed of the codecs on one core: `./dev bench codecs`.

Six mixed columns (BIGINT, STRING, DOUBLE, INT, BIGINT, nullable STRING) in batches of 10 000 rows.
Each figure has its target beside it; a missed target is marked.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from benchmarks._measure import Rounds, print_table, rounds
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import ArrowCompression, KvFormat
from fluss.records.arrow.array_checks import check_arrays
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.convert.cast import to_wire_batch
from fluss.records.kv.row_bytes import batch_from_rows, rows_from_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.keys.bucketing import bucket_function
from fluss.wire.zero_copy.fetch_log import (
    FETCH_LOG_RESPONSE,
    FetchedBucket,
    FetchedTable,
    FetchLogResponse,
)

ROWS = 10_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("age", pa.int32(), nullable=False),
        pa.field("seen", pa.int64(), nullable=False),
        pa.field("note", pa.string()),
    ]
)


def main() -> None:
    """Measure and print."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    layout = BatchLayout.of_schema(Schema(SCHEMA))
    batch = to_wire_batch(mixed_batch(), layout)
    lines = [*row_lines(batch, layout), hash_line(), *batch_lines(batch, layout), envelope_line()]
    print_table("codecs", ("what", "median", "spread", "target", ""), lines)


def mixed_batch() -> pa.RecordBatch:
    """Return typical rows: growing ids, short texts, a third of the notes NULL."""
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 1 << 40, ROWS)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(ROWS) + (1 << 33)),
            pa.array([f"customer-{each % 5_000}" for each in numbers]),
            pa.array(rng.random(ROWS)),
            pa.array(rng.integers(0, 100, ROWS).astype(np.int32)),
            pa.array(numbers),
            pa.array([None if each % 3 == 0 else f"note {each % 997}" for each in numbers]),
        ],
        schema=SCHEMA,
    )


def row_lines(batch: pa.RecordBatch, layout: BatchLayout) -> list[list[str]]:
    """Arrow to compacted rows, and back."""
    rows = rows_from_batch(batch, layout, KvFormat.COMPACTED)
    to_rows = rounds(lambda: rows_from_batch(batch, layout, KvFormat.COMPACTED))
    to_arrow = rounds(lambda: batch_from_rows(rows, layout, KvFormat.COMPACTED))
    return [
        rate("Arrow -> compacted rows", to_rows, ROWS, "rows/s", 1.0),
        rate("compacted rows -> Arrow", to_arrow, ROWS, "rows/s", 1.5),
    ]


def hash_line() -> list[str]:
    """Bucket hashes of 8-byte keys."""
    count = 100_000
    keys = np.random.default_rng(7).integers(0, 255, count * 8).astype(np.uint8)
    data = RowBytes(data=keys, offsets=np.arange(count + 1, dtype=np.int64) * 8)
    function = bucket_function(None)
    return rate(
        "bucket hash of 8-byte keys", rounds(lambda: function.buckets(data, 16)), count, "/s", 5.0
    )


def batch_lines(batch: pa.RecordBatch, layout: BatchLayout) -> list[list[str]]:
    """Measure the decoding of a log batch: the time beyond pyarrow's own, and its parts.

    Arrow alone neither computes the checksum nor checks that texts are UTF-8 and offsets ascend.
    """
    lines = []
    for compression in (ArrowCompression.ZSTD, ArrowCompression.NONE):
        body = arrow_log_body(batch, BodyCodec(compression))
        data = b"".join(memoryview(each) for each in write_log_batch(body, schema_id=1))
        message = pa.py_buffer(bytes(memoryview(body.buffers[0])))

        def ours(data: bytes = data) -> list[pa.RecordBatch]:
            return [each.record_batch(layout) for each in iter_log_batches(data)]

        def arrows(message: pa.Buffer = message) -> pa.RecordBatch:
            return ipc.read_record_batch(ipc.read_message(message), layout.wire_schema)

        (stored,) = iter_log_batches(data)
        decoded = stored.record_batch(layout)
        mine, theirs = [], []
        for _ in range(9):
            mine += rounds(ours, count=1).seconds
            theirs += rounds(arrows, count=1).seconds
        checksum = rounds(stored.verify_crc).median * 1e6
        checks = rounds(lambda decoded=decoded: check_arrays(decoded)).median * 1e6
        above = Rounds(seconds=tuple(a - b for a, b in zip(mine, theirs, strict=True)))
        micros = above.median * 1e6
        lines.append(
            [
                f"log batch decode above pyarrow ({compression.value})",
                f"{micros:.0f} us",
                f"of {Rounds(seconds=tuple(mine)).median * 1e6:.0f} us",
                "<= 40 us",
                "" if micros <= 40 else "MISSED",
            ]
        )
        lines.append(["... of which the checksum", f"{checksum:.0f} us", "", "", ""])
        lines.append(["... of which checking the arrays", f"{checks:.0f} us", "", "", ""])
    return lines


def envelope_line() -> list[str]:
    """Parse a fetch response with 1 MiB of records."""
    records = bytes(1 << 20)
    bucket = FetchedBucket(bucket_id=0, high_watermark=9, log_start_offset=0, records=(records,))
    answer = FetchLogResponse(tables_resp=(FetchedTable(table_id=1, buckets_resp=(bucket,)),))
    data = memoryview(b"".join(FETCH_LOG_RESPONSE.write(answer)))
    found = FETCH_LOG_RESPONSE.read(data).tables_resp[0].buckets_resp[0].records[0]
    copied = not (isinstance(found, memoryview) and found.obj is data.obj)
    taken = rounds(lambda: FETCH_LOG_RESPONSE.read(data))
    return [
        "fetch answer of 1 MiB parsed",
        f"{taken.median * 1e6:.1f} us",
        taken.spread,
        "no copy",
        "MISSED" if copied else "",
    ]


def rate(what: str, taken: Rounds, count: int, unit: str, target_millions: float) -> list[str]:
    """Return a line with a rate per second."""
    millions = count / taken.median / 1e6
    return [
        what,
        f"{millions:.2f} M {unit}",
        taken.spread,
        f">= {target_millions:.1f} M",
        "" if millions >= target_millions else "MISSED",
    ]


if __name__ == "__main__":
    main()
