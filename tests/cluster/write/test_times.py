"""TIME where rows keep milliseconds of it: what is finer is refused, whichever way it comes.

Logs in ARROW format keep every digit, and take them.
"""

from __future__ import annotations

from datetime import time

import pandas as pd
import pyarrow as pa
import pytest

from fluss.errors import InvalidValueError
from fluss.model.predicates.predicate import col
from tests.support.servers.dialects import settle

ROW = pa.struct([("a", pa.int8()), ("at", pa.time64("us"))])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.time64("us")),
        ("each", pa.list_(pa.time64("us"))),
        ("by_name", pa.map_(pa.string(), pa.time64("us"))),
        ("row", ROW),
        ("deep", pa.list_(pa.map_(pa.string(), ROW))),
    ]
)
WHOLE, FINE = time(1, 2, 3, 456_000), time(1, 2, 3, 456_789)
PLACES = {
    "at": lambda each: each,
    "each": lambda each: [None, each],
    "by_name": lambda each: [("k", each)],
    "row": lambda each: {"a": 1, "at": each},
    "deep": lambda each: [[("k", {"a": None, "at": each})], None],
}


def row(number, at=WHOLE, place=None):
    """A row with a time in every place, one of which may be another time."""
    made = {name: put(at if name == place else WHOLE) for name, put in PLACES.items()}
    return {"id": number, **made}


def frame(*rows):
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


WAYS = {
    "row": lambda core, rows: [core.upsert(each) for each in rows],
    "batch": lambda core, rows: core.upsert_arrow(frame(*rows)),
    "table": lambda core, rows: core.upsert_arrow(pa.Table.from_batches([frame(*rows)])),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_table_with_a_key_takes_no_time_that_it_would_cut(harness, way):
    table = harness.table(SCHEMA, primary_keys=["id"])
    core = harness.upserter(table)
    put = WAYS[way]
    for place in PLACES:
        with pytest.raises(InvalidValueError, match="keeps milliseconds of a time") as refused:
            put(core, [row(1), row(2, FINE, place)])
        assert "ow 1" in refused.value.message
        assert "456789" in refused.value.message
        assert "round it" in refused.value.hint
        assert refused.value.facts["row"] == 1
        assert refused.value.facts["column"].split(".")[0].removesuffix("[]") == place
        if way == "row":
            core = harness.upserter(table)  # the row before was taken, so the next is the third
    put(core, [row(3)])
    harness.flush(core)
    kept = harness.state(table)[(3,)]
    assert kept["at"] == WHOLE
    assert kept["deep"] == [[("k", {"a": None, "at": WHOLE})], None]


def test_a_partial_update_takes_none_either(harness):
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("at", pa.time64("ns"))])
    table = harness.table(schema, primary_keys=["id"])
    core = harness.upserter(table, target_columns=[0, 2])
    with pytest.raises(InvalidValueError, match=r"'at' .* keeps milliseconds"):
        core.upsert({"id": 1, "at": FINE})
    fine = pa.array([1_000_001], pa.time64("ns"))
    with pytest.raises(InvalidValueError, match=r"'at' .* keeps milliseconds"):
        core.upsert_arrow(pa.table({"id": [1], "at": fine}))
    core.upsert_arrow(pa.table({"id": [1], "at": pa.array([1_000_000], pa.time64("ns"))}))
    harness.flush(core)
    assert harness.state(table)[(1,)]["at"] == time(0, 0, 0, 1_000)


@pytest.mark.parametrize("columns", [["at"], ["at", "id"]], ids="-".join)
def test_a_key_that_no_row_can_have_is_refused_and_finds_no_other(session, columns):
    # Its bytes would be those of another key, whose row would be deleted, or found.
    schema = pa.schema([("id", pa.int64()), ("at", pa.time64("us"))])
    table = session.create_table("t", schema, primary_key=columns, bucket_key=["at"], buckets=1)
    table.upsert([{"id": 1, "at": WHOLE}])
    keys = [{"id": 1, "at": FINE}]
    with pytest.raises(InvalidValueError, match=r"In row 0: .* 'at' .* keeps milliseconds"):
        table.delete(keys)
    with pytest.raises(InvalidValueError, match=r"In row 0: .* 'at' .* keeps milliseconds"):
        table.lookup(keys)
    if len(columns) > 1:
        with pytest.raises(InvalidValueError, match=r"In row 0: .* 'at' .* keeps milliseconds"):
            table.prefix_lookup(keys)


