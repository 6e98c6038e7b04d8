"""The cost of encoding and decoding record batches, beyond Arrow's own cost.

10 000 rows of six columns (BIGINT, STRING, DOUBLE, INT, TIMESTAMP(6), STRING with NULLs). "Arrow"
is pyarrow's `read_record_batch` alone on the same body. Reading includes the guards and the full
validation of the arrays, which Arrow does not do; the checksum is a line of its own.

    ./dev bench batches
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from benchmarks._measure import print_table, rounds
from fluss.model.tables.table_options import ArrowCompression, KvFormat
from fluss.model.types.data_type import BigIntType, DoubleType, IntType, StringType, TimestampType
from fluss.records.arrow.arrow_body import read_arrow_body, write_arrow_body
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.projection import Projection, project_log_batch, read_projected
from fluss.records.convert.cast import to_wire_batch
from fluss.records.kv.kv_batch import kv_body, read_kv_batch, write_kv_batch
from fluss.records.kv.row_bytes import batch_from_rows, rows_from_batch
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.row_log import read_row_log, row_log_body

ROWS = 10_000
TYPES = (BigIntType(), StringType(), DoubleType(), IntType(), TimestampType(6), StringType())
LAYOUT = BatchLayout.of(["id", "name", "amount", "kind", "at", "note"], TYPES)


def batch_of(note: str) -> pa.RecordBatch:
    """Return the rows; `note` decides whether the last column is ASCII."""
    rng = np.random.default_rng(1)
    columns = [
        pa.array(rng.integers(0, 1 << 40, ROWS)),
        pa.array([f"user-{index}" for index in range(ROWS)]),
        pa.array(rng.random(ROWS)),
        pa.array(rng.integers(0, 1_000, ROWS, dtype=np.int32)),
        pa.array(rng.integers(0, 1 << 50, ROWS), pa.timestamp("us")),
        pa.array([None if index % 5 == 0 else f"{note}-{index % 97}" for index in range(ROWS)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LAYOUT.wire_schema)


def median_us(work: Callable[[], object]) -> float:
    return rounds(work).median * 1e6


def arrow_rows(text: str, batch: pa.RecordBatch) -> list[list[str]]:
    """Measure Arrow bodies of every compression."""
    found = []
    for compression in ArrowCompression:
        codec = BodyCodec(compression)
        body = write_arrow_body(batch, codec)
        stored = stored_batch(batch, codec)
        projection = Projection.of(LAYOUT, [0, 3])
        arrow = median_us(lambda body=body: ipc.read_record_batch(body, LAYOUT.wire_schema))
        ours = median_us(lambda body=body: read_arrow_body(body, LAYOUT, row_count=ROWS))
        write = median_us(lambda codec=codec: write_arrow_body(batch, codec))
        crc = median_us(stored.verify_crc)
        cut = median_us(lambda batch=stored, how=projection: project_log_batch(batch, how))
        read = median_us(lambda batch=stored, how=projection: read_projected(batch, how))
        figures = (arrow, ours, ours - arrow, crc, write, cut, read)
        found.append([f"{compression}, {text}", *(f"{each:.0f}" for each in figures)])
    return found


def stored_batch(batch: pa.RecordBatch, codec: BodyCodec) -> LogBatch:
    (found,) = iter_log_batches(
        b"".join(write_log_batch(arrow_log_body(batch, codec), schema_id=1))
    )
    return found


def row_rows(batch: pa.RecordBatch) -> list[list[str]]:
    """Measure rows, KV batches and row logs."""
    compacted = KvFormat.COMPACTED
    rows = rows_from_batch(batch, LAYOUT, compacted)
    keys = rows_from_batch(batch.select([0]), LAYOUT.project([0]), compacted)
    kv = b"".join(write_kv_batch(kv_body(keys, rows), schema_id=1))
    (log,) = iter_log_batches(
        b"".join(write_log_batch(row_log_body(batch, LAYOUT, compacted), schema_id=1))
    )
    works: dict[str, Callable[[], object]] = {
        "Arrow to compacted rows": lambda: rows_from_batch(batch, LAYOUT, compacted),
        "compacted rows to Arrow": lambda: batch_from_rows(rows, LAYOUT, compacted),
        "Arrow to indexed rows": lambda: rows_from_batch(batch, LAYOUT, KvFormat.INDEXED),
        "row log, written": lambda: row_log_body(batch, LAYOUT, compacted),
        "row log, read": lambda: read_row_log(log, LAYOUT, compacted),
        "KV batch of encoded rows": lambda: write_kv_batch(kv_body(keys, rows), schema_id=1),
        "KV batch, read to Arrow": lambda: batch_from_rows(
            read_kv_batch(kv).rows, LAYOUT, compacted
        ),
    }
    return [[name, f"{ROWS / median_us(work):.1f}"] for name, work in works.items()]


def main() -> None:
    plain = batch_of("note")
    heads = ["microseconds", "Arrow", "read", "beyond", "checksum", "write", "project 2", "read 2"]
    body = arrow_rows("ASCII", plain) + arrow_rows("umlauts", batch_of("städtisch"))
    print_table(f"Arrow log batches of {ROWS} rows", heads, body)
    print_table("Rows", ["million rows per second", ""], row_rows(plain))
    cast = median_us(lambda: to_wire_batch(plain, LAYOUT))
    print_table("Casts", ["microseconds", ""], [["a batch in wire form", f"{cast:.1f}"]])


if __name__ == "__main__":
    main()
