"""Whole frames written to a cluster, and read by lookups and from the log."""

from collections import Counter
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fluss.admin.admin import admin_of
from fluss.errors import (
    FlussError,
    InvalidNameError,
    InvalidSchemaError,
    InvalidValueError,
    PartitionNotFoundError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from fluss.lookup.frame_lookups import lookup_frame
from fluss.model.offsets import OffsetSpec
from fluss.model.paths import TableBucket
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.schema import Schema
from fluss.model.tables.changes import TableChange
from fluss.model.tables.partitions import PartitionSpec
from fluss.model.types.factory import DataTypes
from fluss.write import frame_checks, wire_rows, writer_cores
from fluss.write.frame_writer import write_frame
from fluss.write.row_function import RowReader
from fluss.write.table_from_frame import schema_of_frame
from tests.support.servers.frame_harness import FrameHarness

ROWS = pa.table(
    {
        "id": pa.array(range(1_000), pa.int64()),
        "name": [f"name {each}" for each in range(1_000)],
        "age": pa.array([each % 90 for each in range(1_000)], pa.int32()),
    }
)


@pytest.fixture
def frames(cluster, database):
    harness = FrameHarness(cluster.bootstrap, database)
    yield harness
    harness.close()


def ends(frames, table, partition=None):
    """The end of each bucket's log, as the cluster reports it."""
    admin, info = admin_of(frames.connection), table.info
    buckets = range(info.num_buckets)
    if partition is None:
        work = admin.list_offsets(info.table_path, buckets, OffsetSpec.latest())
    else:
        work = admin.list_partition_offsets(
            info.table_path, partition, buckets, OffsetSpec.latest()
        )
    return frames.engine.run(work)


def test_a_report_has_the_last_offsets_of_a_log(frames):
    table = frames.table(ROWS, bucket_key=["id"])
    first = write_frame(table, ROWS, mode="append")
    assert (first.rows, first.counts) == (1_000, {"append": 1_000})
    found = {bucket.bucket_id: offset for bucket, offset in first.next_offsets.items()}
    assert found == ends(frames, table)
    assert sum(found.values()) == 1_000
    second = write_frame(table, ROWS.slice(0, 1), mode="append")
    ((bucket, last),) = second.last_offsets.items()
    assert last == first.last_offsets[bucket] + 1
    assert bucket.table_id == table.info.table_id


def test_a_report_has_the_last_offsets_of_a_changelog(frames):
    table = frames.table(ROWS, primary_key="id")
    write_frame(table, ROWS, mode="upsert")
    report = write_frame(table, ROWS, mode="upsert")
    found = {bucket.bucket_id: offset for bucket, offset in report.next_offsets.items()}
    assert found == ends(frames, table)
    assert sum(found.values()) == 3_000  # inserted, then replaced: before and after


def test_rows_of_many_partitions_and_buckets_are_found_where_they_belong(frames):
    rng = np.random.default_rng(3)
    count = 5_000
    rows = pa.table(
        {
            "v": rng.normal(size=count),
            "day": pa.array([date(2026, 1, 1 + each % 5) for each in range(count)]),
            "id": rng.permutation(count) - 2_000,
        }
    )
    table = frames.table(rows, primary_key=["id", "day"], partition_by=["day"], buckets=4)
    report = write_frame(table, rows, mode="upsert")
    assert len(report.last_offsets) == 20
    assert sum(report.next_offsets.values()) == count
    found = lookup_frame(table, rows)
    assert found.drop_columns(["_found"]).to_pylist() == rows.to_pylist()
    assert found["_found"].to_pylist() == [True] * count


FORMS = {
    "arrow": lambda: ROWS,
    "batch": lambda: ROWS.combine_chunks().to_batches()[0],
    "stream": lambda: ROWS.to_reader(max_chunksize=7),
    "batches": lambda: iter(ROWS.to_batches(max_chunksize=100)),
    "pandas": ROWS.to_pandas,
    "polars": lambda: pl.from_arrow(ROWS),
    "lazy": lambda: pl.from_arrow(ROWS).lazy(),
    "dicts": ROWS.to_pylist,
    "tuples": lambda: [tuple(each.values()) for each in ROWS.to_pylist()],
    "columns": ROWS.to_pydict,
    "other order": lambda: ROWS.select(["age", "id", "name"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_taken_in_any_form(frames, form):
    table = frames.table(ROWS, primary_key=["id"])
    report = write_frame(table, FORMS[form](), mode="upsert")
    assert report.rows == 1_000
    found = lookup_frame(table, ROWS.select(["id"]))
    assert found.drop_columns(["_found"]).to_pylist() == ROWS.to_pylist()


def test_a_table_is_made_of_rows_and_takes_them(frames):
    rows = [
        {"id": 1, "tags": ["a", "b"], "price": Decimal("1.25"), "day": date(2026, 1, 1)},
        {"id": 2, "price": Decimal("3.50"), "extra": 1.5},
    ]
    table = frames.table(rows, primary_key=["id"])
    write_frame(table, rows, mode="upsert")
    found = lookup_frame(table, [1, 2])
    assert found["tags"].to_pylist() == [["a", "b"], None]
    assert found["extra"].to_pylist() == [None, 1.5]
    assert found["price"].to_pylist() == [Decimal("1.25"), Decimal("3.50")]


def test_rows_are_deleted_by_key(frames):
    table = frames.table(ROWS, primary_key=["id"])
    write_frame(table, ROWS, mode="upsert")
    report = write_frame(table, ROWS.slice(0, 300), mode="delete")  # with its other columns
    assert report.counts == {"delete": 300}
    assert write_frame(table, pd.DataFrame({"id": [500]}), mode="delete").rows == 1
    found = lookup_frame(table, ROWS.select(["id"]))["_found"].to_pylist()
    assert found == [not (each < 300 or each == 500) for each in range(1_000)]


def test_some_columns_are_updated_and_the_others_kept(frames):
    table = frames.table(ROWS, primary_key=["id"])
    write_frame(table, ROWS, mode="upsert")
    report = write_frame(table, {"id": [1, 2], "age": [80, None]}, mode="update")
    assert report.counts == {"update": 2}
    wide = ROWS.slice(3, 1).set_column(1, "name", pa.array(["not this"]))
    write_frame(table, wide.set_column(2, "age", pa.array([7])), mode="update", columns=["age"])
    found = lookup_frame(table, [1, 2, 3])
    assert found["age"].to_pylist() == [80, None, 7]
    assert found["name"].to_pylist() == ["name 1", "name 2", "name 3"]
    with pytest.raises(InvalidSchemaError, match="aeg"):
        write_frame(table, {"id": [1], "aeg": [2]}, mode="update")
    with pytest.raises(InvalidValueError, match="no column beside its key"):
        write_frame(table, {"id": [1]}, mode="update")


def test_updated_columns_may_come_in_any_order(frames):
    rows = pa.table({"id": [1], "a": [1.0], "b": [2.0], "name": ["x"]})
    table = frames.table(rows, primary_key=["id"])
    write_frame(table, rows, mode="upsert")
    write_frame(table, {"b": [20.0], "id": [1], "a": [10.0]}, mode="update")
    assert lookup_frame(table, [1]).select(["a", "b"]).to_pylist() == [{"a": 10.0, "b": 20.0}]
    write_frame(table, [(1, "y", 3.0)], mode="update", columns=["id", "name", "b"])
    found = lookup_frame(table, [1]).select(["a", "b", "name"])
    assert found.to_pylist() == [{"a": 10.0, "b": 3.0, "name": "y"}]


def changes(*rows):
    kinds, ids, names = zip(*rows, strict=True)
    return pa.table(
        {
            "_change_type": pa.array(kinds).dictionary_encode(),
            "_log_offset": pa.array(range(len(rows)), pa.int64()),
            "_commit_timestamp": pa.array([0] * len(rows), pa.timestamp("ms", "UTC")),
            "id": pa.array(ids, pa.int64()),
            "name": pa.array(names),
        }
    )


def test_a_changelog_is_applied_in_its_order(frames):
    log = changes(
        ("insert", 1, "one"),
        ("+I", 2, "two"),
        ("update_before", 1, "one"),
        ("update_after", 1, "uno"),
        ("-D", 2, "two"),
        ("+I", 3, "three"),
        ("-D", 3, "three"),
        ("-U", 1, "uno"),
        ("+U", 1, "ein"),
        ("insert", 3, "drei"),
    )
    table = frames.table(log, primary_key=["id"])
    assert table.info.schema.column_names == ("id", "name")
    report = write_frame(table, log.to_reader(max_chunksize=3), mode="upsert")
    assert report.counts == {"insert": 4, "update_before": 2, "update_after": 2, "delete": 2}
    assert report.rows == 8
    found = lookup_frame(table, [1, 2, 3])
    assert found["_found"].to_pylist() == [True, False, True]
    assert found["name"].to_pylist() == ["ein", None, "drei"]
    # Every change is one there, too: the copy of a changelog has the same history.
    assert sum(ends(frames, table).values()) == 10


def test_of_a_change_that_deletes_only_the_key_counts(frames):
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
    table = frames.table(Schema(schema, ["id"]))
    write_frame(table, changes(("+I", 1, "one"), ("+I", 2, "two"), ("-D", 1, None)), mode="upsert")
    assert lookup_frame(table, [1, 2])["name"].to_pylist() == [None, "two"]
    bad = changes(("+I", 3, "three"), ("-D", 2, None), ("-U", 1, None), ("+U", 1, None))
    with pytest.raises(InvalidValueError, match=r"In row 3: .* 'name' cannot take None") as error:
        write_frame(table, bad, mode="upsert")
    assert (error.value.facts["row"], error.value.facts["column"]) == (3, "name")
    with pytest.raises(InvalidValueError, match=r"In row 0: .* 'id' cannot take None"):
        write_frame(table, changes(("-D", None, "two")), mode="upsert")
    assert lookup_frame(table, [1, 2, 3])["_found"].to_pylist() == [False, True, False]


def test_a_long_changelog_gives_its_source(frames):
    rng = np.random.default_rng(11)
    count = 60_000
    ids = rng.integers(0, 500, count)
    there: dict[int, str] = {}
    kinds, names = [], []
    for number, key in enumerate(ids.tolist()):
        if key in there and rng.random() < 0.3:
            kinds.append("delete")
            names.append(there.pop(key))
        else:
            kinds.append("update_after" if key in there else "insert")
            names.append(f"v{number}")
            there[key] = names[-1]
    log = changes(*zip(kinds, ids.tolist(), names, strict=True))
    table = frames.table(log, primary_key=["id"], buckets=4)
    write_frame(table, log.to_reader(max_chunksize=50), mode="upsert")
    found = lookup_frame(table, np.arange(500))
    assert found["_found"].to_pylist() == [each in there for each in range(500)]
    assert found["name"].to_pylist() == [there.get(each) for each in range(500)]


def test_a_log_keeps_changes_as_columns_and_drops_none(frames):
    log = changes(("insert", 1, "one"), ("insert", 2, "two"))
    with pytest.raises(InvalidSchemaError, match="'_change_type'") as refused:
        frames.table(log)
    assert "rename them" in refused.value.hint
    rows = log.select(["id", "name"])
    table = frames.table(rows)
    for columns in (log, rows.append_column("_bucket", log["id"])):
        with pytest.raises(SchemaMismatchError, match="a scan adds such columns") as refused:
            write_frame(table, columns, mode="append")
        assert "rename them" in refused.value.hint
    kept = frames.table(Schema(pa.schema([("id", pa.int64()), ("_change", pa.string())])))
    renamed = log.select(["id"]).append_column("_change", pa.array(["+I", "-D"]))
    assert write_frame(kept, renamed, mode="append").rows == 2


def test_an_unknown_change_type_is_refused_with_its_row(frames):
    table = frames.table(changes(("insert", 1, "one")), primary_key=["id"])
    with pytest.raises(InvalidValueError, match="has 'upsert'") as error:
        write_frame(table, changes(("insert", 1, "a"), ("upsert", 2, "b")), mode="upsert")
    assert error.value.facts["row"] == 1
    with pytest.raises(InvalidValueError, match=r"In row 0: .* is NULL"):
        write_frame(table, changes((None, 1, "a"), ("+I", 2, "b")), mode="upsert")
    with pytest.raises(InvalidValueError, match="Upsert it"):
        write_frame(table, changes(("+I", 1, "a")), mode="delete")
    assert sum(ends(frames, table).values()) == 0


def test_an_aggregating_table_adds_up_or_is_overwritten(frames):
    schema = (
        Schema.builder()
        .column("id", DataTypes.int())
        .column("total", DataTypes.bigint(), aggregation=AggFunction.of("sum"))
        .primary_key(["id"])
        .build()
    )
    table = frames.table(schema, properties={"table.merge-engine": "aggregation"})
    rows = {"id": [1, 2, 1], "total": [10, 20, 5]}
    write_frame(table, rows, mode="upsert")
    write_frame(table, rows, mode="upsert")
    assert lookup_frame(table, [1, 2])["total"].to_pylist() == [30, 40]
    write_frame(table, {"id": [1], "total": [7]}, mode="upsert", merge_mode="overwrite")
    assert lookup_frame(table, [1])["total"].to_pylist() == [7]
    # A changelog has results, which are not to be added up once more.
    write_frame(table, {"_change_type": ["+U"], "id": [2], "total": [41]}, mode="upsert")
    assert lookup_frame(table, [2])["total"].to_pylist() == [41]


def test_what_only_the_server_may_write_is_refused(frames):
    schema = Schema(
        pa.schema([("word", pa.string()), ("number", pa.int64())]),
        ["word"],
        auto_increment_column="number",
    )
    table = frames.table(schema)
    assert write_frame(table, {"word": ["a", "b"]}, mode="upsert").rows == 2
    assert min(lookup_frame(table, ["a", "b"])["number"].to_pylist()) == 1
    with pytest.raises(SchemaMismatchError, match="counted up by the server"):
        write_frame(table, {"word": ["a"], "number": [7]}, mode="upsert")


@pytest.mark.parametrize("engine", ["first_row", "versioned"])
def test_an_update_that_the_merge_engine_does_not_take_is_refused_for_certain(frames, engine):
    properties = {"table.merge-engine": engine}
    if engine == "versioned":
        properties["table.merge-engine.versioned.ver-column"] = "version"
    columns = pa.schema([("id", pa.int64()), ("version", pa.int64()), ("n", pa.int32())])
    table = frames.table(Schema(columns, ["id"]), properties=properties)
    write_frame(table, {"id": [1], "version": [1], "n": [1]}, mode="upsert")
    with pytest.raises(UnsupportedOperationError, match=rf"{engine}.*Nothing was written") as error:
        write_frame(table, {"id": [1], "n": [2]}, mode="update")
    assert error.value.in_doubt is False
    assert not error.value.is_retriable
    assert lookup_frame(table, [1])["n"].to_pylist() == [1]


def test_a_delete_that_would_keep_the_row_is_refused(frames):
    """Servers take no whole rows of such a table, and a delete of columns keeps the number."""
    columns = pa.schema([("word", pa.string()), ("number", pa.int64()), ("n", pa.int32())])
    table = frames.table(Schema(columns, ["word"], auto_increment_column="number"))
    write_frame(table, {"word": ["a", "b"], "n": [1, 2]}, mode="upsert")
    with pytest.raises(UnsupportedOperationError, match="auto-increment column 'number'"):
        write_frame(table, ["a"], mode="delete")
    changes = {"_change_type": ["+I", "-D"], "word": ["c", "a"], "n": [3, 1]}
    with pytest.raises(UnsupportedOperationError, match="In row 1: ") as error:
        write_frame(table, changes, mode="upsert")
    assert error.value.row == 1
    assert lookup_frame(table, ["a", "b"])["n"].to_pylist() == [1, 2]
    changes = {"_change_type": ["+I", "+U"], "word": ["c", "a"], "n": [3, 4]}
    write_frame(table, changes, mode="upsert")
    assert lookup_frame(table, ["a", "b", "c"])["n"].to_pylist() == [4, 2, 3]


def test_nothing_is_written_of_a_frame_with_a_bad_row(frames):
    table = frames.table(ROWS, primary_key=["id"])
    bad = pa.concat_tables([ROWS, ROWS.slice(0, 1).set_column(0, "id", pa.array([None], "int64"))])
    with pytest.raises(InvalidValueError, match="may not be NULL"):
        write_frame(table, bad, mode="upsert")
    with pytest.raises(InvalidValueError, match="In row 1: ") as error:
        write_frame(table, [{"id": 1}, {"id": "two"}], mode="upsert")
    assert (error.value.facts["row"], error.value.facts["column"]) == (1, "id")
    with pytest.raises(SchemaMismatchError, match="no column 'nmae'"):
        write_frame(table, [{"id": 1, "nmae": "x"}], mode="upsert")
    with pytest.raises(SchemaMismatchError, match="lacks the column 'age'"):
        write_frame(table, ROWS.select(["id", "name"]), mode="upsert")
    assert sum(ends(frames, table).values()) == 0
    log = frames.table(ROWS, partition_by=["name"], bucket_key=["id"])
    for column, value, kind in [
        ("name", None, InvalidValueError),
        ("name", "a/b", InvalidNameError),
        ("id", None, InvalidValueError),
    ]:
        place = ROWS.column_names.index(column)
        wrong = pa.array([value], ROWS.schema.field(column).type)
        with pytest.raises(kind):
            write_frame(log, ROWS.slice(0, 1).set_column(place, column, wrong), mode="append")
    assert not frames.engine.run(
        admin_of(frames.connection).list_partition_infos(log.info.table_path)
    )


def test_the_error_of_a_stream_counts_the_written_rows(frames):
    table = frames.table(ROWS, primary_key=["id"])
    batches = ROWS.to_batches(max_chunksize=400)
    broken = batches[1].set_column(2, "age", pa.array([2**40] * 400))
    with pytest.raises(InvalidValueError, match="'age'") as error:
        write_frame(table, iter([batches[0], broken, batches[2]]), mode="upsert")
    text = "Of the rows before it: 400 rows acknowledged and 0 not written."
    assert error.value.__notes__ == [text]
    assert (error.value.progress.acknowledged, error.value.progress.first_untaken) == (400, 400)
    assert lookup_frame(table, ROWS.select(["id"]))["_found"].to_pylist().count(True) == 400


def test_a_missing_partition_fails_and_the_others_are_written(cluster, database):
    harness = FrameHarness(
        cluster.bootstrap, database, **{"client.writer.dynamic-create-partition.enabled": "false"}
    )
    rows = pa.table({"day": ["mon", "tue", "mon"], "id": [1, 2, 3]})
    table = harness.table(rows, primary_key=["day", "id"], partition_by="day", buckets=1)
    work = admin_of(harness.connection).create_partition(
        table.info.table_path, PartitionSpec({"day": "mon"}), ignore_if_exists=False
    )
    harness.engine.run(work)
    with pytest.raises(PartitionNotFoundError) as error:
        write_frame(table, rows, mode="upsert")
    text = (
        f"Writing to {table.info.table_path} failed, with 2 rows acknowledged and 1 not written: "
    )
    assert error.value.message.startswith(text)
    assert error.value.progress.rows_to_write().tolist() == [1]
    assert "Write all rows again" in error.value.hint
    assert not error.value.in_doubt
    found = lookup_frame(table, rows)
    assert found["_found"].to_pylist() == [True, False, True]
    harness.close()


def test_tables_are_written_in_their_own_modes(frames):
    log, keyed = frames.table(ROWS), frames.table(ROWS, primary_key=["id"])
    with pytest.raises(UnsupportedOperationError):
        write_frame(keyed, ROWS, mode="append")
    for mode in ("upsert", "delete", "update"):
        with pytest.raises(UnsupportedOperationError):
            write_frame(log, ROWS, mode=mode)
    with pytest.raises(InvalidValueError, match="for an update, not for upsert"):
        write_frame(keyed, ROWS, mode="upsert", columns=["age"])
    with pytest.raises(FlussError):
        write_frame(keyed, 7, mode="upsert")


def test_empty_frames_write_nothing(frames):
    table = frames.table(ROWS, primary_key=["id"])
    for data in (ROWS.slice(0, 0), [], {"id": [], "name": [], "age": []}):
        report = write_frame(table, data, mode="upsert")
        assert (report.rows, dict(report.last_offsets)) == (0, {})


def test_batches_of_narrow_rows_stay_below_what_the_server_takes(frames):
    # 0.9.1 keeps the change types of one batch in one page of 128 KiB.
    rows = pa.table({"id": np.arange(140_000)})
    table = frames.table(rows, primary_key=["id"], buckets=1)
    write_frame(table, rows, mode="upsert")
    report = write_frame(table, rows, mode="upsert")
    assert report.next_offsets == {TableBucket(table.info.table_id, 0): 420_000}


def test_a_time_that_would_be_cut_is_refused_in_a_changelog_too(frames):
    table = frames.table(Schema(pa.schema([("id", pa.int64()), ("at", pa.time64("us"))]), ["id"]))
    log = pa.table(
        {
            "_change_type": ["+I", "-U", "+U"],
            "id": pa.array([1, 1, 1], pa.int64()),
            "at": pa.array([1_000, 1_000, 1_001], pa.time64("us")),
        }
    )
    with pytest.raises(InvalidValueError, match="keeps milliseconds of a time") as refused:
        write_frame(table, log, mode="upsert")
    assert (refused.value.facts["row"], refused.value.facts["column"]) == (2, "at")


@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_frame_is_cast_and_divided_once_and_compiles_nothing(frames, monkeypatch, is_keyed):
    keys = {"primary_key": ["id", "day"]} if is_keyed else {}
    one = {"id": [1], "day": ["d1"], "name": ["a"]}
    table = frames.table(pa.table(one), partition_by=["day"], **keys)
    mode = "upsert" if is_keyed else "append"
    calls = Counter()

    def counted(module, name):
        original = getattr(module, name)

        def call(*given, **options):
            calls[name] += 1
            return original(*given, **options)

        monkeypatch.setattr(module, name, call)

    for module, name in [
        (frame_checks, "to_wire_batch"),
        (writer_cores, "to_wire_batch"),
        (wire_rows, "partition_codes"),
        (RowReader, "compiled"),
    ]:
        counted(module, name)
    for _ in range(10):
        assert write_frame(table, one, mode=mode).rows == 1
    assert calls == {"to_wire_batch": 10, "partition_codes": 10}


def test_rows_of_several_partitions_come_as_batches_of_a_stream(frames):
    days = ["d1", "d2", "d3"]
    log = frames.table(pa.table({"id": [1], "day": days[:1]}), partition_by=["day"], buckets=2)
    batches = [
        pa.record_batch({"id": [place, place + 1], "day": [days[place % 3], days[place % 2]]})
        for place in range(12)
    ]
    assert write_frame(log, iter(batches), mode="append").rows == 24
    expected = Counter(day for batch in batches for day in batch["day"].to_pylist())
    found = {day: sum(ends(frames, log, day).values()) for day in days}
    assert found == expected


def test_a_table_that_was_altered_or_created_again_is_written(frames):
    table = frames.table(ROWS.schema)
    path = table.info.table_path
    write_frame(table, ROWS.slice(0, 1), mode="append")
    admin = admin_of(frames.connection)
    wider = TableChange.add_column("note", DataTypes.string())
    frames.engine.run(admin.alter_table(path, [wider]))
    with pytest.raises(SchemaMismatchError, match="lacks the column 'note'"):
        write_frame(frames.again(path), ROWS.slice(0, 1), mode="append")
    noted = ROWS.slice(0, 1).append_column("note", pa.array(["new"]))
    assert write_frame(frames.again(path), noted, mode="append").rows == 1
    frames.engine.run(admin.drop_table(path, ignore_if_not_exists=False))
    descriptor = schema_of_frame(ROWS.schema, buckets=3)
    frames.engine.run(admin.create_table(path, descriptor, ignore_if_exists=False))
    newer = frames.again(path)
    report = write_frame(newer, ROWS.slice(0, 2), mode="append")
    assert {bucket.table_id for bucket in report.last_offsets} == {newer.info.table_id}
