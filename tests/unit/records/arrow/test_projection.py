"""Projecting by metadata gives what decoding and selecting gives."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError, SchemaMismatchError
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import ArrayType, BigIntType, IntType, StringType
from fluss.records.arrow.arrow_metadata import write_body_metadata
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.projection import (
    Projection,
    project_arrow_body,
    project_log_batch,
    read_projected,
)
from fluss.records.arrow.received_bytes import to_view
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import LogBody, arrow_log_body, write_log_batch
from fluss.records.log.statistics import collect_statistics, write_statistics
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows, row_type, tables

CODECS = [BodyCodec(each) for each in ArrowCompression]
ALL = BatchLayout.of(row_type(ALL_TYPES).field_names, ALL_TYPES)


def layout_of(types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


def stored(layout, rows, codec, *, changes=None, statistics=False):
    batch = batch_of(layout.wire_schema, layout.types, rows)
    block = None
    if statistics:
        found = collect_statistics(batch, layout, range(len(layout)))
        block = write_statistics(found, layout.types)
    body = arrow_log_body(batch, codec, change_types=changes, statistics=block)
    buffers = write_log_batch(body, schema_id=3, base_offset=40, commit_timestamp=50)
    (found,) = iter_log_batches(b"".join(buffers))
    return found


def sent(batch, projection):
    return b"".join(bytes(to_view(each)) for each in project_log_batch(batch, projection))


def received_by_a_reader(batch, projection):
    (received,) = iter_log_batches(sent(batch, projection), tail="refuse", verify_crc=False)
    return received


@given(st.data(), tables(), st.sampled_from(CODECS))
def test_a_projection_is_decoding_and_selecting(data, table, codec):
    types, rows = table
    chosen = data.draw(st.sets(st.integers(0, len(types) - 1), min_size=1).map(sorted))
    layout = layout_of(types)
    batch = stored(layout, rows, codec)
    expected = exact([tuple(row[each] for each in chosen) for row in rows])
    projection = Projection.of(layout, chosen)
    kept = projection.target.types
    received = received_by_a_reader(batch, projection)
    assert exact(rows_of(received.record_batch(projection.target), kept)) == expected
    assert exact(rows_of(read_projected(batch, projection), kept)) == expected


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_header_and_change_types_stay_and_statistics_go(codec):
    rows = random_rows(Random(1), ALL_TYPES, 20)
    changes = np.arange(20, dtype=np.uint8) % 5
    batch = stored(ALL, rows, codec, changes=changes, statistics=True)
    assert batch.header.statistics_length
    projection = Projection.of(ALL, [0, 5, 33, 40])
    received = received_by_a_reader(batch, projection)
    header = received.header
    assert (header.base_offset, header.commit_timestamp, header.schema_id) == (40, 50, 3)
    assert (header.magic, header.statistics_length, header.record_count) == (1, 0, 20)
    assert received.change_types().tolist() == changes.tolist()
    chosen = [tuple(row[each] for each in (0, 5, 33, 40)) for row in rows]
    target = projection.target
    assert exact(rows_of(received.record_batch(target), target.types)) == exact(chosen)


def test_all_columns_are_all_bytes():
    rows = random_rows(Random(2), ALL_TYPES, 20)
    batch = stored(ALL, rows, BodyCodec())
    projection = Projection.of(ALL, range(len(ALL)))
    received = received_by_a_reader(batch, projection)
    assert exact(rows_of(received.record_batch(ALL), ALL_TYPES)) == exact(rows)
    pieces = project_log_batch(batch, projection)
    assert len(pieces) == 3, "header, metadata and the body in one piece"


def test_the_checksum_stays_that_of_the_whole_batch():
    batch = stored(ALL, random_rows(Random(3), ALL_TYPES, 5), BodyCodec())
    received = received_by_a_reader(batch, Projection.of(ALL, [3]))
    assert received.header.crc == batch.header.crc
    with pytest.raises(CorruptBatchError, match="checksum"):
        received.verify_crc()


def test_an_empty_batch_is_sent_as_it_is():
    batch = stored(ALL, [], BodyCodec(), changes=np.zeros(0, dtype=np.uint8))
    projection = Projection.of(ALL, [3])
    assert sent(batch, projection) == bytes(to_view(batch.data))
    assert read_projected(batch, projection).schema == projection.target.user_schema


@pytest.mark.parametrize("positions", [[], [1, 0], [1, 1], [-1], [99], [0, 99]])
def test_positions_must_ascend_and_name_columns(positions):
    with pytest.raises(SchemaMismatchError, match="ascending order") as caught:
        Projection.of(ALL, positions)
    assert caught.value.positions == tuple(positions)


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_columns_younger_than_the_batch_are_null(codec):
    old_types, new_types = ALL_TYPES[:4], ALL_TYPES
    old = layout_of(old_types)
    rows = random_rows(Random(4), old_types, 17)
    batch = stored(old, rows, codec, changes=np.ones(17, dtype=np.uint8))
    positions = [1, 3, *range(4, len(new_types))]
    projection = Projection.of(old, positions, newest=layout_of(new_types))
    received = received_by_a_reader(batch, projection)
    found = rows_of(received.record_batch(projection.target), projection.target.types)
    assert exact(found) == exact([(row[1], row[3], *[None] * (len(new_types) - 4)) for row in rows])
    assert read_projected(batch, projection).num_rows == 17


def test_a_projection_of_young_columns_alone_has_rows_of_nulls():
    old, new = layout_of([IntType()]), layout_of([IntType(), StringType()])
    batch = stored(old, [(1,), (2,)], BodyCodec())
    projection = Projection.of(old, [1], newest=new)
    received = received_by_a_reader(batch, projection)
    assert received.record_batch(projection.target).column(0).to_pylist() == [None, None]


TWO_NUMBERS = (BigIntType(), BigIntType())


def handmade(places, body, *, rows=2, types=TWO_NUMBERS):
    head = write_body_metadata(
        row_count=rows, nodes=[(rows, 0)] * len(types), buffers=places, codec=None,
        body_length=len(body),
    )  # fmt: skip
    return head + body, layout_of(types)


def test_buffers_in_any_order_are_found():
    message, layout = handmade(
        [(0, 0), (24, 16), (0, 0), (0, 16)], struct.pack("<5q", 1, 2, 0, 3, 4)
    )
    for chosen, values in (([0], [3, 4]), ([1], [1, 2])):
        projection = Projection.of(layout, chosen)
        body = b"".join(project_arrow_body(message, projection, row_count=2))
        found = pa.ipc.read_record_batch(pa.py_buffer(body), projection.target.wire_schema)
        assert found.column(0).to_pylist() == values


def test_a_last_buffer_without_padding_gets_some():
    body = struct.pack("<2q", 1, 2) + struct.pack("<2i", 3, 4)[:8]
    message, layout = handmade(
        [(0, 0), (0, 16), (0, 0), (16, 5)], body[:21], types=(BigIntType(), IntType())
    )
    pieces = project_arrow_body(message, Projection.of(layout, [1]), row_count=2)
    assert [len(each) for each in pieces[1:]] == [5, 3]


def test_buffers_that_overlap_do_not_multiply():
    layout_types = (StringType(),) * 50
    places = [(0, 0), (0, 4096), (0, 4096)] * 50
    message, layout = handmade(places, bytes(4096), rows=2, types=layout_types)
    with pytest.raises(CorruptBatchError, match="overlap"):
        project_arrow_body(message, Projection.of(layout, range(50)), row_count=2)


def test_what_contradicts_the_layout_is_refused():
    batch = stored(layout_of([IntType(), ArrayType(IntType())]), [(1, [2])], BodyCodec())
    other = Projection.of(layout_of([IntType(), StringType()]), [0])
    with pytest.raises(CorruptBatchError, match="its schema needs"):
        project_log_batch(batch, other)
    body = LogBody(buffers=(b"garbage" * 9,), record_count=1, is_append_only=True)
    (garbage,) = iter_log_batches(b"".join(write_log_batch(body, schema_id=1)))
    for read in (project_log_batch, read_projected):
        with pytest.raises(CorruptBatchError, match="FFFFFFFF") as caught:
            read(garbage, other)
        assert caught.value.at == 48
