"""Requests made by hand from the codec rooms alone, to a real server: no client in between.

A table of every type is created, produced to, fetched projected and not, put, looked up by key and
by prefix, scanned, and its changelog read. What comes back must be the physical values sent.
"""

import time
from itertools import count
from random import Random

import pytest

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import ArrowCompression, KvFormat
from fluss.model.types.data_type import DataField, IntType, RowType, StringType
from fluss.model.types.factory import DataTypes
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.kv.kv_batch import kv_body, write_kv_batch
from fluss.records.kv.value_batch import batch_from_values, frames_of_values, read_value_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.formats.compacted import write_compacted_keys, write_compacted_rows
from fluss.rows.keys.bucketing import bucket_function
from fluss.wire import messages as pb
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.random_columns import columns_of
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows, without_odd_bits
from tests.support.servers.raw_client import COORDINATOR, RawClient, RefusedError

ROWS = 60
BUCKETS = 3
ALL, LEADER = -1, 1
NOT_YET_THERE = {12, 21}  # the server does not know the bucket, or not that it leads it
PATIENCE_S = 30.0  # a busy machine elects slowly
PROJECTED = (0, 3, 9, 17, 25, 32, 34, 38)


class Table:
    """A table on the server, and hand-made requests about it."""

    def __init__(self, client, database, name, schema, **descriptor):
        self.client = client
        self.path = pb.PbTablePath(database_name=database, table_name=name)
        asked = TableDescriptor(schema, **descriptor)
        client.call(
            pb.CreateTableRequest(
                table_path=self.path, table_json=asked.to_json().encode(), ignore_if_exists=False
            ),
            to=COORDINATOR,
        )
        info = client.call(pb.GetTableInfoRequest(table_path=self.path))
        self.id, self.schema_id = info.table_id, info.schema_id
        self.made = TableDescriptor.from_json(info.table_json)
        self.layout = BatchLayout.of_schema(self.made.schema)
        self.leader = self._await_leader()

    def _await_leader(self):
        until = time.monotonic() + PATIENCE_S
        path = (self.path.database_name, self.path.table_name)
        while (leader := self.client.leader(*path)) is None:
            assert time.monotonic() < until
            time.sleep(0.02)
        return leader

    def change(self, request):
        """Produce or put, again while the new bucket is not known to its server yet."""
        until = time.monotonic() + PATIENCE_S
        while True:
            (answer,) = self.client.call(request, to=self.leader, version=0).buckets_resp
            if answer.error_code not in NOT_YET_THERE or time.monotonic() > until:
                assert not answer.HasField("error_code"), answer.error_message
                return answer
            time.sleep(0.02)

    def fetch(self, bucket=0, *, projected=None):
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=1 << 24)
        table = request.tables_req.add(
            table_id=self.id,
            projection_pushdown_enabled=projected is not None,
            projected_fields=projected or (),
        )
        table.buckets_req.add(bucket_id=bucket, fetch_offset=0, max_fetch_bytes=1 << 24)
        (answered,) = self.client.call(request, to=self.leader).tables_resp
        (found,) = answered.buckets_resp
        assert not found.HasField("error_code"), found.error_message
        return found


def schema_of(types, *, primary_keys=()):
    fields = [DataField(f"c{index}", each) for index, each in enumerate(types)]
    builder = Schema.builder()
    for each in fields:
        builder = builder.column(each.name, each.data_type)
    if primary_keys:
        builder = builder.primary_key(list(primary_keys))
    return builder.build()


def rows_for(types, *, seed):
    return [tuple(map(with_one_nan, row)) for row in random_rows(Random(seed), types, ROWS)]


def with_one_nan(value):
    """The same value with the one NaN that Arrow's builders write, however deep it is."""
    if isinstance(value, list | tuple):
        return type(value)(map(with_one_nan, value))
    return without_odd_bits(value) if isinstance(value, float) else value


@pytest.fixture
def client(cluster):
    with RawClient(cluster.bootstrap) as client:
        yield client


