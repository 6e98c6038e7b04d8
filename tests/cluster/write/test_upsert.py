"""Writing to primary-key tables of a real cluster: by row and by frame, whole and in part."""

import pyarrow as pa
import pytest

from fluss.errors import (
    InvalidValueError,
    LimitExceededError,
    PartitionNotFoundError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from fluss.lookup.key_placement import KeyPlacer
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes
from fluss.wire import messages as pb
from tests.support.servers.write_harness import wait

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("age", pa.int32())])
INSERT, BEFORE, AFTER, DELETE = 1, 2, 3, 4

# Every test runs with the function in Python, and with the one in C before it.
pytestmark = pytest.mark.usefixtures("row_functions")


def row(number, **changes):
    return {"id": number, "name": f"name {number}", "age": number % 90} | changes


@pytest.mark.parametrize("kv_format", ["COMPACTED", "INDEXED"])
def test_rows_are_inserted_replaced_and_deleted_by_key(harness, kv_format):
    table = harness.table(SCHEMA, primary_keys=["id"], kv_format=kv_format)
    core = harness.upserter(table)
    core.upsert(row(1))
    core.upsert([2, "two", None])
    core.upsert((1, "changed", 7))
    core.delete({"id": 2})
    core.upsert(row(3))
    core.delete([3])
    harness.flush(core)
    assert harness.state(table) == {(1,): {"id": 1, "name": "changed", "age": 7}}
    kinds = [kind for kind, _ in harness.changes(table)]
    assert kinds == [INSERT, INSERT, BEFORE, AFTER, DELETE, INSERT, DELETE]


def test_the_outcome_names_the_end_of_the_changelog(harness):
    core = harness.upserter(harness.table(SCHEMA, primary_keys=["id"]))
    (first,) = wait(core.upsert(row(1)))
    (second,) = wait(core.upsert(row(1)))
    assert (first.offset, second.offset) == (1, 3)


def test_rows_land_where_lookups_look_for_them(harness):
    table = harness.table(SCHEMA, primary_keys=["id"], bucket_count=7)
    core = harness.upserter(table)
    numbers = [-300, -1, 0, 1, 127, 128, 255, 256, 2**31, 2**40, -(2**40), *range(1_000, 1_100)]
    for number in numbers:
        core.upsert({"id": number, "name": "x", "age": 1})
    harness.flush(core)
    placer = KeyPlacer(table, table.primary_keys, is_prefix=False)
    places: dict[int, list[bytes]] = {}
    for number in numbers:
        placed = placer.place([number])
        bucket = placer.bucket(placed.bucket_key, table.num_buckets)
        places.setdefault(bucket, []).append(placed.key)
    leader = harness.raw.leader(table.table_path.database_name, table.table_path.table_name)
    request = pb.LookupRequest(table_id=table.table_id)
    for bucket, keys in places.items():
        request.buckets_req.add(bucket_id=bucket, keys=keys)
    answer = harness.raw.call(request, to=leader)
    found = [value for each in answer.buckets_resp for value in each.values]
    assert len(found) == len(numbers)
    assert all(each.HasField("values") for each in found)


def test_keys_may_have_several_columns_in_any_place(harness):
    schema = pa.schema([("v", pa.float64()), ("b", pa.string()), ("a", pa.int16())])
    table = harness.table(schema, primary_keys=["a", "b"], bucket_keys=["b"], bucket_count=3)
    core = harness.upserter(table)
    for number in range(30):
        core.upsert({"a": number, "b": f"k{number % 5}", "v": float(number)})
    core.delete([3, "k3"])
    core.delete({"b": "k4", "a": 4})
    harness.flush(core)
    assert sorted(a for a, _ in harness.state(table)) == [
        each for each in range(30) if each not in (3, 4)
    ]


# --- frames --------------------------------------------------------------------------------------


