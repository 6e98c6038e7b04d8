"""What a batch changes, what the changelog says of it, and what is left after a restart."""

from __future__ import annotations

import random

import pytest

from fluss.errors import CorruptDataError, FlussError
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes
from fluss_server.kv.kv_tablet import PENDING_MS_MAX
from tests.support.scripted.kv_harness import KvDesk


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

    def one(schema: Schema | None = None, **properties: str) -> KvDesk:
        named = {
            key.replace("__", "-").replace("_", "."): value for key, value in properties.items()
        }
        desk = KvDesk(tmp_path / f"kv{len(made)}", schema or _schema(), named)
        made.append(desk)
        return desk

    yield one
    for each in made:
        each.tablet.close()


def test_inserts_updates_and_deletes_are_said_in_order(make):
    desk = make()
    assert desk.put(("+", (1, "a", 1)), ("+", (2, "b", 2))) == [
        ("+I", (1, "a", 1)),
        ("+I", (2, "b", 2)),
    ]
    assert desk.put(("+", (1, "c", 3)), ("-", (2, None, None))) == [
        ("-U", (1, "a", 1)),
        ("+U", (1, "c", 3)),
        ("-D", (2, "b", 2)),
    ]
    assert desk.state() == [(1, "c", 3)]
    assert desk.tablet.row_count == 1


def test_an_equal_row_is_an_update_all_the_same(make):
    desk = make()
    desk.put(("+", (1, "a", 1)))
    assert desk.put(("+", (1, "a", 1))) == [("-U", (1, "a", 1)), ("+U", (1, "a", 1))]


def test_a_key_twice_in_a_batch_sees_itself(make):
    desk = make()
    changes = desk.put(("+", (1, "a", 1)), ("+", (1, "b", 2)), ("-", (1, None, None)))
    assert [kind for kind, _ in changes] == ["+I", "-U", "+U", "-D"]
    assert desk.state() == []


def test_a_batch_that_changes_nothing_takes_one_offset(make):
    desk = make()
    assert desk.put(("-", (7, None, None)), writer_id=5, sequence=0) == []
    assert desk.log.end_offset == 1


def test_a_batch_that_came_twice_is_applied_once(make):
    desk = make()
    desk.put(("+", (1, "a", 1)), writer_id=5, sequence=0)
    desk.put(("+", (1, "b", 1)), writer_id=5, sequence=1)
    assert desk.put(("+", (1, "a", 1)), writer_id=5, sequence=0) == []
    assert desk.state() == [(1, "b", 1)]
    assert desk.log.end_offset == 3


def test_a_log_that_refuses_leaves_the_rows_as_they_were(make):
    desk = make()
    desk.put(("+", (1, "a", 1)))
    desk.log.fails = True
    with pytest.raises(OSError, match="no space"):
        desk.put(("+", (1, "b", 2)), ("+", (2, "c", 3)))
    assert desk.state() == [(1, "a", 1)]
    assert desk.tablet.row_count == 1


def test_wal_image_never_says_the_row_before(make):
    desk = make(table_changelog_image="wal")
    assert desk.put(("+", (1, "a", 1))) == [("+U", (1, "a", 1))]
    assert desk.put(("+", (1, "b", 1))) == [("+U", (1, "b", 1))]
    assert desk.put(("+", (1, None, 9)), target=[0, 2]) == [("+U", (1, "b", 9))]
    assert desk.put(("+", (2, None, 9)), target=[0, 2]) == [("+I", (2, None, 9))]
    assert desk.put(("-", (1, None, None))) == [("-D", (1, "b", 9))]
    with pytest.raises(FlussError, match="Row count is disabled"):
        _ = desk.tablet.row_count


def test_partial_updates_keep_the_other_columns_and_partial_deletes_clear_them(make):
    desk = make()
    desk.put(("+", (1, "a", 1)))
    assert desk.put(("+", (1, "ignored", 5)), target=[0, 2])[1] == ("+U", (1, "a", 5))
    assert desk.put(("-", (1, None, None)), target=[0, 2])[1] == ("+U", (1, "a", None))
    assert desk.put(("-", (1, None, None)), target=[0, 1]) == [("-D", (1, "a", None))]
    assert desk.put(("+", (3, "kept out", 5)), target=[0, 2]) == [("+I", (3, None, 5))]
    assert desk.put(("+", (3, "x", 9)), target=[0]) == []


