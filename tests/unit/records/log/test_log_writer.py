"""Log batches written: byte by byte where that is possible, and the same again on a retry."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from crc32c import crc32c

from fluss.errors import LimitExceededError
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import BigIntType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.received_bytes import size_of
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import LogBody, arrow_log_body, write_log_batch

LAYOUT = BatchLayout.of(["id"], [BigIntType()])
BATCH = pa.record_batch([pa.array([1, 2, 3], pa.int64())], schema=LAYOUT.wire_schema)
BODY = arrow_log_body(BATCH, BodyCodec(ArrowCompression.NONE))


def test_a_batch_is_a_header_by_hand_and_the_message():
    written = b"".join(write_log_batch(BODY, schema_id=5, writer_id=6, batch_sequence=7))
    message = bytes(BODY.buffers[0])
    behind = struct.pack("<hbiqii", 5, 1, 2, 6, 7, 3) + message
    header = struct.pack("<qibqI", 0, 36 + len(message), 0, 0, crc32c(behind))
    assert written == header + behind


def test_change_types_go_in_front_of_the_message_without_padding():
    body = arrow_log_body(BATCH, BodyCodec(), change_types=np.array([4, 1, 2], dtype=np.uint8))
    written = b"".join(write_log_batch(body, schema_id=1))
    assert written[27] == 0
    assert written[48:55] == b"\x04\x01\x02\xff\xff\xff\xff"


def test_a_retry_only_makes_a_new_header():
    first = write_log_batch(BODY, schema_id=1, writer_id=6, batch_sequence=7)
    second = write_log_batch(BODY, schema_id=1, writer_id=8, batch_sequence=0)
    assert first[1] is second[1]
    (found,) = iter_log_batches(b"".join(second))
    assert (found.header.writer_id, found.header.batch_sequence) == (8, 0)


@pytest.mark.parametrize(
    ("statistics", "epoch", "magic", "size"), [(None, None, 0, 48), (b"st", None, 1, 54),
                                               (b"st", 3, 2, 58), (None, 3, 2, 56)],
)  # fmt: skip
def test_the_oldest_format_that_can_say_it_is_written(statistics, epoch, magic, size):
    body = LogBody(buffers=(b"",), record_count=0, is_append_only=True, statistics=statistics)
    buffers = write_log_batch(body, schema_id=1, leader_epoch=epoch)
    assert size_of(buffers) == size
    (found,) = iter_log_batches(b"".join(buffers), tail="refuse")
    assert (found.header.magic, found.header.leader_epoch) == (magic, epoch or -1)
    assert found.header.statistics_length == len(statistics or b"")


def test_change_types_must_be_as_many_as_rows():
    with pytest.raises(ValueError, match="2 change types for 3 rows"):
        arrow_log_body(BATCH, BodyCodec(), change_types=np.zeros(2, dtype=np.uint8))


def test_an_empty_batch_is_a_header_alone():
    empty = BATCH.slice(0, 0)
    buffers = write_log_batch(arrow_log_body(empty, BodyCodec()), schema_id=1)
    assert len(buffers) == 1
    assert len(buffers[0]) == 48


def test_a_batch_longer_than_its_header_can_say_is_refused(monkeypatch):
    monkeypatch.setattr("fluss.records.log.log_writer._LENGTH_MAX", 100)
    with pytest.raises(LimitExceededError, match="longer than the 100"):
        write_log_batch(BODY, schema_id=1)
