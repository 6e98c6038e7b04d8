"""Frames of keys are placed like single keys, in every kind of table."""

from __future__ import annotations

from collections import deque
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import InvalidValueError, ProtocolError, SchemaMismatchError
from fluss.lookup.bulk_lookup import KEYS_PER_REQUEST_FIRST, _Stretch, _taken
from fluss.lookup.bulk_requests import BucketLeader, BulkLookups, KeyRun
from fluss.lookup.key_frames import KEYS_PER_ROUND_MAX, KeyFrames
from fluss.lookup.key_placement import KeyPlacer, prefix_placer
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.factory import DataTypes

PATH = TablePath("db", "t")


def table_of(columns, primary_key, **facts):
    builder = Schema.builder()
    for name, data_type in columns.items():
        builder.column(name, data_type)
    schema = builder.primary_key(primary_key).build()
    descriptor = TableDescriptor(schema, **{"bucket_count": 7} | facts)
    return TableInfo.of(descriptor, table_path=PATH, table_id=5, schema_id=1)


NUMBERS = table_of({"v": DataTypes.string(), "id": DataTypes.bigint()}, ["id"])
TWO = table_of(
    {"name": DataTypes.string(), "at": DataTypes.timestamp_ltz(3), "v": DataTypes.int()},
    ["at", "name"],
    bucket_keys=["name"],
)
PARTITIONED = table_of(
    {"day": DataTypes.date(), "id": DataTypes.int(), "kind": DataTypes.char(3)},
    ["kind", "day", "id"],
    partition_keys=["day", "kind"],
)
TABLES = {
    "number": NUMBERS,
    "two columns": TWO,
    "partitions": PARTITIONED,
    **{
        f"{lake} {version}": table_of(
            {"id": DataTypes.string()},
            ["id"],
            properties={"table.datalake.format": lake, "table.kv.format-version": version},
        )
        for lake in ("paimon", "iceberg", "lance")
        for version in (1, 2)
    },
}


def some_keys(table, count, seed):
    rng = Random(seed)
    makers = {
        "BIGINT": lambda: rng.choice([0, 127, 128, -1, 2**62]) + rng.randrange(300),
        "INT": lambda: rng.randrange(-(2**31), 2**31),
        "STRING": lambda: "".join(rng.choices("aé_7", k=rng.randrange(1, 12))),
        "CHAR": lambda: "".join(rng.choices("abc_7", k=rng.randrange(1, 4))),
        "DATE": lambda: np.datetime64("2026-01-01", "D").item().replace(day=rng.randrange(1, 5)),
        "TIMESTAMP_LTZ": lambda: pa.scalar(
            rng.randrange(10**12), pa.timestamp("ms", "UTC")
        ).as_py(),
    }
    types = [table.schema.column(each).data_type for each in table.primary_keys]
    roots = [str(each).partition("(")[0].partition(" ")[0] for each in types]
    return [tuple(makers[root]() for root in roots) for _ in range(count)]


def one_placed(placer, key, table):
    placed = placer.place(key)
    bucket_id = placer.bucket(placed.bucket_key, table.num_buckets)
    return placed.path, bucket_id, placed.key


@pytest.mark.parametrize("name", TABLES)
def test_a_frame_is_placed_as_its_keys_are_one_by_one(name):
    table = TABLES[name]
    keys = some_keys(table, 500, name)
    placer = KeyPlacer(table, table.primary_keys, is_prefix=False)
    (placed,) = KeyFrames(table, table.primary_keys, is_prefix=False).rounds(keys)
    assert len(placed) == 500
    seen = []
    for share in placed.shares:
        for place, key in enumerate(placed.keys(share.start, share.stop), share.start):
            given = keys[placed.order[place]]
            assert (share.path, share.bucket_id, key) == one_placed(placer, given, table)
            seen.append(placed.order[place])
    assert sorted(seen) == list(range(500))


def test_prefixes_are_placed_as_single_ones_are():
    table = table_of(
        {"a": DataTypes.string(), "b": DataTypes.int(), "v": DataTypes.int()},
        ["a", "b"],
        bucket_keys=["a"],
    )
    prefixes = ["x", "yy", "é", "zzzz", "x"]
    placer = prefix_placer(table, ["a"])
    (placed,) = KeyFrames(table, ["a"], is_prefix=True).rounds(prefixes)
    for share in placed.shares:
        for place, key in enumerate(placed.keys(share.start, share.stop), share.start):
            given = [prefixes[placed.order[place]]]
            assert (share.path, share.bucket_id, key) == one_placed(placer, given, table)


def test_many_keys_make_rounds_of_bounded_size():
    frames = KeyFrames(NUMBERS, ["id"], is_prefix=False)
    count = KEYS_PER_ROUND_MAX + 5
    keys = pa.table({"id": pa.chunked_array([np.arange(count - 9), np.arange(9)])})
    assert [len(each) for each in frames.rounds(keys)] == [KEYS_PER_ROUND_MAX, 5]
    assert list(frames.rounds([])) == []


def test_keys_that_do_not_fit_are_refused_with_their_place():
    frames = KeyFrames(NUMBERS, ["id"], is_prefix=False)
    with pytest.raises(InvalidValueError) as error:
        next(frames.rounds(pa.table({"id": pa.array([1, 2, None])})))
    assert (error.value.facts["column"], error.value.facts["row"]) == ("id", 2)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaMismatchError, match="twice"):
        next(frames.rounds(twice))


def placed_keys(count):
    (placed,) = KeyFrames(NUMBERS, ["id"], is_prefix=False).rounds(np.arange(count))
    return placed


def leader(bucket_id):
    bucket = TableBucket(5, bucket_id)
    return BucketLeader(path=PhysicalTablePath(PATH), bucket=bucket, server_id=1, bucket_count=4)


def test_a_request_has_as_many_keys_as_fit_it():
    placed = placed_keys(3_000)
    stretches = deque(
        _Stretch(leader=leader(each.bucket_id), start=each.start, stop=each.stop)
        for each in placed.shares
    )
    taken = []
    while stretches:
        request = _taken(stretches, placed, KEYS_PER_REQUEST_FIRST)
        taken.append(sum(each.stop - each.start for each in request))
    assert taken == [1_024, 1_024, 952]


def test_a_key_larger_than_a_request_travels_alone(monkeypatch):
    monkeypatch.setattr("fluss.lookup.bulk_lookup.REQUEST_BYTES_MAX", 1)
    placed = placed_keys(130)
    stretches = deque([_Stretch(leader=leader(0), start=126, stop=130)])
    sizes = []
    while stretches:
        (only,) = _taken(stretches, placed, 100)
        sizes.append(only.stop - only.start)
    assert sizes == [1, 1, 1, 1]


def test_an_answer_that_leaves_keys_out_is_refused():
    from fluss.wire.zero_copy.lookup_values import LOOKUP_RESPONSE, LookedUpBucket, LookupResponse

    bulk = BulkLookups(None, NUMBERS, is_prefix=False)
    run = KeyRun(leader=leader(3), keys=(b"a", b"b"))
    answers = LookupResponse(buckets_resp=(LookedUpBucket(bucket_id=3, values=(b"only one",)),))
    answer = memoryview(b"".join(LOOKUP_RESPONSE.write(answers)))
    (found,) = bulk.answers(answer, [run])
    assert isinstance(found, ProtocolError)
    (found,) = bulk.answers(memoryview(b""), [run])
    assert isinstance(found, ProtocolError)
    assert found.facts["bucket"] == 3
