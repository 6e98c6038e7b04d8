"""The changes of a batch, their changelog, and the rows after a restart."""

from __future__ import annotations

import random
import shutil

import pytest

from fluss.errors import CorruptDataError, FlussError
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes
from fluss_server.kv import kv_recovery
from fluss_server.kv.kv_tablet import PENDING_MS_MAX
from tests.support.scripted.kv_harness import KvHarness


def _schema(*extra: Column) -> Schema:
    columns = [
        Column("id", DataTypes.int()),
        Column("name", DataTypes.string()),
        Column("n", DataTypes.bigint()),
        *extra,
    ]
    return Schema(columns, primary_keys=["id"])


@pytest.fixture
def make(tmp_path):
    made = []

    def one(schema: Schema | None = None, **properties: str) -> KvHarness:
        named = {
            key.replace("__", "-").replace("_", "."): value for key, value in properties.items()
        }
        harness = KvHarness(tmp_path / f"kv{len(made)}", schema or _schema(), named)
        made.append(harness)
        return harness

    yield one
    for tablet in made:
        tablet.tablet.close()


def test_inserts_updates_and_deletes_are_logged_in_order(make):
    harness = make()
    assert harness.put(("+", (1, "a", 1)), ("+", (2, "b", 2))) == [
        ("+I", (1, "a", 1)),
        ("+I", (2, "b", 2)),
    ]
    assert harness.put(("+", (1, "c", 3)), ("-", (2, None, None))) == [
        ("-U", (1, "a", 1)),
        ("+U", (1, "c", 3)),
        ("-D", (2, "b", 2)),
    ]
    assert harness.state() == [(1, "c", 3)]
    assert harness.tablet.row_count == 1


def test_an_equal_row_is_an_update(make):
    harness = make()
    harness.put(("+", (1, "a", 1)))
    assert harness.put(("+", (1, "a", 1))) == [("-U", (1, "a", 1)), ("+U", (1, "a", 1))]


def test_the_second_record_of_a_key_sees_the_first(make):
    harness = make()
    changes = harness.put(("+", (1, "a", 1)), ("+", (1, "b", 2)), ("-", (1, None, None)))
    assert [kind for kind, _ in changes] == ["+I", "-U", "+U", "-D"]
    assert harness.state() == []


def test_a_batch_that_changes_nothing_takes_one_offset(make):
    harness = make()
    assert harness.put(("-", (7, None, None)), writer_id=5, sequence=0) == []
    assert harness.log.end_offset == 1


def test_a_duplicate_batch_is_applied_once(make):
    harness = make()
    harness.put(("+", (1, "a", 1)), writer_id=5, sequence=0)
    harness.put(("+", (1, "b", 1)), writer_id=5, sequence=1)
    assert harness.put(("+", (1, "a", 1)), writer_id=5, sequence=0) == []
    assert harness.state() == [(1, "b", 1)]
    assert harness.log.end_offset == 3


def test_a_log_that_refuses_leaves_the_rows_as_they_were(make):
    harness = make()
    harness.put(("+", (1, "a", 1)))
    harness.log.fails = True
    with pytest.raises(OSError, match="no space"):
        harness.put(("+", (1, "b", 2)), ("+", (2, "c", 3)))
    assert harness.state() == [(1, "a", 1)]
    assert harness.tablet.row_count == 1


def test_wal_image_never_logs_the_old_row(make):
    harness = make(table_changelog_image="wal")
    assert harness.put(("+", (1, "a", 1))) == [("+U", (1, "a", 1))]
    assert harness.put(("+", (1, "b", 1))) == [("+U", (1, "b", 1))]
    assert harness.put(("+", (1, None, 9)), target=[0, 2]) == [("+U", (1, "b", 9))]
    assert harness.put(("+", (2, None, 9)), target=[0, 2]) == [("+I", (2, None, 9))]
    assert harness.put(("-", (1, None, None))) == [("-D", (1, "b", 9))]
    with pytest.raises(FlussError, match="Row count is disabled"):
        _ = harness.tablet.row_count