@pytest.mark.parametrize(
    ("target", "said"), [([1, 2], "must contain the primary key"), ([0, 9], "outside")]
)
def test_wrong_target_columns_are_refused(make, target, said):
    with pytest.raises(FlussError, match=said) as caught:
        make().put(("+", (1, "a", 1)), target=target)
    assert caught.value.error_code == 35


def test_first_row_keeps_the_first(make):
    desk = make(table_merge__engine="first_row")
    desk.put(("+", (1, "a", 1)))
    assert desk.put(("+", (1, "b", 2)), ("-", (1, None, None))) == []
    assert desk.state() == [(1, "a", 1)]
    with pytest.raises(FlussError, match="Partial update") as caught:
        desk.put(("+", (1, "b", 2)), target=[0, 1])
    assert caught.value.error_code == -1


def test_versioned_keeps_the_greatest_version_and_null_is_the_smallest(tmp_path):
    properties = {
        "table.merge-engine": "versioned",
        "table.merge-engine.versioned.ver-column": "n",
    }
    desk = KvDesk(tmp_path / "kv", _schema(), properties)
    desk.put(("+", (1, "a", None)))
    desk.put(("+", (1, "b", 5)))
    assert desk.put(("+", (1, "old", 4))) == []
    assert desk.put(("+", (1, "null", None))) == []
    assert desk.put(("+", (1, "same", 5)))[1] == ("+U", (1, "same", 5))
    assert desk.put(("-", (1, None, None))) == []
    desk.put(("+", (2, "least", -(2**63))))
    assert desk.put(("+", (2, "null", None)))[1] == ("+U", (2, "null", None))
    desk.tablet.close()


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
    desk = make(schema, table_merge__engine="aggregation")
    desk.put(("+", (1, 100, "a", "x")))
    assert desk.put(("+", (1, 100, "b", None)))[1] == ("+U", (1, -56, "a|b", "x"))
    assert desk.put(("+", (1, 1, "c", "y")), target=[0, 1])[1] == ("+U", (1, -55, "a|b", "x"))
    assert desk.put(("+", (1, 7, "z", "y")), mode=1)[1] == ("+U", (1, 7, "z", "y"))
    assert desk.put(("-", (1, None, None, None))) == []
    assert desk.put(("-", (1, None, None, None)), mode=1) == [("-D", (1, 7, "z", "y"))]


def test_deletes_that_are_disabled_are_refused_with_the_whole_batch(make):
    desk = make(table_delete_behavior="disable")
    with pytest.raises(FlussError, match="disabled") as caught:
        desk.put(("+", (1, "a", 1)), ("-", (1, None, None)))
    assert caught.value.error_code == 57
    assert desk.state() == []


def test_numbers_are_given_in_ranges_and_never_twice(tmp_path):
    schema = Schema(
        [Column("id", DataTypes.int()), Column("uid", DataTypes.int())],
        primary_keys=["id"],
        auto_increment_column="uid",
    )
    desk = KvDesk(tmp_path / "kv", schema, {"table.auto-increment.cache-size": "2"})
    with pytest.raises(FlussError, match="not explicitly specified"):
        desk.put(("+", (1, 5)))
    with pytest.raises(FlussError, match="must not be included"):
        desk.put(("+", (1, 5)), target=[0, 1])
    desk.put(("+", (1, None)), ("+", (2, None)), ("+", (3, None)), target=[0])
    assert desk.state() == [(1, 1), (2, 2), (3, 3)]
    key = desk.key((9,), schema)
    (row,) = desk.tablet.lookup_or_insert([key], _order(), now_ms=1)
    assert desk.tablet.lookup_or_insert([key, key], _order(), now_ms=1) == [row, row]
    assert desk.state()[-1] == (9, 4)
    desk.tablet.close()
    desk.open().put(desk.batch([("+", (10, None))]), _order(0), now_ms=1)
    assert desk.state()[-1] == (10, 5)
    desk.tablet.close()


def _order(*target: int):
    from fluss_server.put_request import PutOrder

    return PutOrder(target_columns=target)


