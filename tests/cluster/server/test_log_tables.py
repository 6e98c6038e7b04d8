"""Log tables over the wire: accepted batches, refused batches, and reads."""

import json
import re
import struct
from itertools import count

import pytest
from crc32c import crc32c

from fluss.error_codes import ErrorCode
from fluss.errors import error_from_code
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.factory import DataTypes
from fluss.model.types.type_json import type_to_json
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_header import read_log_header
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.wire import messages as pb
from tests.support.servers.bucket_logs import SCHEMA, SCHEMAS, batch_bytes, rows_of
from tests.support.servers.embedded import Clock, running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection, RefusedError

CLOCK = Clock()
COUNTER = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server"), clock=CLOCK) as server:
        yield server


@pytest.fixture
def connection(server):
    opened = RawConnection(server.address, timeout_s=10)
    yield opened
    opened.close()


@pytest.fixture
def table(connection, request):
    return LogTable(connection, re.sub(r"\W", "_", f"{request.node.originalname}{next(COUNTER)}"))


def resealed(batch: bytearray) -> bytes:
    struct.pack_into("<I", batch, 21, crc32c(memoryview(batch)[25:]))
    return bytes(batch)


def with_field(at: int, form: str, value: int) -> bytes:
    batch = bytearray(batch_bytes(3))
    struct.pack_into(form, batch, at, value)
    return resealed(batch)


def test_rows_come_back_as_they_were_sent(table):
    assert table.produce(batch_bytes(3), batch_bytes(2, first=3)).base_offset == 0
    found = table.fetch()
    assert (found.high_watermark, found.log_start_offset) == (5, 0)
    first, second = iter_log_batches(found.records, tail="refuse")
    assert first.header.commit_timestamp == CLOCK.now_ms
    assert second.record_batch(SCHEMAS.layouts[1]).column(0).to_pylist() == [3, 4]


@pytest.mark.parametrize(
    ("what", "batch", "code"),
    [
        ("a wrong checksum", bytes([*batch_bytes(3)[:-1], 7]), 14),
        ("a cut batch", batch_bytes(3)[:-9], 14),
        ("a head only", batch_bytes(3)[:30], 14),
        ("a negative length", struct.pack("<qi", 0, -5) + bytes(60), 14),
        ("magic 2", with_field(12, "<b", 2), 14),
        ("magic 9", with_field(12, "<b", 9), 14),
        ("an unknown schema", with_field(25, "<h", 5), 9),
        ("a wrong record count", with_field(44, "<i", 4), 14),
        ("a negative record count", with_field(44, "<i", -4), 14),
        ("a wrong last offset", with_field(28, "<i", 7), 14),
        ("garbage for Arrow", resealed(bytearray(batch_bytes(3)[:60] + bytes(200))), 14),
    ],
)
def test_batches_that_no_reader_could_read_are_refused(table, what, batch, code):
    if what == "garbage for Arrow":
        batch = bytearray(batch)
        struct.pack_into("<i", batch, 8, len(batch) - 12)
        batch = resealed(batch)
    answer = table.produce(batch)
    assert answer.error_code == code, (what, answer)
    assert not answer.HasField("base_offset")
    assert table.fetch().high_watermark == 0
    assert table.produce(batch_bytes(1)).base_offset == 0


def test_a_batch_above_the_limit_uncompressed_is_too_large_for_good(table):
    body = arrow_log_body(rows_of(3), BodyCodec(ArrowCompression.ZSTD))
    sent = bytearray(b"".join(map(bytes, write_log_batch(body, schema_id=1))))
    stored_plain = sent.index(struct.pack("<q", -1), 60)  # after the header
    struct.pack_into("<q", sent, stored_plain, 2**31)
    answer = table.produce(resealed(sent))
    assert answer.error_code == ErrorCode.RECORD_TOO_LARGE_EXCEPTION
    assert "above the limit" in answer.error_message
    assert not error_from_code(answer.error_code).is_retriable


def test_one_bad_batch_refuses_the_whole_request(table):
    assert table.produce(batch_bytes(3), with_field(44, "<i", 4)).error_code == 14
    assert table.fetch().high_watermark == 0


def test_broken_offsets_inside_a_column_are_refused(table):
    sent = bytearray(batch_bytes(3))
    at = sent.index(struct.pack("<4i", 0, 6, 12, 18))
    struct.pack_into("<4i", sent, at, 0, 6, 1_200_000, 18)
    assert table.produce(resealed(sent)).error_code == 14


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_than_all_one_and_none_are_refused(table, acks):
    request = table.produce_request(batch_bytes(1))
    request.acks = acks
    with pytest.raises(RefusedError) as refused:
        table.connection.call(request)
    assert refused.value.code == 18


def test_an_empty_request_is_accepted(table):
    assert table.produce(b"").base_offset == -1


def test_unknown_buckets_and_partitions_are_error_21(table):
    assert table.produce(batch_bytes(1), bucket=1).error_code == 21
    assert table.produce(batch_bytes(1), bucket=-1).error_code == 21
    assert table.produce(batch_bytes(1), partition=4).error_code == 21
    assert table.fetch(bucket=9).error_code == 21


def test_rows_cannot_be_appended_to_a_primary_key_table(connection):
    schema = (
        Schema.builder()
        .column("id", DataTypes.int())
        .column("name", DataTypes.string())
        .primary_key(["id"])
        .build()
    )
    keyed = LogTable(connection, "keyed", schema)
    assert keyed.produce(batch_bytes(1)).error_code == 15


# --- offsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-1, 4, 1 << 40])
def test_an_offset_outside_the_log_is_error_19(table, offset):
    table.produce(batch_bytes(3))
    assert table.fetch(offset).error_code == 19