def test_partial_updates_keep_the_other_columns_and_partial_deletes_clear_them(make):
    harness = make()
    harness.put(("+", (1, "a", 1)))
    assert harness.put(("+", (1, "ignored", 5)), target=[0, 2])[1] == ("+U", (1, "a", 5))
    assert harness.put(("-", (1, None, None)), target=[0, 2])[1] == ("+U", (1, "a", None))
    assert harness.put(("-", (1, None, None)), target=[0, 1]) == [("-D", (1, "a", None))]
    assert harness.put(("+", (3, "kept out", 5)), target=[0, 2]) == [("+I", (3, None, 5))]
    assert harness.put(("+", (3, "x", 9)), target=[0]) == []


@pytest.mark.parametrize(
    ("target", "message"), [([1, 2], "must contain the primary key"), ([0, 9], "outside")]
)
def test_wrong_target_columns_are_refused(make, target, message):
    with pytest.raises(FlussError, match=message) as caught:
        make().put(("+", (1, "a", 1)), target=target)
    assert caught.value.error_code == 35


def test_first_row_keeps_the_first(make):
    harness = make(table_merge__engine="first_row")
    harness.put(("+", (1, "a", 1)))
    assert harness.put(("+", (1, "b", 2)), ("-", (1, None, None))) == []
    assert harness.state() == [(1, "a", 1)]
    with pytest.raises(FlussError, match="Partial update") as caught:
        harness.put(("+", (1, "b", 2)), target=[0, 1])
    assert caught.value.error_code == -1


def test_versioned_keeps_the_greatest_version_and_null_is_the_smallest(tmp_path):
    properties = {
        "table.merge-engine": "versioned",
        "table.merge-engine.versioned.ver-column": "n",
    }
    harness = KvHarness(tmp_path / "kv", _schema(), properties)
    harness.put(("+", (1, "a", None)))
    harness.put(("+", (1, "b", 5)))
    assert harness.put(("+", (1, "old", 4))) == []
    assert harness.put(("+", (1, "null", None))) == []
    assert harness.put(("+", (1, "same", 5)))[1] == ("+U", (1, "same", 5))
    assert harness.put(("-", (1, None, None))) == []
    harness.put(("+", (2, "least", -(2**63))))
    assert harness.put(("+", (2, "null", None)))[1] == ("+U", (2, "null", None))
    harness.tablet.close()


def test_aggregation_combines_column_by_column(make):
    schema = Schema(
        [
            Column("id", DataTypes.int()),
            Column("total", DataTypes.tinyint(), aggregation=AggFunction.of("sum")),
            Column(
                "words", DataTypes.string(), aggregation=AggFunction.of("listagg", delimiter="|")
            ),
            Column("last", DataTypes.string()),
        ],
        primary_keys=["id"],
    )
    harness = make(schema, table_merge__engine="aggregation")
    harness.put(("+", (1, 100, "a", "x")))
    assert harness.put(("+", (1, 100, "b", None)))[1] == ("+U", (1, -56, "a|b", "x"))
    assert harness.put(("+", (1, 1, "c", "y")), target=[0, 1])[1] == ("+U", (1, -55, "a|b", "x"))
    assert harness.put(("+", (1, 7, "z", "y")), mode=1)[1] == ("+U", (1, 7, "z", "y"))
    assert harness.put(("-", (1, None, None, None))) == []
    assert harness.put(("-", (1, None, None, None)), mode=1) == [("-D", (1, 7, "z", "y"))]


def test_deletes_that_are_disabled_are_refused_with_the_whole_batch(make):
    harness = make(table_delete_behavior="disable")
    with pytest.raises(FlussError, match="disabled") as caught:
        harness.put(("+", (1, "a", 1)), ("-", (1, None, None)))
    assert caught.value.error_code == 57
    assert harness.state() == []


