"""KV batches, stored values and value batches: our bytes are Java's, and each reads the other's."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fluss.model.tables.table_options import KvFormat
from fluss.records.kv.kv_batch import read_kv_batch
from fluss.records.kv.row_bytes import batch_from_rows
from fluss.records.kv.value_batch import (
    batch_from_values,
    frames_of_values,
    read_value_batch,
    schema_ids_of,
    write_value_batch,
    write_values,
)
from tests.support.differential.oracle_rows import with_full_binaries
from tests.support.generators.arrow_rows import rows_of
from tests.support.generators.batches import encoded_rows, kv_batch_of, layout_of
from tests.support.generators.seeded_values import ALL_TYPES, random_rows, random_types

FORMATS = pytest.mark.parametrize("kv_format", ["COMPACTED", "INDEXED"])


def some_records(rng, types, count):
    """Keys of all lengths, the longest of which need a varint of two bytes; a third deletes."""
    keys = [rng.randbytes(rng.choice((1, 2, 9, 127, 128, 200))) for _ in range(count)]
    rows = random_rows(rng, types, count)
    return [(key, None if rng.random() < 0.3 else row) for key, row in zip(keys, rows, strict=True)]


@FORMATS
@pytest.mark.parametrize(
    ("schema_id", "writer_id", "sequence"), [(1, -1, -1), (300, 2**63 - 1, 12)]
)
@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_kv_batch_has_the_bytes_that_java_writes(
    oracle, compare, kv_format, schema_id, writer_id, sequence, count
):
    rng = Random(f"{kv_format} {count}")
    header = {"schema_id": schema_id, "writer_id": writer_id}
    for types in (ALL_TYPES, random_types(rng, 5)):
        records = some_records(rng, types, count)
        ours = kv_batch_of(kv_format, types, records, **header, batch_sequence=sequence)
        java = oracle.write_kv(kv_format, types, records, **header, sequence=sequence)
        compare.others(f"{kv_format} KV batches: our bytes", [types], ours=[ours], java=[java])


@FORMATS
def test_java_reads_the_kv_batches_we_write(oracle, compare, kv_format):
    records = some_records(Random(61), ALL_TYPES, 60)
    data = kv_batch_of(kv_format, ALL_TYPES, records, schema_id=7, writer_id=5, batch_sequence=6)
    read = oracle.read_kv(kv_format, ALL_TYPES, data)
    assert (read.magic, read.schema_id, read.writer_id, read.sequence) == (0, 7, 5, 6)
    assert [key for key, _ in read.records] == [key for key, _ in records]
    assert [row is None for _, row in read.records] == [row is None for _, row in records]
    rows = [row for _, row in records if row is not None]
    found = [row for _, row in read.records if row is not None]
    java = with_full_binaries(kv_format, ALL_TYPES, found)
    kind = f"{kv_format} KV batches: ours read by Java"
    compare.rows(kind, ALL_TYPES, rows, ours=rows, java=java)


@FORMATS
def test_we_read_the_kv_batches_java_writes(oracle, compare, kv_format):
    records = some_records(Random(62), ALL_TYPES, 60)
    header = {"schema_id": 8, "writer_id": 9, "sequence": 10}
    batch = read_kv_batch(oracle.write_kv(kv_format, ALL_TYPES, records, **header))
    assert (batch.schema_id, batch.writer_id, batch.batch_sequence) == (8, 9, 10)
    assert list(batch.keys.gathered()) == [key for key, _ in records]
    assert batch.deletes.tolist() == [row is None for _, row in records]
    kept = batch.rows.take(np.flatnonzero(~batch.deletes))
    found = batch_from_rows(kept, layout_of(ALL_TYPES), KvFormat(kv_format))
    ours = rows_of(found, ALL_TYPES)
    rows = [row for _, row in records if row is not None]
    kind = f"{kv_format} KV batches: Java's read by us"
    compare.rows(kind, ALL_TYPES, rows, ours=ours, java=rows)


@FORMATS
@pytest.mark.parametrize("count", [0, 1, 60])
def test_stored_values_agree_in_both_directions(oracle, compare, kv_format, count):
    rows = random_rows(Random(63), ALL_TYPES, count)
    java, java_batch = oracle.write_values(kv_format, ALL_TYPES, rows, schema_id=258)
    values = write_values(encoded_rows(kv_format, ALL_TYPES, rows), schema_id=258)
    kind = f"{kv_format} values"
    compare.rows(f"{kind}: our bytes", ALL_TYPES, rows, ours=list(values), java=java)
    ours_batch = b"".join(write_value_batch(values))
    compare.others(f"{kind}: our batch", [count], ours=[ours_batch], java=[java_batch])

    layout = layout_of(ALL_TYPES)
    for frames in (read_value_batch(java_batch), frames_of_values(java)):
        assert set(schema_ids_of(frames).tolist()) <= {258}
        batch = batch_from_values(frames, {258: layout}, layout, KvFormat(kv_format))
        read = rows_of(batch, ALL_TYPES)
        compare.rows(f"{kind}: Java's read by us", ALL_TYPES, rows, ours=read, java=rows)

    read = oracle.read_values(kv_format, ALL_TYPES, ours_batch)
    assert {schema_id for schema_id, _ in read} <= {258}
    found = with_full_binaries(kv_format, ALL_TYPES, [row for _, row in read])
    compare.rows(f"{kind}: ours read by Java", ALL_TYPES, rows, ours=rows, java=found)
