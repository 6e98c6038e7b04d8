"""Writing, in both dialects: every documented way, its former names, its errors."""

import asyncio
import gc
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fluss.errors import (
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from tests.support.servers.dialects import settle

COLUMNS = {"id": pa.int32(), "name": pa.string(), "score": pa.float64()}
SCHEMA = pa.schema(list(COLUMNS.items()))


async def lookup(table, number):
    return await table.new_lookup().lookup([number])


async def test_rows_are_appended_as_dict_list_tuple_batch_table_and_frame(dialect):
    table = await dialect.table(COLUMNS)
    writer = table.new_append().create_writer()
    writer.append({"id": 0, "name": "dict", "score": 0.5})
    writer.append([1, "list", 1.5])
    writer.append((2, "tuple", 2.5))
    columns = {"id": [3], "name": ["batch"], "score": [3.5]}
    handle = writer.write_arrow_batch(pa.RecordBatch.from_pydict(columns, schema=SCHEMA))
    assert isinstance(handle, dialect.fluss.WriteResultHandle)
    columns = {"id": [4], "name": ["table"], "score": [4.5]}
    assert writer.write_arrow(pa.Table.from_pydict(columns, schema=SCHEMA)) is None
    assert (
        writer.write_pandas(pd.DataFrame({"id": [5], "name": ["pandas"], "score": [5.5]})) is None
    )
    await writer.append_arrow_batch(
        pa.RecordBatch.from_pydict({"id": [6], "name": ["e"], "score": [6.5]}, schema=SCHEMA)
    ).wait()
    await writer.flush()
    found = await dialect.rows(table.new_scan())
    assert [row["id"] for row in found] == list(range(7))
    assert [row["name"] for row in found] == [
        "dict",
        "list",
        "tuple",
        "batch",
        "table",
        "pandas",
        "e",
    ]


async def test_a_float_column_takes_the_nearest_number_at_every_door(dialect):
    """`89.3` has 64 bits in Python and in frames; what would become infinite is refused."""
    table = await dialect.table({"f": pa.float32()})
    writer = table.new_append().create_writer()
    columns = {"f": [89.3]}
    writer.append({"f": 89.3})
    writer.append((Decimal("89.3"),))
    writer.write_arrow(pa.table(columns))
    writer.write_arrow_batch(pa.RecordBatch.from_pydict(columns))
    writer.write_pandas(pd.DataFrame(columns))
    large = {"f": [1e39]}
    for write, value in (
        (writer.append, {"f": 1e39}),
        (writer.write_arrow, pa.table(large)),
        (writer.write_pandas, pd.DataFrame(large)),
    ):
        with pytest.raises(InvalidValueError):
            write(value)
    await writer.flush()
    found = await dialect.rows(table.new_scan())
    assert [row["f"] for row in found] == [float(np.float32(89.3))] * 5


async def test_a_handle_may_be_ignored_or_waited_for(dialect):
    table = await dialect.table(COLUMNS)
    writer = await table.new_append_writer()
    handle = writer.append([1, "x", 1.0])
    assert repr(handle) == "WriteResultHandle(pending)"
    assert await handle.wait() == ()
    assert await handle.wait() == (), "it may be asked again"
    assert repr(handle) == "WriteResultHandle(done)"
    writer.append([2, "ignored", 2.0])
    gc.collect()
    await writer.flush()
    assert len(await dialect.rows(table.new_scan())) == 2


async def test_a_handle_may_be_awaited_itself(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    writer = table.new_upsert().create_writer()
    assert await writer.upsert([1, "x", 1.0]) == ()
    handles = [writer.upsert([number, "x", 1.0]) for number in range(2, 5)]
    assert await asyncio.gather(*handles, handles[0]) == [()] * 4
    await writer.delete([1])
    row = pa.RecordBatch.from_pydict({"id": [5], "name": ["e"], "score": [6.5]}, schema=SCHEMA)
    await writer.write_arrow_batch(row)
    assert [await lookup(table, number) is not None for number in (1, 2, 5)] == [False, True, True]


async def test_whole_rows_are_not_written_where_the_server_counts_a_column_up(dialect):
    columns = {"id": pa.int64(), "number": pa.int64(), "name": pa.string()}
    schema = dialect.fluss.Schema(pa.schema(list(columns.items())), ["id"], "number")
    path = dialect.path()
    await dialect.admin.create_table(path, dialect.fluss.TableDescriptor(schema, bucket_count=1))
    table = await dialect.connection.get_table(path)
    for make in (
        table.new_upsert().create_writer,
        table.new_upsert().partial_update(None).create_writer,
        lambda: table.new_upsert().upsert({"id": 1, "name": "x"}),
    ):
        with pytest.raises(SchemaMismatchError, match="auto-increment column 'number'") as caught:
            make()
        assert caught.value.error_code == -2
        assert "table.new_upsert(columns=['id', 'name'])" in caught.value.hint
    writer = table.new_upsert(columns=["id", "name"]).create_writer()
    await writer.upsert({"id": 1, "name": "x"})
    number = (await lookup(table, 1))["number"]
    await writer.delete([1])  # of the columns that it writes, as with Java's client
    assert await lookup(table, 1) == {"id": 1, "number": number, "name": None}


async def test_an_acknowledgement_is_not_held_back_by_the_linger(dialect):
    config = dialect.connection.config()
    config.writer_batch_timeout_ms = 600_000
    connection = await dialect.fluss.FlussConnection.create(config)
    table = await dialect.table(COLUMNS)
    writer = (await connection.get_table(table.get_table_path())).new_append().create_writer()
    await writer.append([0, "x", 0.0]).wait()
    began = time.monotonic()
    await writer.append([1, "x", 1.0]).wait()
    writer.append([2, "x", 2.0])
    await writer.flush()
    assert time.monotonic() - began < 60
    await settle(connection.close())


async def test_rows_need_no_event_loop_to_be_taken(dialect):
    table = await dialect.table(COLUMNS)
    writer = table.new_append().create_writer()
    await asyncio.to_thread(writer.append, [1, "x", 1.0])
    await writer.flush()
    assert len(await dialect.rows(table.new_scan())) == 1


async def test_async_with_flushes_unless_there_was_an_error(dialect):
    table = await dialect.table(COLUMNS)
    async with table.new_append().create_writer() as writer:
        writer.append([1, "x", 1.0])
    assert len(await dialect.rows(table.new_scan())) == 1
    keyed = await dialect.table(COLUMNS, primary_keys=["id"])
    async with keyed.new_upsert().create_writer() as writer:
        writer.upsert([1, "x", 1.0])
    assert await lookup(keyed, 1)
    with pytest.raises(ZeroDivisionError):
        async with table.new_append().create_writer():
            raise ZeroDivisionError


async def test_rows_are_upserted_and_deleted(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    writer = table.new_upsert().create_writer()
    writer.upsert({"id": 1, "name": "a", "score": 1.0})
    writer.upsert([1, "b", 2.0])
    writer.upsert((2, "c", 3.0))
    await writer.flush()
    assert await lookup(table, 1) == {"id": 1, "name": "b", "score": 2.0}
    for key in ({"id": 1}, [2]):
        await writer.delete(key).wait()
    assert await lookup(table, 1) is None
    assert await lookup(table, 2) is None


async def test_the_builder_is_a_writer_as_well(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    writer = table.new_upsert()
    writer.upsert({"id": 1, "name": "a", "score": 1.0})
    await writer.flush()
    handle = writer.upsert({"id": 2, "name": "b", "score": 2.0})
    await handle.wait()
    assert await lookup(table, 1)
    await writer.delete({"id": 2}).wait()
    assert await lookup(table, 2) is None


async def test_a_partial_update_keeps_the_other_columns_in_every_spelling(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    await table.new_upsert().upsert([1, "kept", 0.0]).wait()
    builders = [
        table.new_upsert(columns=["id", "score"]),
        table.new_upsert().partial_update_by_name(["id", "score"]),
        table.new_upsert().partial_update_by_index([0, 2]),
        table.new_upsert().partial_update_with_column_names(["id", "score"]),
        table.new_upsert().partial_update([0, 2]),
    ]
    for number, builder in enumerate(builders, start=1):
        await builder.create_writer().upsert({"id": 1, "score": float(number)}).wait()
        assert await lookup(table, 1) == {"id": 1, "name": "kept", "score": float(number)}
    await builders[0].upsert([1, 99.0]).wait()
    assert await lookup(table, 1) == {"id": 1, "name": "kept", "score": 99.0}
    await table.new_upsert().partial_update(None).create_writer().upsert([1, "new", 1.0]).wait()
    assert (await lookup(table, 1))["name"] == "new"


async def test_frames_are_upserted_and_deleted(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    writer = table.new_upsert().create_writer()
    several = pa.Table.from_pydict(
        {"id": [1, 2, 3, 4], "name": list("abcd"), "score": [1.0] * 4}, schema=SCHEMA
    )
    assert writer.write_arrow(several) is None
    await writer.write_arrow_batch(several.to_batches()[0]).wait()
    writer.write_pandas(pd.DataFrame({"id": [5], "name": ["e"], "score": [1.0]}))
    await writer.flush()
    assert (await lookup(table, 5))["name"] == "e"
    writer.delete_arrow(several.slice(0, 1))
    writer.delete_arrow_batch(several.slice(1, 1).select(["id"]).to_batches()[0])
    writer.delete_pandas(pd.DataFrame({"id": [3]}))
    await writer.flush()
    assert [await lookup(table, each) is not None for each in range(1, 6)] == [False] * 3 + [
        True
    ] * 2


async def test_safe_casts_are_made_and_others_refused_with_row_and_column(dialect):
    table = await dialect.table(COLUMNS)
    writer = table.new_append().create_writer()
    writer.write_pandas(pd.DataFrame({"name": ["x"], "score": [1], "id": [7]}))  # int64, reordered
    await writer.flush()
    assert await dialect.rows(table.new_scan()) == [{"id": 7, "name": "x", "score": 1.0}]
    with pytest.raises(InvalidValueError) as caught:
        writer.write_pandas(pd.DataFrame({"id": [1, 2**40], "name": ["x"] * 2, "score": [1.0] * 2}))
    assert (caught.value.column, caught.value.row) == ("id", 1)
    with pytest.raises(SchemaMismatchError) as caught:
        writer.write_arrow(pa.table({"id": [1], "nmae": ["x"], "score": [1.0]}))
    assert "nmae" in str(caught.value) or "name" in str(caught.value)
    await writer.flush()
    assert len(await dialect.rows(table.new_scan())) == 1, "nothing of what was refused was written"


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"id": "1"}, "id"),
        ({"id": 2**31}, "id"),
        ({"name": 5}, "name"),
        ({"score": "high"}, "score"),
        ({"nmae": "x"}, "nmae"),
    ],
)
async def test_a_value_of_a_wrong_type_is_refused_with_row_and_column(dialect, row, column):
    table = await dialect.table(COLUMNS)
    writer = table.new_append().create_writer()
    writer.append([0, "fine", 0.0])
    with pytest.raises(InvalidValueError) as caught:
        writer.append(row)
    assert (caught.value.row, caught.value.column) == (1, column)
    await writer.flush()
    assert len(await dialect.rows(table.new_scan())) == 1


@pytest.mark.parametrize("row", [[1], [1, "x", 1.0, 2], "abc", 5, None, {1, 2}])
async def test_what_is_no_row_is_refused(dialect, row):
    table = await dialect.table(COLUMNS)
    with pytest.raises(InvalidValueError):
        table.new_append().create_writer().append(row)


async def test_a_delete_without_the_key_is_refused(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    for key in ({"name": "x"}, {}, [], None, {"id": None}):
        with pytest.raises(FlussError):
            table.new_upsert().delete(key)


async def test_writers_are_for_their_kind_of_table(dialect):
    log = await dialect.table(COLUMNS)
    keyed = await dialect.table(COLUMNS, primary_keys=["id"])
    with pytest.raises(UnsupportedOperationError) as caught:
        keyed.new_append().create_writer()
    assert "new_upsert" in caught.value.hint
    with pytest.raises(UnsupportedOperationError) as caught:
        log.new_upsert().create_writer()
    assert "new_append" in caught.value.hint
    with pytest.raises(UnsupportedOperationError):
        await keyed.new_append_writer()


async def test_a_partial_update_without_the_key_or_of_unknown_columns_is_refused(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    with pytest.raises(SchemaMismatchError, match="primary key"):
        table.new_upsert().partial_update_by_name(["name"]).create_writer()
    with pytest.raises(InvalidSchemaError) as caught:
        table.new_upsert(columns=["id", "nmae"])
    assert caught.value.hint == "did you mean 'name'?"
    with pytest.raises(SchemaMismatchError):
        table.new_upsert().partial_update_by_index([0, 3])


async def test_what_is_no_frame_is_refused(dialect):
    writer = (await dialect.table(COLUMNS)).new_append().create_writer()
    for write, wrong in (
        (writer.write_pandas, {"id": [1]}),
        (writer.write_arrow, {"id": [1]}),
        (writer.write_arrow_batch, [1]),
    ):
        with pytest.raises(InvalidValueError):
            write(wrong)


async def test_a_row_goes_to_the_partition_of_its_own_values(dialect):
    table = await dialect.table({"id": pa.int32(), "r": pa.string()}, partition_keys=["r"])
    path = table.get_table_path()
    for value in ("A", "B"):
        await dialect.admin.create_partition(path, {"r": value}, ignore_if_exists=True)
    writer = table.new_append().create_writer()
    writer.write_arrow(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "r": ["A", "B", "A"]}))
    await writer.flush()
    for info in await dialect.admin.list_partition_infos(path):
        found = await dialect.admin.list_partition_offsets(path, info.partition_name, [0], "latest")
        assert found == {0: 2 if info.partition_name == "A" else 1}


async def test_writers_show_their_table(dialect):
    table = await dialect.table(COLUMNS, primary_keys=["id"])
    log = await dialect.table(COLUMNS)
    for shown in (
        table.new_upsert(),
        table.new_upsert().create_writer(),
        log.new_append(),
        log.new_append().create_writer(),
        table.new_lookup(),
        table.new_scan(),
    ):
        assert dialect.database in repr(shown)