def test_numbers_are_assigned_in_ranges_and_never_twice(tmp_path):
    schema = Schema(
        [Column("id", DataTypes.int()), Column("uid", DataTypes.int())],
        primary_keys=["id"],
        auto_increment_column="uid",
    )
    harness = KvHarness(tmp_path / "kv", schema, {"table.auto-increment.cache-size": "2"})
    with pytest.raises(FlussError, match="not explicitly specified"):
        harness.put(("+", (1, 5)))
    with pytest.raises(FlussError, match="must not be included"):
        harness.put(("+", (1, 5)), target=[0, 1])
    harness.put(("+", (1, None)), ("+", (2, None)), ("+", (3, None)), target=[0])
    assert harness.state() == [(1, 1), (2, 2), (3, 3)]
    key = harness.key((9,), schema)
    (row,) = harness.tablet.lookup_or_insert([key], _order(), now_ms=1)
    assert harness.tablet.lookup_or_insert([key, key], _order(), now_ms=1) == [row, row]
    assert harness.state()[-1] == (9, 4)
    harness.tablet.close()
    harness.open().put(harness.batch([("+", (10, None))]), _order(0), now_ms=1)
    assert harness.state()[-1] == (10, 5)
    harness.tablet.close()


def _order(*target: int):
    from fluss_server.put_request import PutOptions

    return PutOptions(target_columns=target)


def test_rows_of_an_older_schema_are_padded(make):
    harness = make()
    harness.put(("+", (1, "a", 1)))
    harness.add_schema(_schema(Column("more", DataTypes.string())))
    assert harness.put(("+", (1, "b", 2)), schema_id=0) == [
        ("-U", (1, "a", 1, None)),
        ("+U", (1, "b", 2, None)),
    ]
    assert harness.put(("+", (1, None, None, "new")), target=[0, 3])[1] == (
        "+U",
        (1, "b", 2, "new"),
    )
    with pytest.raises(FlussError, match="Invalid schema id") as caught:
        harness.tablet.put(_with_schema_id(harness, 7), _order(), now_ms=1)
    assert caught.value.error_code == 9


def _with_schema_id(harness: KvHarness, schema_id: int) -> memoryview:
    harness.schemas[schema_id] = harness.schemas[0]
    try:
        return memoryview(harness.batch([("+", (1, "a", 1))], schema_id=schema_id))
    finally:
        del harness.schemas[schema_id]


def test_damaged_batches_change_nothing(make):
    harness = make()
    data = bytearray(harness.batch([("+", (1, "abc", 1))]))
    data[-1] ^= 0xFF
    with pytest.raises(CorruptDataError):
        harness.tablet.put(memoryview(data), _order(), now_ms=1)
    assert harness.log.end_offset == 0


def test_a_store_that_is_behind_catches_up_with_its_changelog(tmp_path):
    harness = KvHarness(tmp_path / "kv", _schema())
    chance = random.Random(8)
    model: dict[int, tuple[object, ...]] = {}
    for step in range(60):
        records = []
        for _ in range(chance.randrange(1, 8)):
            key = chance.randrange(40)
            if chance.random() < 0.3:
                records.append(("-", (key, None, None)))
                model.pop(key, None)
            else:
                row = (key, f"é{step}", chance.randrange(-(2**60), 2**60))
                records.append(("+", row))
                model[key] = row
        harness.put(*records)
        if step == 20:
            harness.tablet.flush()
        if step % 13 == 7:
            # As after kill -9: unflushed rows are lost, and the store is opened again.
            harness.tablet._store.close()
            harness.open()
        assert sorted(harness.state()) == sorted(model.values())
        assert harness.tablet.row_count == len(model)
    harness.tablet.close()
    assert harness.open().applied_offset == harness.log.end_offset
    harness.tablet.close()


def test_rows_that_expired_before_a_crash_are_counted_once(make, tmp_path):
    harness = make(table_kv_ttl="1 s")
    harness.put(("+", (1, "a", 1)), ("+", (2, "b", 1)))
    harness.tablet.flush()
    assert harness.tablet.expire(now_ms=10**12) == 2
    shutil.copytree(harness.folder, tmp_path / "on disk")
    harness.put(("+", (1, "again", 1)))
    # As after kill -9: the store has what was on the disk.
    harness.tablet._store.close()
    shutil.rmtree(harness.folder)
    (tmp_path / "on disk").rename(harness.folder)
    harness.open()
    assert harness.state() == [(1, "again", 1)]
    assert harness.tablet.row_count == 1


def test_a_log_that_lost_what_the_store_needs_is_refused(tmp_path):
    harness = KvHarness(tmp_path / "kv", _schema())
    harness.put(("+", (1, "a", 1)))
    harness.tablet._store.close()
    harness.log.start_offset = 1
    with pytest.raises(FlussError, match="changelog"):
        harness.open()


