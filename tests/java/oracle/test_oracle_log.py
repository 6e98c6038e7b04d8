"""Log batches of the three formats: Java reads ours, we read Java's, also projected ones."""

from __future__ import annotations

from random import Random

import pytest

from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import BytesType
from fluss.records.arrow.compression import BodyCodec
from fluss.records.log.log_batch import iter_log_batches
from tests.support.differential.oracle_rows import (
    rows_java_reads_in_arrow,
    types_java_reads_in_arrow,
    with_full_binaries,
)
from tests.support.differential.oracle_types import BatchHeader
from tests.support.generators.batches import log_batch_of, read_log
from tests.support.generators.seeded_values import ALL_TYPES, random_rows, random_types

LEVELS = {"NONE": -1, "ZSTD": 3, "LZ4_FRAME": -1}
ROWS = 60
APPENDED = BatchHeader(schema_id=4, writer_id=77, sequence=3, base_offset=1_000, timestamp=123)
CHANGED = BatchHeader(append_only=False, schema_id=5, base_offset=2**40, timestamp=1)

HEADERS = pytest.mark.parametrize("header", [APPENDED, CHANGED], ids=["appended", "changed"])
FORMATS = pytest.mark.parametrize("log_format", ["ARROW", "INDEXED", "COMPACTED"])
ROW_FORMATS = pytest.mark.parametrize("log_format", ["INDEXED", "COMPACTED"])
COMPRESSIONS = pytest.mark.parametrize("compression", LEVELS)


def table(log_format, header, seed, *, count=ROWS):
    """Rows of all types, and (change type, row) records of them with changes of all kinds."""
    rng = Random(seed)
    rows = random_rows(rng, ALL_TYPES, count)
    if log_format == "ARROW":
        rows = rows_java_reads_in_arrow(ALL_TYPES, rows)
    return rows, [(0 if header.append_only else rng.randrange(5), row) for row in rows]


def codec_of(compression):
    return BodyCodec(ArrowCompression(compression), LEVELS[compression])


def read_by_java(oracle, log_format, types, data):
    """The one batch in the data, and its rows."""
    asked = types_java_reads_in_arrow(types) if log_format == "ARROW" else types
    (batch,) = oracle.read_log(log_format, asked, data)
    return batch, with_full_binaries(log_format, types, [each[3] for each in batch.records])


@FORMATS
@HEADERS
def test_java_reads_the_batches_we_write(oracle, compare, log_format, header):
    rows, records = table(log_format, header, 51)
    data = log_batch_of(log_format, ALL_TYPES, records, header)
    batch, java = read_by_java(oracle, log_format, ALL_TYPES, data)
    assert batch.is_valid
    assert (batch.magic, batch.size, batch.schema_id) == (0, len(data), header.schema_id)
    assert (batch.base_offset, batch.next_offset) == (header.base_offset, header.base_offset + ROWS)
    assert (batch.writer_id, batch.sequence) == (header.writer_id, header.sequence)
    assert [each[2] for each in batch.records] == [change for change, _ in records]
    compare.rows(f"{log_format} log: ours read by Java", ALL_TYPES, rows, ours=rows, java=java)


@FORMATS
@HEADERS
def test_we_read_the_batches_java_writes(oracle, compare, log_format, header):
    rows, records = table(log_format, header, 52)
    data = oracle.write_log(log_format, ALL_TYPES, records, header)
    found, (batch,) = read_log(log_format, ALL_TYPES, data)
    ours = batch.header
    assert (ours.base_offset, ours.next_offset) == (header.base_offset, header.base_offset + ROWS)
    assert (ours.commit_timestamp, ours.schema_id) == (header.timestamp, header.schema_id)
    assert (ours.writer_id, ours.batch_sequence) == (header.writer_id, header.sequence)
    assert [change for change, _ in found] == [change for change, _ in records]
    read = [row for _, row in found]
    compare.rows(f"{log_format} log: Java's read by us", ALL_TYPES, rows, ours=read, java=rows)


@ROW_FORMATS
@HEADERS
def test_a_batch_of_rows_has_the_bytes_that_java_writes(oracle, compare, log_format, header):
    rng = Random(53)
    for count in (0, 1, 2, 40):
        types = random_types(rng, 6)
        rows = random_rows(rng, types, count)
        records = [(0 if header.append_only else rng.randrange(5), row) for row in rows]
        java = oracle.write_log(log_format, types, records, header)
        ours = log_batch_of(log_format, types, records, header)
        compare.others(f"{log_format} log: our bytes", [(count, types)], ours=[ours], java=[java])