def test_rows_of_an_older_schema_are_padded(make):
    desk = make()
    desk.put(("+", (1, "a", 1)))
    desk.add_schema(_schema(Column("more", DataTypes.string())))
    assert desk.put(("+", (1, "b", 2)), schema_id=0) == [
        ("-U", (1, "a", 1, None)),
        ("+U", (1, "b", 2, None)),
    ]
    assert desk.put(("+", (1, None, None, "new")), target=[0, 3])[1] == ("+U", (1, "b", 2, "new"))
    with pytest.raises(FlussError, match="Invalid schema id") as caught:
        desk.tablet.put(_with_schema_id(desk, 7), _order(), now_ms=1)
    assert caught.value.error_code == 9


def _with_schema_id(desk: KvDesk, schema_id: int) -> memoryview:
    desk.schemas[schema_id] = desk.schemas[0]
    try:
        return memoryview(desk.batch([("+", (1, "a", 1))], schema_id=schema_id))
    finally:
        del desk.schemas[schema_id]


def test_damaged_batches_change_nothing(make):
    desk = make()
    data = bytearray(desk.batch([("+", (1, "abc", 1))]))
    data[-1] ^= 0xFF
    with pytest.raises(CorruptDataError):
        desk.tablet.put(memoryview(data), _order(), now_ms=1)
    assert desk.log.end_offset == 0


def test_a_store_that_is_behind_catches_up_with_its_changelog(tmp_path):
    desk = KvDesk(tmp_path / "kv", _schema())
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
        desk.put(*records)
        if step == 20:
            desk.tablet.flush()
        if step % 13 == 7:
            # As after kill -9: what was not flushed is gone, and the store is opened again.
            desk.tablet._store.close()
            desk.open()
        assert sorted(desk.state()) == sorted(model.values())
        assert desk.tablet.row_count == len(model)
    desk.tablet.close()
    assert desk.open().applied_offset == desk.log.end_offset
    desk.tablet.close()


def test_a_log_that_lost_what_the_store_needs_is_no_ground_to_stand_on(tmp_path):
    desk = KvDesk(tmp_path / "kv", _schema())
    desk.put(("+", (1, "a", 1)))
    desk.tablet._store.close()
    desk.log.start_offset = 1
    with pytest.raises(FlussError, match="changelog"):
        desk.open()


def test_the_log_is_needed_until_the_rows_are_on_disk(make):
    desk = make()
    desk.put(("+", (1, "a", 1)))
    desk.tablet.open_scan(limit=None).close()  # moves the row into the store's memory, no further
    assert desk.tablet.applied_offset == 0
    assert desk.tablet.wants_flush(now_ms=1_000 + PENDING_MS_MAX)
    desk.tablet.flush()
    assert desk.tablet.applied_offset == 1
    assert not desk.tablet.wants_flush(now_ms=10**15)


def test_reading_in_order_sees_stored_and_pending_rows(make):
    desk = make()
    desk.put(*[("+", (each, "stored", 0)) for each in range(0, 20, 2)])
    desk.tablet.flush()
    desk.put(("-", (4, None, None)), ("+", (5, "pending", 0)), ("+", (6, "changed", 0)))
    assert [(row[0], row[1]) for row in desk.state()[:5]] == [
        (0, "stored"),
        (2, "stored"),
        (5, "pending"),
        (6, "changed"),
        (8, "stored"),
    ]
    limited = b"".join(bytes(each) for each in desk.tablet.limit_scan(3))
    assert limited[5:9] == (3).to_bytes(4, "little")


def test_a_scan_has_the_rows_of_its_moment(make):
    desk = make()
    desk.put(*[("+", (each, "x" * 50, 0)) for each in range(100)])
    scan = desk.tablet.open_scan(limit=None)
    desk.put(("+", (1000, "later", 0)), ("-", (1, None, None)))
    assert scan.log_offset == 100
    counts, more = [], True
    while more:
        page, more = scan.next_page(600)
        counts.append(int.from_bytes(b"".join(bytes(each) for each in page)[5:9], "little"))
    assert sum(counts) == 100
    assert len(counts) > 5
    scan.close()
    page, more = desk.tablet.open_scan(limit=7).next_page(10**9)
    assert not more