def test_frames_are_upserted_and_deleted_in_the_order_of_the_calls(harness):
    table = harness.table(SCHEMA, primary_keys=["id"], bucket_count=3)
    core = harness.upserter(table)
    rows = [row(each) for each in range(3_000)]
    frame = pa.Table.from_pylist(rows, schema=SCHEMA)
    written = wait(core.upsert_arrow(frame))
    assert sum(each.row_count for each in written) == 3_000
    core.upsert(row(5, name="by row"))
    core.upsert_arrow(pa.Table.from_pylist([row(6, name="by frame")], schema=SCHEMA))
    core.delete_arrow(frame.slice(10))
    core.upsert(row(20))
    harness.flush(core)
    expected = {(each["id"],): each for each in rows[:10]} | {(20,): row(20)}
    expected[(5,)] = row(5, name="by row")
    expected[(6,)] = row(6, name="by frame")
    assert harness.state(table) == expected
    assert core.rows_taken == 3_000 + 1 + 1 + 2_990 + 1


def test_deletes_need_the_key_columns_only(harness):
    table = harness.table(SCHEMA, primary_keys=["id"])
    core = harness.upserter(table)
    core.upsert_arrow(pa.Table.from_pylist([row(1), row(2), row(3)], schema=SCHEMA))
    core.delete_arrow(pa.table({"id": pa.array([1], pa.int32())}))
    core.delete(row(2))
    harness.flush(core)
    assert list(harness.state(table)) == [(3,)]


def test_large_frames_become_several_batches(harness):
    table = harness.table(SCHEMA, primary_keys=["id"])
    pool = harness.pool(batch_bytes_max=50_000)
    core = harness.upserter(table, pool=pool)
    rows = [row(each, name="x" * 100) for each in range(5_000)]
    written = wait(core.upsert_arrow(pa.Table.from_pylist(rows, schema=SCHEMA)))
    assert len(written) > 8
    assert len(harness.state(table)) == 5_000


# --- what is refused -----------------------------------------------------------------------------


def test_what_is_no_key_is_refused(harness):
    core = harness.upserter(harness.table(SCHEMA, primary_keys=["id"]))
    for bad in ({}, {"name": "x"}, {"idd": 1}, [], [1, 2], {"id": None}, {"id": "one"}, 7, "x"):
        with pytest.raises(InvalidValueError):
            core.delete(bad)
    with pytest.raises(InvalidValueError) as caught:
        core.upsert({"name": "without a key"})
    assert caught.value.column == "id"
    with pytest.raises(SchemaMismatchError):
        core.delete_arrow(pa.table({"name": ["x"]}))
    harness.flush(core)
    assert core.rows_taken == 0


def test_deletes_that_the_table_forbids_are_refused_here(harness):
    table = harness.table(
        SCHEMA, primary_keys=["id"], properties={"table.delete.behavior": "disable"}
    )
    core = harness.upserter(table)
    wait(core.upsert(row(1)))
    with pytest.raises(UnsupportedOperationError, match="does not allow deletes"):
        core.delete([1])
    with pytest.raises(UnsupportedOperationError):
        core.delete_arrow(pa.table({"id": [1]}))
    assert list(harness.state(table)) == [(1,)]


def test_a_log_table_is_not_upserted_to(harness):
    with pytest.raises(UnsupportedOperationError, match="no primary key"):
        harness.upserter(harness.table(SCHEMA))


def test_a_row_that_no_request_can_hold_is_refused_with_both_numbers(harness):
    pool = harness.pool(request_bytes_max=10_000, batch_bytes_max=10_000)
    core = harness.upserter(harness.table(SCHEMA, primary_keys=["id"]), pool=pool)
    with pytest.raises(LimitExceededError) as caught:
        core.upsert(row(1, name="x" * 20_000))
    assert caught.value.limit == 10_000
    assert caught.value.size > 20_000


# --- in part -------------------------------------------------------------------------------------