@pytest.mark.parametrize("compression", list(ArrowCompression))
def test_a_log_of_every_type_is_produced_and_fetched_whole_and_projected(
    client, database, compression
):
    table = Table(
        client,
        database,
        "every_type",
        schema_of(ALL_TYPES),
        bucket_count=1,
        properties={"table.log.arrow.compression.type": compression.value},
    )
    types = table.layout.types
    assert [str(each) for each in types] == [
        str(each) for each in schema_of(ALL_TYPES).column_types
    ]
    rows = rows_for(types, seed=1)
    body = arrow_log_body(batch_of(table.layout.wire_schema, types, rows), BodyCodec(compression))
    data = b"".join(memoryview(each) for each in write_log_batch(body, schema_id=table.schema_id))
    request = pb.ProduceLogRequest(acks=ALL, table_id=table.id, timeout_ms=10_000)
    request.buckets_req.add(bucket_id=0, records=data)
    assert table.change(request).base_offset == 0

    found = table.fetch()
    assert found.high_watermark == ROWS
    (batch,) = iter_log_batches(found.records, verify_crc=True)
    assert exact(rows_of(batch.record_batch(table.layout), types)) == exact(rows)

    found = table.fetch(projected=PROJECTED)
    (batch,) = iter_log_batches(found.records, verify_crc=False)
    layout = table.layout.project(PROJECTED)
    expected = [tuple(row[place] for place in PROJECTED) for row in rows]
    assert exact(rows_of(batch.record_batch(layout), layout.types)) == exact(expected)


def test_a_batch_with_a_wrong_checksum_is_refused_by_the_server(client, database):
    table = Table(client, database, "checked", schema_of([IntType()]), bucket_count=1)
    body = arrow_log_body(batch_of(table.layout.wire_schema, [IntType()], [(1,)]), BodyCodec())
    data = bytearray().join(memoryview(e) for e in write_log_batch(body, schema_id=table.schema_id))
    data[21] ^= 1
    request = pb.ProduceLogRequest(acks=ALL, table_id=table.id, timeout_ms=10_000)
    request.buckets_req.add(bucket_id=0, records=bytes(data))
    until = time.monotonic() + PATIENCE_S
    code = min(NOT_YET_THERE)
    while code in NOT_YET_THERE and time.monotonic() < until:
        (answer,) = client.call(request, to=table.leader).buckets_resp
        code = answer.error_code
    assert code == 14


class KeyedTable(Table):
    """A table (c0 INT, c1 STRING) -> every type, bucketed by c0."""

    TYPES = (IntType().not_null(), StringType().not_null(), *ALL_TYPES)

    def __init__(self, client, database, name, **descriptor):
        schema = schema_of(self.TYPES, primary_keys=["c0", "c1"])
        super().__init__(
            client,
            database,
            name,
            schema,
            bucket_count=BUCKETS,
            bucket_keys=["c0"],
            **descriptor,
        )

    def keys_of(self, rows, *, columns=2):
        types = self.layout.types[:columns]
        return write_compacted_keys(columns_of(types, [row[:columns] for row in rows]))

    def buckets_of(self, rows):
        return bucket_function(None).buckets(self.keys_of(rows, columns=1), BUCKETS).tolist()

    def put(self, rows, *, delete=False):
        types = self.layout.types
        for bucket, chosen in by_bucket(rows, self.buckets_of(rows)).items():
            keys = self.keys_of(chosen)
            encoded = write_compacted_rows(columns_of(types, chosen))
            deletes = None if not delete else encoded.offsets[1:] > 0
            body = kv_body(keys, encoded, deletes=deletes)
            data = b"".join(map(bytes, map(memoryview, write_kv_batch(body, schema_id=1))))
            request = pb.PutKvRequest(acks=ALL, table_id=self.id, timeout_ms=10_000)
            request.buckets_req.add(bucket_id=bucket, records=data)
            self.change(request)

    def decoded(self, values):
        batch = batch_from_values(values, {1: self.layout}, self.layout, KvFormat.COMPACTED)
        return rows_of(batch, self.layout.types)

    def lookup(self, rows):
        """What is found for the keys of these rows, in their order; None for nothing."""
        found = {}
        for bucket, chosen in by_bucket(list(enumerate(rows)), self.buckets_of(rows)).items():
            keys = self.keys_of([row for _, row in chosen])
            request = pb.LookupRequest(table_id=self.id)
            request.buckets_req.add(bucket_id=bucket, keys=[keys[i] for i in range(len(keys))])
            (answer,) = self.client.call(request, to=self.leader).buckets_resp
            for (place, _), value in zip(chosen, answer.values, strict=True):
                found[place] = value.values if value.HasField("values") else None
        values = [found[place] for place in range(len(rows))]
        present = [each for each in values if each is not None]
        decoded = iter(self.decoded(frames_of_values(present)) if present else ())
        return [None if each is None else next(decoded) for each in values]