@COMPRESSIONS
def test_compressed_bodies_are_read_in_both_directions(oracle, compare, compression):
    rows, records = table("ARROW", APPENDED, 54, count=150)
    data = log_batch_of("ARROW", ALL_TYPES, records, APPENDED, codec=codec_of(compression))
    _, java = read_by_java(oracle, "ARROW", ALL_TYPES, data)
    kind = f"ARROW {compression} log"
    compare.rows(f"{kind}: ours read by Java", ALL_TYPES, rows, ours=rows, java=java)
    how = (compression, LEVELS[compression])
    written = oracle.write_log("ARROW", ALL_TYPES, records, APPENDED, compression=how)
    read = [row for _, row in read_log("ARROW", ALL_TYPES, written)[0]]
    compare.rows(f"{kind}: Java's read by us", ALL_TYPES, rows, ours=read, java=rows)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 200_000, 5_000_000])
@pytest.mark.parametrize("is_random", [True, False], ids=["random", "repeating"])
def test_lz4_bodies_of_many_blocks_are_read_in_both_directions(oracle, compare, size, is_random):
    """Java's reader accepts only independent blocks."""
    value = Random(size).randbytes(size) if is_random else (b"look back! " * size)[:size]
    types, rows, records = (BytesType(),), [(value,)], [(0, (value,))]
    data = log_batch_of("ARROW", types, records, APPENDED, codec=codec_of("LZ4_FRAME"))
    _, java = read_by_java(oracle, "ARROW", types, data)
    compare.rows("ARROW LZ4_FRAME log: ours read by Java", types, rows, ours=rows, java=java)
    written = oracle.write_log("ARROW", types, records, APPENDED, compression=("LZ4_FRAME", -1))
    read = [row for _, row in read_log("ARROW", types, written)[0]]
    compare.rows("ARROW LZ4_FRAME log: Java's read by us", types, rows, ours=read, java=rows)


@COMPRESSIONS
@HEADERS
def test_a_server_projects_our_batches_and_we_read_them(oracle, compare, compression, header):
    rng = Random(f"{compression} {header.append_only}")
    rows, records = table("ARROW", header, 55)
    codec = codec_of(compression)
    stored = log_batch_of("ARROW", ALL_TYPES, records, header, codec=codec) * 2
    for _ in range(6):
        positions = sorted(rng.sample(range(len(ALL_TYPES)), rng.randint(1, 9)))
        how = (compression, LEVELS[compression])
        sent = oracle.project_log(ALL_TYPES, positions, stored, compression=how)
        types = [ALL_TYPES[each] for each in positions]
        found, batches = read_log("ARROW", types, sent, verify_crc=False)
        assert len(batches) == 2
        assert [change for change, _ in found] == [change for change, _ in records] * 2
        ours = [row for _, row in found]
        expected = [tuple(row[each] for each in positions) for row in rows] * 2
        compare.rows("ARROW log: projected by Java", types, expected, ours=ours, java=expected)


@FORMATS
def test_batches_with_a_leader_epoch_are_read_as_0_9_1_means_them(oracle, compare, log_format):
    header = BatchHeader(magic=1, append_only=False, schema_id=9, base_offset=3, timestamp=4)
    rows, records = table(log_format, header, 56)
    data = oracle.write_log(log_format, ALL_TYPES, records, header)
    found, (batch,) = read_log(log_format, ALL_TYPES, data, magic_1="leader_epoch")
    assert (batch.header.magic, batch.header.leader_epoch) == (1, -1)
    ours = [row for _, row in found]
    compare.rows(f"{log_format} log: with an epoch", ALL_TYPES, rows, ours=ours, java=rows)


@FORMATS
def test_an_empty_batch_takes_one_offset(oracle, log_format):
    java = oracle.write_log(log_format, ALL_TYPES, [], CHANGED)
    ours = log_batch_of(log_format, ALL_TYPES, [], CHANGED)
    assert ours == java
    (batch,) = iter_log_batches(java)
    (read,) = oracle.read_log(log_format, ALL_TYPES, ours)
    assert batch.next_offset == read.next_offset == CHANGED.base_offset + 1