def test_a_partial_update_leaves_the_other_columns(harness):
    table = harness.table(SCHEMA, primary_keys=["id"])
    pool = harness.pool()
    whole = harness.upserter(table, pool=pool)
    names = harness.upserter(table, pool=pool, target_columns=[0, 1])
    wait(whole.upsert(row(1)))
    wait(names.upsert({"id": 1, "name": "new"}))
    wait(names.upsert([2, "two"]))
    wait(names.upsert_arrow(pa.table({"name": ["three"], "id": [3]})))
    with pytest.raises(InvalidValueError, match="age"):
        names.upsert({"id": 1, "age": 5})
    assert harness.state(table) == {
        (1,): {"id": 1, "name": "new", "age": 1},
        (2,): {"id": 2, "name": "two", "age": None},
        (3,): {"id": 3, "name": "three", "age": None},
    }
    wait(names.delete([1]))
    assert harness.state(table)[1,] == {"id": 1, "name": None, "age": 1}


def test_columns_that_cannot_be_written_in_part_are_refused(harness):
    strict = SCHEMA.set(2, pa.field("age", pa.int32(), nullable=False))
    table = harness.table(strict, primary_keys=["id"])
    with pytest.raises(SchemaMismatchError, match="primary key"):
        harness.upserter(table, target_columns=[1])
    with pytest.raises(SchemaMismatchError, match="NOT NULL"):
        harness.upserter(table, target_columns=[0, 1])
    with pytest.raises(SchemaMismatchError, match="positions"):
        harness.upserter(table, target_columns=[0, 9])


def test_an_auto_increment_column_is_left_to_the_server(harness):
    schema = pa.schema([("key", pa.string()), ("number", pa.int64()), ("v", pa.int32())])
    table = harness.table(schema, primary_keys=["key"], auto="number")
    core = harness.upserter(table)
    for name in ("a", "b", "c"):
        core.upsert({"key": name, "v": 1})
    core.upsert(["d", 4])
    harness.flush(core)
    numbers = {key: each["number"] for (key,), each in harness.state(table).items()}
    assert sorted(numbers) == ["a", "b", "c", "d"]
    assert len(set(numbers.values())) == 4
    assert None not in numbers.values()
    with pytest.raises(SchemaMismatchError, match="counted up"):
        harness.upserter(table, target_columns=[0, 1])


def test_an_aggregating_table_adds_up_or_is_overwritten(harness):
    schema = (
        Schema.builder()
        .column("id", DataTypes.int())
        .column("total", DataTypes.bigint(), aggregation="sum")
        .primary_key(["id"])
        .build()
    )
    table = harness.table(
        schema.columns, primary_keys=["id"], properties={"table.merge-engine": "aggregation"}
    )
    pool = harness.pool()
    adding = harness.upserter(table, pool=pool)
    for value in (1, 2, 3):
        adding.upsert([1, value])
    harness.flush(adding)
    assert harness.state(table)[1,]["total"] == 6
    overwriting = harness.upserter(table, pool=pool, agg_mode=1)
    wait(overwriting.upsert([1, 100]))
    assert harness.state(table)[1,]["total"] == 100


# --- partitions ----------------------------------------------------------------------


def test_partitions_of_a_primary_key_table_are_created_and_filled(harness):
    schema = pa.schema([("region", pa.string()), ("id", pa.int64()), ("v", pa.string())])
    table = harness.table(schema, primary_keys=["region", "id"], partition_keys=["region"])
    core = harness.upserter(table, pool=harness.pool(creates_partitions=True))
    rows = [{"region": "EU" if each % 2 else "US", "id": each, "v": "x"} for each in range(20)]
    core.upsert_arrow(pa.Table.from_pylist(rows, schema=schema))
    core.delete({"region": "EU", "id": 1})
    harness.flush(core)
    ids = [each["id"] for kind, each in harness.changes(table, partition="EU") if kind == INSERT]
    assert ids == list(range(1, 20, 2))
    assert harness.changes(table, partition="EU")[-1][0] == DELETE
    strict = harness.upserter(table, pool=harness.pool(creates_partitions=False))
    with pytest.raises(PartitionNotFoundError):
        wait(strict.upsert(["MARS", 1, "x"]))
