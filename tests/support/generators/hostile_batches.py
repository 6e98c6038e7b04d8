"""Damages batches at random and reads them, in a separate process so that a crash is visible.

Run as `python -m tests.support.generators.hostile_batches SEED ROUNDS`. Every reader of
`fluss.records` gets batches with flipped bits, overwritten words and cut ends, with and without a
matching checksum. It must either refuse them or return rows whose values can all be read. The
process prints how many batches were refused and how many were read, and exits with 0; a
segmentation fault or the memory limit ends it with another code.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa

from fluss.errors import CorruptDataError, LimitExceededError
from fluss.model.tables.table_options import ArrowCompression, KvFormat, LogFormat
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.projection import Projection, project_log_batch, read_projected
from fluss.records.kv.kv_batch import kv_body, read_kv_batch, write_kv_batch
from fluss.records.kv.row_bytes import batch_from_rows, rows_from_batch
from fluss.records.kv.value_batch import (
    batch_from_values,
    read_value_batch,
    write_value_batch,
    write_values,
)
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_header import format_of, read_log_header
from fluss.records.log.log_records import read_log_records
from fluss.records.log.log_writer import arrow_log_body, seal, write_log_batch
from fluss.records.log.row_log import row_log_body
from fluss.records.log.statistics import collect_statistics, write_statistics
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.random_values import ALL_TYPES, random_rows, row_type

MEMORY_BYTES_MAX = 4 << 30
ROWS = 12
LAYOUT = BatchLayout.of(row_type(ALL_TYPES).field_names, ALL_TYPES)
PROJECTION = Projection.of(LAYOUT, [1, 9, 12, 20, len(ALL_TYPES) - 1])

Reader = Callable[[bytes], None]


def main(seed: int, rounds: int) -> None:
    """Damage and read `rounds` batches of every kind."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    rng = Random(seed)
    refused = read = 0
    for whole, fix_crc, reader in subjects(rng):
        for _ in range(rounds):
            damaged = damage(rng, whole)
            if rng.random() < 0.8:
                damaged = fix_crc(damaged)
            try:
                reader(damaged)
                read += 1
            except (CorruptDataError, LimitExceededError):
                refused += 1
    sys.stdout.write(f"refused {refused} read {read}\n")


def subjects(rng: Random) -> list[tuple[bytes, Callable[[bytes], bytes], Reader]]:
    """Return valid batches, the functions that fix their checksums, and their readers."""
    rows = random_rows(rng, ALL_TYPES, ROWS)
    batch = batch_of(LAYOUT.wire_schema, ALL_TYPES, rows)
    changes = np.array([rng.randrange(5) for _ in rows], dtype=np.uint8)
    found: list[tuple[bytes, Callable[[bytes], bytes], Reader]] = []
    statistics = write_statistics(
        collect_statistics(batch, LAYOUT, range(len(LAYOUT))), LAYOUT.types
    )
    for compression in ArrowCompression:
        body = arrow_log_body(
            batch, BodyCodec(compression), change_types=changes, statistics=statistics
        )
        whole = b"".join(write_log_batch(body, schema_id=1))
        found.append((whole, sealed_log, log_reader(LogFormat.ARROW)))
        found.append((whole, sealed_log, read_columns))
    for kv_format in KvFormat:
        body = row_log_body(batch, LAYOUT, kv_format, change_types=changes)
        whole = b"".join(write_log_batch(body, schema_id=1))
        found.append((whole, sealed_log, log_reader(LogFormat(kv_format.value))))
        encoded = rows_from_batch(batch, LAYOUT, kv_format)
        whole = b"".join(write_kv_batch(kv_body(encoded, encoded), schema_id=1))
        found.append((whole, lambda data: data, kv_reader(kv_format)))
        whole = b"".join(write_value_batch(write_values(encoded, schema_id=1)))
        found.append((whole, lambda data: data, value_reader(kv_format)))
    return found


def damage(rng: Random, whole: bytes) -> bytes:
    """Flip some bits, overwrite numbers with boundary values, or cut the batch."""
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data))
        kind = rng.random()
        if kind < 0.5:
            data[at] ^= 1 << rng.randrange(8)
        elif kind < 0.9:
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice((0, 1, -1, 127, 2**31 - 1, -(2**31), 2**62, rng.getrandbits(40)))
            word = (value % 2 ** (8 * width)).to_bytes(width, "little")
            data[at : at + width] = word[: len(data) - at]
        else:
            del data[at:]
            data = data or bytearray(b"\x00")
    return bytes(data)


def sealed_log(data: bytes) -> bytes:
    """Set a matching checksum and length."""
    if len(data) < 56:
        return data
    fixed = bytearray(data)
    fixed[8:12] = (len(fixed) - 12).to_bytes(4, "little")
    shape = format_of(fixed[12]) if fixed[12] < 3 else format_of(0)
    seal(fixed, shape, ())
    return bytes(fixed)


def log_reader(log_format: LogFormat) -> Reader:
    def read(data: bytes) -> None:
        for batch in iter_log_batches(data, verify_crc=False, tail="refuse"):
            rows, _ = read_log_records(batch, LAYOUT, log_format, body_bytes_max=1 << 28)
            look_at(rows)
            batch.statistics(LAYOUT.types)

    return read


def read_columns(data: bytes) -> None:
    """Project as a server does and read the result; then read the columns as a client does."""
    for batch in iter_log_batches(data, verify_crc=False):
        sent = b"".join(bytes(memoryview(each)) for each in project_log_batch(batch, PROJECTION))
        for projected in iter_log_batches(sent, tail="refuse", verify_crc=False):
            look_at(projected.record_batch(PROJECTION.target), PROJECTION.target)
        look_at(read_projected(batch, PROJECTION), PROJECTION.target)
        read_log_header(memoryview(data))


def kv_reader(kv_format: KvFormat) -> Reader:
    def read(data: bytes) -> None:
        batch = read_kv_batch(data, verify_crc=False)
        batch.keys.gathered()
        kept = np.flatnonzero(~batch.deletes)
        look_at(batch_from_rows(batch.rows.take(kept), LAYOUT, kv_format))

    return read


def value_reader(kv_format: KvFormat) -> Reader:
    def read(data: bytes) -> None:
        look_at(batch_from_values(read_value_batch(data), {1: LAYOUT}, LAYOUT, kv_format))

    return read


def look_at(rows: pa.RecordBatch, layout: BatchLayout = LAYOUT) -> None:
    """Read every value, as an engine would."""
    rows.validate(full=True)
    if rows.num_rows < 1 << 16:
        rows_of(rows, layout.types)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
