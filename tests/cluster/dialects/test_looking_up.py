"""Looking rows up, in both dialects."""

import asyncio

import pyarrow as pa
import pytest

from fluss.errors import ClosedError, FlussError, InvalidSchemaError, InvalidValueError
from tests.support.servers.dialects import settle

COLUMNS = {"id": pa.int32(), "name": pa.string(), "age": pa.int64()}


async def test_a_row_is_found_by_its_key_in_every_form(dialect):
    table = await dialect.filled(COLUMNS, [[1, "Alice", 25], [2, None, None]], primary_keys=["id"])
    lookuper = table.new_lookup().create_lookuper()
    for key in ({"id": 1}, [1], (1,)):
        assert await lookuper.lookup(key) == {"id": 1, "name": "Alice", "age": 25}
    assert await lookuper.lookup({"id": 2}) == {"id": 2, "name": None, "age": None}
    assert await lookuper.lookup({"id": 3}) is None


async def test_the_builder_is_a_lookuper_as_well(dialect):
    table = await dialect.filled(COLUMNS, [[1, "Alice", 25]], primary_keys=["id"])
    lookuper = table.new_lookup()
    found = await lookuper.lookup({"id": 1})
    assert found["name"] == "Alice"
    assert await lookuper.lookup({"id": 2}) is None


async def test_what_was_acknowledged_is_found(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"], bucket_count=3)
    writer = table.new_upsert().create_writer()
    lookuper = table.new_lookup().create_lookuper()
    for number in (0, 127, 128, -1, 2**31 - 1, -(2**31)):
        await writer.upsert({"id": number, "name": "x", "age": number}).wait()
        assert (await lookuper.lookup([number]))["age"] == number
        await writer.delete({"id": number}).wait()
        assert await lookuper.lookup([number]) is None


async def test_a_key_of_several_columns_in_partitions(dialect):
    table = await dialect.table(
        {"user": pa.int32(), "region": pa.string(), "score": pa.int64()},
        primary_keys=["user", "region"],
        partition_keys=["region"],
    )
    await dialect.admin.create_partition(table.get_table_path(), {"region": "US"})
    await table.new_upsert().upsert({"user": 1, "region": "US", "score": 9}).wait()
    lookuper = table.new_lookup().create_lookuper()
    assert (await lookuper.lookup({"user": 1, "region": "US"}))["score"] == 9
    assert (await lookuper.lookup([1, "US"]))["score"] == 9
    assert await lookuper.lookup({"user": 2, "region": "US"}) is None
    assert await lookuper.lookup({"user": 1, "region": "nowhere"}) is None


async def test_rows_are_found_by_the_beginning_of_their_keys(dialect):
    table = await dialect.filled(
        {"a": pa.int32(), "b": pa.string(), "c": pa.int64()},
        [[1, "x", 1], [1, "y", 2], [2, "x", 3]],
        primary_keys=["a", "b"],
        bucket_keys=["a"],
        bucket_count=3,
    )
    lookuper = table.new_lookup().lookup_by(["a"]).create_lookuper()
    for prefix in ({"a": 1}, [1], (1,)):
        assert [row["c"] for row in await lookuper.lookup(prefix)] == [1, 2]
    assert [row["c"] for row in await lookuper.lookup({"a": 2})] == [3]
    assert await lookuper.lookup({"a": 3}) == []
    with pytest.raises(InvalidSchemaError, match="prefix"):
        table.new_lookup().lookup_by(["b"]).create_lookuper()
    with pytest.raises(InvalidSchemaError) as caught:
        table.new_lookup().lookup_by(["aa"]).create_lookuper()
    assert caught.value.hint == "did you mean 'a'?"


async def test_ten_thousand_concurrent_lookups_are_a_few_requests(dialect):
    count = 10_000
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    writer = table.new_upsert().create_writer()
    for number in range(count):
        writer.upsert([number, "x", number])
    await writer.flush()
    lookuper = table.new_lookup().create_lookuper()
    assert await lookuper.lookup([0])
    before = dialect.connection.counters()["requests"]["LOOKUP"]["sent"]
    found = await asyncio.gather(*[lookuper.lookup([each]) for each in range(count)])
    assert [row["age"] for row in found] == list(range(count))
    # How long that takes is a question for the benchmarks.
    assert dialect.connection.counters()["requests"]["LOOKUP"]["sent"] - before < 50


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({}, "lacks 'id'"),
        ({"i": 1}, "lacks 'id'"),
        ({"id": 1, "name": "x"}, "does not have 'name'"),
        ({"id": None}, "was given no value"),
        ({"id": "1"}, "does not take '1'"),
        ({"id": 2**31}, "does not take"),
        ([], "1 values"),
        ([1, 2], "1 values"),
        ("1", "dict, list or tuple"),
        (5, "dict, list or tuple"),
    ],
)
async def test_a_key_that_does_not_fit_is_refused_with_its_column(dialect, key, message):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    with pytest.raises(InvalidValueError, match=message):
        await table.new_lookup().lookup(key)


async def test_one_wrong_key_among_many_concerns_no_other(dialect):
    table = await dialect.filled(COLUMNS, [[1, "x", 1]], primary_keys=["id"])
    lookuper = table.new_lookup().create_lookuper()
    keys = ({"id": 1}, {"id": "1"}, {"id": 2})
    found = await asyncio.gather(*map(lookuper.lookup, keys), return_exceptions=True)
    assert found[0]["name"] == "x"
    assert isinstance(found[1], InvalidValueError)
    assert found[2] is None


async def test_a_log_table_has_nothing_to_look_up(dialect):
    table = await dialect.table(COLUMNS)
    with pytest.raises(FlussError, match="no primary key") as caught:
        table.new_lookup()
    assert caught.value.hint
    assert caught.value.error_code == dialect.fluss.ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION


async def test_lookups_of_a_closed_connection_fail(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    other = await dialect.fluss.FlussConnection.create(dialect.connection.config())
    lookuper = (await other.get_table(table.get_table_path())).new_lookup().create_lookuper()
    assert await lookuper.lookup([1]) is None
    await settle(other.close())
    with pytest.raises(ClosedError):
        await lookuper.lookup([1])


async def test_a_lookup_needs_a_running_loop(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    lookuper = table.new_lookup().create_lookuper()
    with pytest.raises(RuntimeError, match="no running event loop"):
        await asyncio.to_thread(lookuper.lookup, [1])