def test_minus_two_is_the_beginning_and_the_end_is_empty(table):
    table.produce(batch_bytes(3))
    assert table.fetch(-2).records
    found = table.fetch(3)
    assert found.records == b""
    assert not found.HasField("error_code")


def list_offsets(table, kind, timestamp=None):
    request = pb.ListOffsetsRequest(
        follower_server_id=-1, offset_type=kind, table_id=table.id, bucket_id=[0]
    )
    if timestamp is not None:
        request.startTimestamp = timestamp
    (found,) = table.connection.call(request).buckets_resp
    return found.error_code or found.offset


def test_offsets_are_found_by_time(table):
    start = CLOCK.now_ms
    for _ in range(3):
        table.produce(batch_bytes(2))
        CLOCK.now_ms += 100
    assert list_offsets(table, 0) == 0
    assert list_offsets(table, 1) == 6
    assert list_offsets(table, 2, start) == 0
    assert list_offsets(table, 2, start + 1) == 2
    assert list_offsets(table, 2, start + 200) == 4
    assert list_offsets(table, 2, start + 201) == 6
    assert list_offsets(table, 2, CLOCK.now_ms + 1) == 38


def test_a_clock_that_goes_back_does_not_break_the_search(table):
    start = CLOCK.now_ms
    table.produce(batch_bytes(2))
    CLOCK.now_ms -= 5_000
    table.produce(batch_bytes(2))
    CLOCK.now_ms += 5_000
    assert list_offsets(table, 2, start) == 0
    stamps = [each.header.commit_timestamp for each in iter_log_batches(table.fetch().records)]
    assert stamps == [start, start]


def test_a_limit_scan_gives_the_batches_of_the_last_rows(table):
    for first in range(5):
        table.produce(batch_bytes(2, first=2 * first))
    answer = table.connection.call(pb.LimitScanRequest(table_id=table.id, bucket_id=0, limit=3))
    assert answer.is_log_table
    found = list(iter_log_batches(answer.records, tail="refuse"))
    assert [each.base_offset for each in found] == [6, 8]
    missing = table.connection.call(pb.LimitScanRequest(table_id=table.id, bucket_id=7, limit=3))
    assert missing.error_code == 21


def test_stats_count_rows(table):
    table.produce(batch_bytes(3))
    request = pb.GetTableStatsRequest(table_id=table.id)
    request.buckets_req.add(bucket_id=0)
    assert table.connection.call(request).buckets_resp[0].row_count == 3


# --- projection and added columns ---------------------------------------------------------------


def rows_in(found, layouts):
    rows = []
    for batch in iter_log_batches(found.records, tail="refuse", verify_crc=False):
        rows += batch.record_batch(layouts(batch.header.schema_id)).to_pylist()
    return rows


def test_projected_batches_keep_the_checksum_of_the_writer(table):
    written = batch_bytes(3)
    table.produce(written)
    found = table.fetch(projected=[1])
    assert read_log_header(memoryview(found.records)).crc == read_log_header(written).crc
    layout = SCHEMAS.layouts[1].project([1])
    assert rows_in(found, lambda _: layout) == [{"name": f"name {each}"} for each in range(3)]


@pytest.mark.parametrize("positions", [[], [1, 0], [0, 0], [2], [-1]])
def test_projections_that_name_no_columns_in_order_are_error_34(table, positions):
    table.produce(batch_bytes(3))
    assert table.fetch(projected=positions).error_code == 34


def test_a_column_that_is_younger_than_the_rows_is_null(table):
    table.produce(batch_bytes(2))
    request = pb.AlterTableRequest(table_path=table.path, ignore_if_not_exists=False)
    request.add_columns.add(
        column_name="late",
        data_type_json=json_of(DataTypes.bigint()),
        column_position_type=0,
    )
    table.connection.call(request)
    assert table.info().schema_id == 2
    newest = Schema.from_json(
        table.connection.call(pb.GetTableSchemaRequest(table_path=table.path)).schema_json
    )
    layout = BatchLayout.of_schema(newest).project([0, 2])
    found = table.fetch(projected=[0, 2])
    (batch,) = iter_log_batches(found.records, tail="refuse", verify_crc=False)
    assert batch.header.schema_id == 2, "readers lay batches out by their schema ids"
    assert batch.record_batch(layout).to_pylist() == [
        {"id": 0, "late": None},
        {"id": 1, "late": None},
    ]
    assert table.produce(batch_bytes(1)).base_offset == 2, "old writers may go on"


def json_of(data_type):
    return json.dumps(type_to_json(data_type)).encode()


def test_partitions_have_their_own_logs(connection):
    table = LogTable(connection, "parted", SCHEMA, partition_keys=["name"])
    spec = pb.PbPartitionSpec()
    spec.partition_key_values.add(key="name", value="a")
    create = pb.CreatePartitionRequest(
        table_path=table.path, partition_spec=spec, ignore_if_not_exists=False
    )
    connection.call(create)
    with pytest.raises(RefusedError) as refused:
        connection.call(create)
    assert refused.value.code == 42
    (listed,) = connection.call(pb.ListPartitionInfosRequest(table_path=table.path)).partitions_info
    assert table.produce(batch_bytes(2), partition=listed.partition_id).base_offset == 0
    assert table.produce(batch_bytes(2)).error_code == 21
    assert table.fetch(partition=listed.partition_id).high_watermark == 2
    connection.call(
        pb.DropPartitionRequest(
            table_path=table.path, partition_spec=spec, ignore_if_not_exists=False
        )
    )
    assert table.fetch(partition=listed.partition_id).error_code == 21
