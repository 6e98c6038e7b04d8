"""Bodies of INDEXED and COMPACTED logs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError, CorruptDataError
from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.model.types.data_type import IntType, StringType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_columns
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_records import read_log_records
from fluss.records.log.log_writer import write_log_batch
from fluss.records.log.row_log import read_row_log, row_log_body
from tests.support.generators.arrow_rows import batch_of
from tests.support.generators.random_columns import rows_in
from tests.support.generators.random_values import exact, tables

LAYOUT = BatchLayout.of(["id", "text"], [IntType(), StringType()])
FORMATS = list(KvFormat)


def layout_of(types):
    return BatchLayout.of([f"c{index}" for index in range(len(types))], types)


def stored(layout, rows, row_format, change_types=None):
    batch = batch_of(layout.wire_schema, layout.types, rows)
    body = row_log_body(batch, layout, row_format, change_types=change_types)
    return b"".join(write_log_batch(body, schema_id=1))


def read(data, layout, row_format):
    (batch,) = iter_log_batches(data, tail="refuse")
    return read_log_records(batch, layout, LogFormat(row_format.value))


@given(tables(), st.sampled_from(FORMATS))
def test_rows_of_every_type_survive(table, row_format):
    types, rows = table
    layout = layout_of(types)
    batch, change_types = read(stored(layout, rows, row_format), layout, row_format)
    assert change_types is None
    assert batch.schema.equals(layout.user_schema)
    assert exact(rows_in(to_columns(batch, types), length=len(rows))) == exact(rows)


def test_a_compacted_body_is_length_change_type_and_row():
    data = stored(LAYOUT, [(1, "ab"), (None, None)], KvFormat.COMPACTED)
    assert data[48:] == bytes.fromhex("06000000 00 00 01 02 6162  02000000 00 03")
    assert data[27] == 1


def test_change_types_stand_in_every_record():
    kinds = np.array([1, 4], dtype=np.uint8)
    data = stored(LAYOUT, [(1, "ab"), (2, None)], KvFormat.COMPACTED, kinds)
    assert data[48:] == bytes.fromhex("06000000 01 00 01 02 6162  03000000 04 02 02")
    assert data[27] == 0
    batch, change_types = read(data, LAYOUT, KvFormat.COMPACTED)
    assert change_types.tolist() == [1, 4]
    assert batch.to_pylist() == [{"id": 1, "text": "ab"}, {"id": 2, "text": None}]


def reread(data, *, at, value):
    damaged = bytearray(data)
    damaged[at] = value
    (batch,) = iter_log_batches(damaged, verify_crc=False)
    return read_row_log(batch, LAYOUT, KvFormat.COMPACTED)


def test_the_high_bits_of_a_change_type_mean_nothing():
    kinds = np.array([1, 4], dtype=np.uint8)
    data = stored(LAYOUT, [(1, "ab"), (2, None)], KvFormat.COMPACTED, kinds)
    _, change_types = reread(data, at=52, value=0xF2)
    assert change_types.tolist() == [2, 4]
    with pytest.raises(CorruptBatchError, match="change type 9"):
        reread(data, at=52, value=0x09)


def test_text_that_is_not_utf8_is_refused():
    data = stored(LAYOUT, [(1, "ab")], KvFormat.COMPACTED)
    with pytest.raises(CorruptBatchError, match="Compacted rows"):
        reread(data, at=len(data) - 1, value=0xFF)


@pytest.mark.parametrize("row_format", FORMATS)
def test_every_cut_is_refused(row_format):
    whole = stored(LAYOUT, [(1, "ab"), (2, None)], row_format)
    for cut in range(48, len(whole)):
        damaged = bytearray(whole[:cut])
        damaged[8:12] = (cut - 12).to_bytes(4, "little")
        (batch,) = iter_log_batches(damaged, verify_crc=False)
        with pytest.raises(CorruptDataError):
            read_row_log(batch, LAYOUT, row_format)