@pytest.mark.parametrize("columns", [["at"], ["at", "id"]], ids="-".join)
def test_a_filter_by_a_key_that_no_row_can_have_finds_none(session, columns):
    schema = pa.schema([("id", pa.int64()), ("at", pa.time64("us"))])
    table = session.create_table("t", schema, primary_key=columns, bucket_key=["at"], buckets=1)
    table.upsert([{"id": 1, "at": WHOLE}])
    for times, found in (([FINE], []), ([FINE, WHOLE], [WHOLE]), ([WHOLE], [WHOLE])):
        for further in (col("id") == 1, col("id") > 0):
            read = table.scan(filter=col("at").is_in(times) & further).to_arrow()
            assert read.column("at").to_pylist() == found


@pytest.mark.parametrize("log_format", ["ARROW", "INDEXED", "COMPACTED"])
def test_only_logs_in_arrow_format_keep_finer_times(harness, log_format):
    table = harness.table(SCHEMA, log_format=log_format)
    core = harness.appender(table)
    if log_format == "ARROW":
        core.append(row(1, FINE, "deep"))
        core.append_arrow(frame(row(2, FINE, "at")))
        harness.flush(core)
        assert harness.rows(table) == [row(1, FINE, "deep"), row(2, FINE, "at")]
        return
    for place in PLACES:
        with pytest.raises(InvalidValueError, match="keeps milliseconds of a time"):
            core.append(row(1, FINE, place))
        with pytest.raises(InvalidValueError, match="keeps milliseconds of a time"):
            core.append_arrow(frame(row(1), row(2, FINE, place)))
    core.append_arrow(frame(row(3)))
    harness.flush(core)
    assert harness.rows(table) == [row(3)]


def test_a_partition_name_has_the_milliseconds_that_its_rows_keep(session):
    schema = pa.schema([("at", pa.time64("us")), ("x", pa.int64())])
    table = session.create_table("t", schema, partition_by=["at"], buckets=1)
    table.append([{"at": WHOLE, "x": 1}, {"at": FINE, "x": 2}])
    assert len(table.partitions()) == 1
    for chosen in (WHOLE, FINE):
        assert table.scan(filter=col("at") == chosen).to_arrow().column("at").to_pylist() == [
            chosen
        ]
    assert table.scan(filter=col("at") > WHOLE).to_arrow().column("x").to_pylist() == [2]


async def test_the_writers_and_lookupers_of_both_dialects_refuse_them(dialect):
    columns = {"id": pa.int32(), "at": pa.time64("us")}
    table = await dialect.table(columns, primary_keys=["id"])
    writer = table.new_upsert().create_writer()
    schema = pa.schema(list(columns.items()))
    fine = pa.RecordBatch.from_pydict({"id": [1], "at": [FINE]}, schema=schema)
    for write, rows in (
        (writer.upsert, [1, FINE]),
        (writer.write_arrow_batch, fine),
        (writer.write_arrow, pa.Table.from_batches([fine])),
        (writer.write_pandas, pd.DataFrame({"id": [1], "at": [FINE]})),
    ):
        with pytest.raises(InvalidValueError, match="keeps milliseconds of a time"):
            write(rows)
    await writer.flush()
    assert await table.new_lookup().lookup([1]) is None
    keyed = await dialect.filled(columns, [[1, WHOLE]], primary_keys=["at"])
    assert (await keyed.new_lookup().lookup([WHOLE]))["id"] == 1
    with pytest.raises(InvalidValueError, match="keeps milliseconds of a time"):
        await keyed.new_lookup().lookup([FINE])
    keyed_writer = keyed.new_upsert().create_writer()
    for delete, key in (
        (keyed_writer.delete, [FINE]),
        (keyed_writer.delete_arrow_batch, fine.select(["at"])),
    ):
        with pytest.raises(InvalidValueError, match="keeps milliseconds of a time"):
            delete(key)
    await settle(keyed_writer.flush())
