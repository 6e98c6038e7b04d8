"""Arrow batches as rows, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError, InvalidValueError
from fluss.model.tables.table_options import KvFormat
from fluss.model.types.data_type import IntType, StringType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.framing import Frames
from fluss.records.kv.row_bytes import batch_from_rows, rows_from_batch
from fluss.rows.buffers.columns import RowBytes
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.random_values import exact, tables

LAYOUT = BatchLayout.of(["id", "text"], [IntType(), StringType()])


@given(tables(), st.sampled_from(list(KvFormat)), st.integers(0, 3))
def test_a_slice_of_a_batch_survives_as_rows(table, row_format, start):
    types, rows = table
    layout = BatchLayout.of([f"c{index}" for index in range(len(types))], types)
    batch = batch_of(layout.wire_schema, types, rows).slice(start)
    encoded = rows_from_batch(batch, layout, row_format)
    assert len(encoded) == batch.num_rows
    again = batch_from_rows(encoded, layout, row_format)
    assert again.schema == layout.user_schema
    assert exact(rows_of(again, types)) == exact(rows[start:])


def test_rows_lie_anywhere_in_the_bytes():
    batch = batch_of(LAYOUT.wire_schema, LAYOUT.types, [(1, "a"), (2, "b")])
    encoded = rows_from_batch(batch, LAYOUT, KvFormat.COMPACTED)
    frames = Frames(
        data=encoded.data, starts=encoded.offsets[1::-1].copy(), ends=encoded.offsets[2:0:-1].copy()
    )
    found = batch_from_rows(frames, LAYOUT, KvFormat.COMPACTED)
    assert rows_of(found, LAYOUT.types) == [(2, "b"), (1, "a")]


def test_text_that_is_not_utf8_is_refused_wherever_it_came_from():
    data = np.frombuffer(bytes.fromhex("00 01 02 c3c3"), dtype=np.uint8)
    rows = RowBytes(data=data, offsets=np.array([0, 5], dtype=np.int64))
    with pytest.raises(CorruptBatchError, match="Compacted rows at byte 0"):
        batch_from_rows(rows, LAYOUT, KvFormat.COMPACTED)


def test_a_null_that_may_not_be_is_not_written():
    layout = BatchLayout.of(["id"], [IntType().not_null()])
    batch = batch_of(layout.wire_schema, layout.types, [(1,), (None,)])
    with pytest.raises(InvalidValueError):
        rows_from_batch(batch, layout, KvFormat.COMPACTED)