def test_the_log_is_needed_until_the_rows_are_on_disk(make):
    harness = make()
    harness.put(("+", (1, "a", 1)))
    harness.tablet.open_scan(
        limit=None
    ).close()  # moves the row into the store's memory, no further
    assert harness.tablet.applied_offset == 0
    assert harness.tablet.needs_flush(now_ms=1_000 + PENDING_MS_MAX)
    harness.tablet.flush()
    assert harness.tablet.applied_offset == 1
    assert not harness.tablet.needs_flush(now_ms=10**15)


def test_reads_in_order_merge_stored_and_pending_rows(make):
    harness = make()
    harness.put(*[("+", (each, "stored", 0)) for each in range(0, 20, 2)])
    harness.tablet.flush()
    harness.put(("-", (4, None, None)), ("+", (5, "pending", 0)), ("+", (6, "changed", 0)))
    assert [(row[0], row[1]) for row in harness.state()[:5]] == [
        (0, "stored"),
        (2, "stored"),
        (5, "pending"),
        (6, "changed"),
        (8, "stored"),
    ]
    limited = b"".join(bytes(each) for each in harness.tablet.limit_scan(3))
    assert limited[5:9] == (3).to_bytes(4, "little")


def test_looking_up_many_keys_is_looking_up_each(make):
    harness = make()
    keys = [harness.key((each, None, None), harness.schemas[0]) for each in range(12)]
    asked = [keys[each] for each in (11, 4, 5, 6, 0, 4, 11, 2, 5)]
    assert harness.tablet.lookup(asked) == [None] * len(asked)
    harness.put(*[("+", (each, "stored", 0)) for each in range(0, 10, 2)])
    harness.tablet.flush()
    stored = harness.tablet.lookup(asked)  # the store alone
    assert [row is None for row in stored] == [each in (keys[11], keys[5]) for each in asked]
    harness.put(("-", (4, None, None)), ("+", (5, "pending", 0)), ("+", (6, "changed", 0)))
    found = harness.tablet.lookup(asked)  # the store and the pending changes
    assert found == [harness.tablet.lookup([each])[0] for each in asked]
    assert [row is None for row in found] == [each in (keys[11], keys[4]) for each in asked]
    harness.tablet.flush()
    assert harness.tablet.lookup(asked) == found


def test_a_scan_has_the_rows_of_its_moment(make):
    harness = make()
    harness.put(*[("+", (each, "x" * 50, 0)) for each in range(100)])
    scan = harness.tablet.open_scan(limit=None)
    harness.put(("+", (1000, "later", 0)), ("-", (1, None, None)))
    assert scan.log_offset == 100
    counts, more = [], True
    while more:
        page, more = scan.next_page(600)
        counts.append(int.from_bytes(b"".join(bytes(each) for each in page)[5:9], "little"))
    assert sum(counts) == 100
    assert len(counts) > 5
    scan.close()
    page, more = harness.tablet.open_scan(limit=7).next_page(10**9)
    assert not more


@pytest.mark.parametrize("together", [1, 7, 50_000])
def test_changes_applied_together_are_those_applied_batch_by_batch(
    make, monkeypatch, tmp_path, together
):
    harness = make()
    rng = random.Random(together)
    for number in range(60):
        if number == 30:
            harness.add_schema(_schema(Column("more", DataTypes.string())))
        width = len(harness.schemas[max(harness.schemas)].columns)
        keys = rng.sample(range(12), rng.randint(1, 5))
        harness.put(
            *(
                ("-", (key, *[None] * (width - 1)))
                if rng.random() < 0.3
                else ("+", (key, rng.choice([None, "a", "b" * 40]), number, "x")[:width])
                for key in keys
            )
        )
    live, count = harness.state(), harness.tablet.row_count
    harness.tablet.close()
    monkeypatch.setattr(kv_recovery, "RECORDS_TOGETHER_MAX", together)
    harness.folder = tmp_path / "again"
    harness.open()
    assert (harness.state(), harness.tablet.row_count) == (live, count)
    assert harness.tablet.applied_offset == harness.log.end_offset