def by_bucket(items, buckets):
    chosen = {}
    for item, bucket in zip(items, buckets, strict=True):
        chosen.setdefault(bucket, []).append(item)
    return chosen


def by_key(rows):
    return {row[:2]: exact(row) for row in rows}


def keyed_rows(types, *, seed):
    numbers = count(-20)
    return [
        (next(numbers) * 37, f"é{i % 7}", *row[2:])
        for i, row in enumerate(rows_for(types, seed=seed))
    ]


def test_a_primary_key_table_of_every_type_is_put_looked_up_and_read_as_a_changelog(
    client, database
):
    table = KeyedTable(client, database, "keyed")
    types = table.layout.types
    before, after = keyed_rows(types, seed=2), keyed_rows(types, seed=3)
    table.put(before)
    assert exact(table.lookup(before)) == exact(before)
    table.put(after[:20])
    table.put(after[20:30], delete=True)
    expected = [*after[:20], *([None] * 10), *before[30:]]
    assert exact(table.lookup(before)) == exact(expected)

    state, changes = {}, []
    for bucket in range(BUCKETS):
        for batch in iter_log_batches(table.fetch(bucket).records, verify_crc=True):
            rows = rows_of(batch.record_batch(table.layout), types)
            for change, row in zip(batch.change_types().tolist(), rows, strict=True):
                changes.append(change)
                if change in (1, 3):
                    state[row[:2]] = row
                elif change == 4:
                    assert exact(state.pop(row[:2])) == exact(row)
    assert by_key(state.values()) == by_key(each for each in expected if each is not None)
    assert [changes.count(each) for each in range(5)] == [0, ROWS, 20, 20, 10]


def test_prefix_lookups_find_all_rows_of_a_bucket_key(client, database):
    table = KeyedTable(client, database, "prefixed")
    rows = [(7, f"tag {i}", *row[2:]) for i, row in enumerate(rows_for(table.layout.types, seed=4))]
    others = [(8, *row[1:]) for row in rows[:5]]
    table.put(rows + others)
    (bucket,) = set(table.buckets_of(rows))
    prefix = table.keys_of(rows[:1], columns=1)[0]
    request = pb.PrefixLookupRequest(table_id=table.id)
    request.buckets_req.add(bucket_id=bucket, keys=[prefix, b"\x63"])
    (answer,) = client.call(request, to=table.leader).buckets_resp
    found, nothing = answer.value_lists
    assert len(nothing.values) == 0
    decoded = table.decoded(frames_of_values(list(found.values)))
    assert by_key(decoded) == by_key(rows)


def test_a_limit_scan_gives_the_first_rows_in_the_order_of_their_keys(client, database):
    table = KeyedTable(client, database, "scanned")
    rows = keyed_rows(table.layout.types, seed=5)
    table.put(rows)
    found = []
    for bucket in range(BUCKETS):
        request = pb.LimitScanRequest(table_id=table.id, bucket_id=bucket, limit=1000)
        answer = client.call(request, to=table.leader)
        scanned = table.decoded(read_value_batch(answer.records))
        keys: RowBytes = table.keys_of(scanned)
        encoded = [keys[index] for index in range(len(keys))]
        assert encoded == sorted(encoded)
        found += scanned
    assert by_key(found) == by_key(rows)


def test_a_schema_with_two_fields_of_one_id_is_refused_by_the_server(client, database):
    nested = RowType((DataField("x", DataTypes.int(), field_id=0),))
    descriptor = TableDescriptor(schema_of([nested]), bucket_count=1)
    text = descriptor.to_json().replace('"id":1', '"id":0')
    assert text != descriptor.to_json()
    path = pb.PbTablePath(database_name=database, table_name=TablePath("d", "t").table_name)
    request = pb.CreateTableRequest(
        table_path=path, table_json=text.encode(), ignore_if_exists=False
    )
    with pytest.raises(RefusedError) as refused:
        client.call(request, to=COORDINATOR)
    assert refused.value.code == 15
