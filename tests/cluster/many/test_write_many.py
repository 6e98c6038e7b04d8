"""One writer for many tables: rows and frames, failures of one table, changes of tables."""

import gc
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fluss.errors import (
    ClosedError,
    FlussError,
    InvalidValueError,
    LimitExceededError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.model.paths import TablePath
from fluss.net.engine_thread import engine
from fluss.write import many_writer, table_writer
from fluss.write.table_writer import WHOLE_ROWS
from tests.cluster.many.conftest import LOG


def rows_of(table):
    return sorted(table.to_arrow().to_pylist(), key=lambda each: each["id"])


def user(number, name="n", age=1):
    return {"id": number, "name": name, "age": age}


# --- rows -----------------------------------------------------------------------------------------


def test_rows_of_all_kinds_go_to_their_tables_in_order(session, log, keyed):
    with session.write_many(["clicks", keyed]) as writer:
        writer.append("clicks", {"id": 1, "note": "dict"})
        writer.append(log, (2, "tuple"))
        writer.append(log.name, [{"id": 3}, {"id": 4, "note": None}])
        for number in range(5):
            writer.upsert("users", user(number))
        writer.update("users", {"id": 1, "age": 7})
        writer.upsert("users", (2, "tuple", None))
        writer.delete("users", 3)
        writer.update("users", {"id": 1, "name": "last"})
        writer.delete("users", {"id": 4, "name": "not looked at"})
        report = writer.flush()
        assert {name: each.rows for name, each in report.items()} == {log.name: 4, keyed.name: 10}
        assert report.rows == 14
        assert report[keyed.name].counts == {"upsert": 6, "update": 2, "delete": 2}
        assert report[log.name].counts == {"append": 4}
        assert sum(report[log.name].next_offsets.values()) >= 4
        assert writer.flush().rows == 0
    assert rows_of(keyed) == [user(0), user(1, "last", 7), user(2, "tuple", None)]
    assert [each["note"] for each in rows_of(log)] == ["dict", "tuple", None, None]


def test_updates_and_upserts_of_one_key_keep_their_order(session, keyed):
    with session.write_many([keyed]) as writer:
        for number in range(200):
            writer.upsert(keyed, user(1, str(number), number))
            writer.update(keyed, {"id": 1, "age": -number})
    assert rows_of(keyed) == [user(1, "199", -199)]


@pytest.mark.parametrize("between", ["update", "frame", "delete"])
def test_a_row_after_an_update_replaces_it(session, keyed, between):
    """Single upserts are taken by a shorter way, which must not pass rows of other columns."""
    with session.write_many([keyed]) as writer:
        for number in range(20):
            writer.upsert(keyed, user(1, "before", 1))
            writer.upsert(keyed, user(2, "before", 2))
            if between == "update":
                writer.update(keyed, {"id": 1, "age": 50})
            elif between == "frame":
                writer.update(keyed, [{"id": 1, "age": 50}, {"id": 2, "age": 60}])
            else:
                writer.delete(keyed, 1)
            writer.upsert(keyed, user(1, "after", number))
            writer.update(keyed, {"id": 2, "age": number})
            writer.flush()
            assert rows_of(keyed)[0] == user(1, "after", number)
            assert rows_of(keyed)[1]["age"] == number


def test_rows_of_a_table_that_was_removed_and_added_again_keep_their_order(session, keyed):
    with session.write_many() as writer:
        writer.upsert(keyed, user(1, "before"))
        writer.remove(keyed)
        writer.upsert(keyed, user(1, "after"))
        for number in range(40_000):  # fill a buffer, which is sent before the flush
            writer.upsert(keyed, user(2, "many", number))
        writer.flush()
    assert rows_of(keyed) == [user(1, "after"), user(2, "many", 39_999)]


@pytest.mark.parametrize("when", ["selected", "altered", "removed"])
def test_a_row_that_is_taken_while_its_writer_is_replaced_keeps_its_place(session, keyed, when):
    """Another thread may change what the short way of single rows relies on at any moment."""
    path = TablePath.parse(keyed.name)
    core = many_writer.ManyWriter(session._connection, None, clock=time.monotonic)

    def change():
        if when == "selected":
            core.take(path, "update", {"id": 2, "age": 0})
        elif when == "altered":
            session.alter_table("users", add_columns={"more": "STRING"})
            core.take(path, "upsert", {**user(2), "more": "x"})
        else:
            core.remove(path)

    take = core.taker(path, "upsert")
    table_writer = core.writer(path)
    whole = table_writer._cores[WHOLE_ROWS]
    plain, whole.taker = whole.taker, lambda row: (change(), plain(row))[1]
    take = table_writer.taker(partial(core.take, path, "upsert"))
    take(user(1, "first"))
    if when == "selected":
        core.take(path, "update", {"id": 1, "age": 99})
    else:
        core.take(path, "upsert", user(1, "last", 99))
    for each in reversed(core._all()):  # a buffer may be sent at any moment
        each.seal()
    session._connection.engine.run(core.flush())
    assert core.outcome(0).rows == {"selected": 3, "altered": 3, "removed": 2}[when]
    (row,) = [each for each in rows_of(session.table("users")) if each["id"] == 1]
    assert (row["name"], row["age"]) == ("first" if when == "selected" else "last", 99)


@pytest.mark.parametrize("when", ["altered", "removed"])
def test_the_short_way_of_single_rows_ends_with_its_writer(session, keyed, when):
    path = TablePath.parse(keyed.name)
    core = many_writer.ManyWriter(session._connection, None, clock=time.monotonic)
    take = core.taker(path, "upsert")
    take(user(1, "first"))
    if when == "altered":
        session.alter_table("users", add_columns={"more": "STRING"})
        core.take(path, "upsert", {**user(2), "more": "x"})
        new = core.writer(path)
        take(user(1, "last"))
        assert new.rows_taken == 3
    else:
        retired = core.writer(path)
        core.remove(path)
        take(user(1, "last"))
        assert core.tables == (path,)
        # Another thread may have looked up the writer before it was removed.
        retired.taker(partial(core.take, path, "upsert"))(user(1, "last"))
        assert core.writer(path).rows_taken == 2
    session._connection.engine.run(core.flush())
    assert rows_of(session.table("users"))[0]["name"] == "last"


def test_changes_are_applied_by_kind(session, log, keyed):
    with session.write_many() as writer:
        for kind, row in [
            ("insert", user(1)),
            ("+I", user(2)),
            ("-U", user(1)),
            ("+U", user(1, "new")),
            ("delete", user(2)),
        ]:
            writer.change("users", kind, row)
        writer.change("clicks", "+I", {"id": 1, "note": "x"})
        with pytest.raises(UnsupportedOperationError, match="no primary key"):
            writer.change("clicks", "-D", {"id": 1})
        with pytest.raises(InvalidValueError, match="not a kind of change"):
            writer.change("users", "upsert", user(1))
    assert rows_of(keyed) == [user(1, "new")]


@dataclass
class User:
    id: int
    name: str | None = None
    age: int | None = None


class Click(NamedTuple):
    note: str | None
    id: int


def test_objects_of_classes_are_written_by_their_fields(session, log, keyed):
    with session.write_many([log, keyed]) as writer:
        writer.upsert(keyed, User(1, "one"))
        writer.upsert(keyed, [User(2), User(3, age=3)])
        writer.append(log, Click("by name", 5))
        writer.delete(keyed, User(2))
    assert rows_of(keyed) == [user(1, "one", None), user(3, None, 3)]
    assert rows_of(log) == [{"id": 5, "note": "by name"}]


def test_a_table_is_written_only_in_its_ways(session, log, keyed):
    with session.write_many([log, keyed]) as writer:
        with pytest.raises(UnsupportedOperationError, match="primary key"):
            writer.append(keyed, user(1))
        for write in (writer.upsert, writer.update, writer.delete):
            with pytest.raises(UnsupportedOperationError, match="no primary key"):
                write(log, {"id": 1})
        with pytest.raises(InvalidValueError, match="no column beside its key"):
            writer.update(keyed, {"id": 1})
        with pytest.raises(InvalidValueError, match="dict of the columns"):
            writer.update(keyed, (1, "x", 2))
        with pytest.raises(FlussError, match="'nane'"):
            writer.update(keyed, {"id": 1, "nane": "x"})
        assert writer.flush().rows == 0


def test_an_error_of_a_row_names_its_table_and_nothing_is_taken(session, log, keyed):
    with session.write_many() as writer:
        writer.append("clicks", {"id": 1})
        for _ in range(2):  # on the short way, and step by step
            with pytest.raises(InvalidValueError, match=rf"{log.name}.*'id' is BIGINT") as refused:
                writer.append("clicks", {"id": "x"})
            assert (refused.value.table, refused.value.row) == (log.name, 1)
        assert writer.flush().rows == 1


# --- tables ---------------------------------------------------------------------------------------


def test_other_tables_are_refused_until_they_are_added(session, log, keyed):
    with session.write_many([log]) as writer:
        for name in (keyed.name, log.name.upper(), f"{log.name}x"):
            with pytest.raises(InvalidValueError, match="not among the 1 tables") as refused:
                writer.append(name, {"id": 1})
            assert refused.value.hint
        writer.add(keyed)
        writer.upsert(keyed, user(1))
        writer.remove(keyed)
        with pytest.raises(InvalidValueError, match="not among"):
            writer.upsert(keyed, user(2))
        assert writer.tables == (log.name,)
        assert writer.flush().rows == 1, "what was taken before is written"


def test_tables_that_do_not_exist(session, log):
    with pytest.raises(TableNotFoundError) as refused:
        session.write_many([log, "clickz"])
    assert "clicks" in refused.value.hint
    with session.write_many() as writer, pytest.raises(TableNotFoundError):
        writer.append("clickz", {"id": 1})


def test_a_column_that_is_added_meanwhile_is_written(session, log, keyed):
    with session.write_many([log, keyed]) as writer:
        writer.append(log, {"id": 1, "note": "old"})
        writer.upsert(keyed, user(1))
        session.alter_table("clicks", add_columns={"more": "STRING"})
        session.alter_table("users", add_columns={"more": "STRING"})
        writer.append(log, {"id": 2, "more": "row"})
        writer.upsert(keyed, pa.table({**{k: [v] for k, v in user(2).items()}, "more": ["frame"]}))
        assert writer.flush().rows == 4
    assert [each["more"] for each in rows_of(session.table("clicks"))] == [None, "row"]
    assert [each["more"] for each in rows_of(session.table("users"))] == [None, "frame"]


@pytest.mark.parametrize("kind", ["reader", "generator"])
def test_the_rest_of_a_stream_is_not_written_without_the_batch_that_was_refused(
    session, keyed, kind
):
    """A refused frame is checked again with current columns; a stream can be read only once."""

    def stream(*parts, **more):
        batches = [
            pa.record_batch({"id": ids, "name": ["x"] * len(ids), "age": pa.nulls(len(ids), pa.int32()), **more})
            for ids in parts
        ]  # fmt: skip
        schema = batches[0].schema
        return pa.RecordBatchReader.from_batches(schema, batches) if kind == "reader" else iter(batches)  # fmt: skip

    null = pa.array([3, None], pa.int64())
    with session.write_many([keyed]) as writer:
        writer.upsert(keyed, user(0))
        session.alter_table("users", set_properties={"note": "changed meanwhile"})
        with pytest.raises(InvalidValueError, match="NULL") as refused:
            writer.upsert(keyed, stream([1, 2], null, [5, 6]))
        assert (refused.value.row, refused.value.table) == (3, keyed.name)
        session.alter_table("users", add_columns={"more": "STRING"})
        writer.upsert(keyed, stream([7], [8], more=["new"]))
    found = session.table("users").to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [0, 1, 2, 7, 8]
    assert found["more"].to_pylist() == [None, None, None, "new", "new"]


def test_columns_that_are_added_one_after_another_are_written(session, log):
    with session.write_many() as writer:
        for number in range(5):
            if number % 2:
                session.alter_table("clicks", add_columns={f"more{number}": "STRING"})
                writer.append(log, {"id": number, f"more{number}": "row"})
            else:
                row = {"id": number, f"more{number}": "frame"}
                with pytest.raises(FlussError, match=f"more{number}"):
                    writer.append(log, [row])
                session.alter_table("clicks", add_columns={f"more{number}": "STRING"})
                deadline = time.monotonic() + 0.8  # less than the pause after other refusals
                while not taken_by(writer, log, [row]):
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
        assert writer.flush().rows == 5
    for each in rows_of(session.table("clicks")):
        assert each[f"more{each['id']}"] == ("row" if each["id"] % 2 else "frame")


def taken_by(writer, table, data):
    try:
        writer.append(table, data)
    except FlussError:
        return False
    return True


def test_concurrent_flushes_all_raise_the_failure_of_rows_they_waited_for(session, log):
    other = session.create_table("visits", LOG)
    writer = session.write_many([log, other])
    writer.append(other, {"id": 0})
    assert writer.flush().rows == 1
    session.drop_table("visits")
    writer.append(log, {"id": 1})
    writer.append(other, {"id": 1})
    core = writer._core
    raised_before = core.failures_raised  # three threads flush now
    core.seal()
    engine().run(core.flush())
    for _ in range(3):
        with pytest.raises(FlussError, match="visits") as failed:
            core.outcome(raised_before)
        assert failed.value.table == other.name
    assert writer.flush().rows == 0
    assert [each["id"] for each in rows_of(log)] == [1]


def test_of_a_dropped_table_rows_are_reported_and_those_of_others_delivered(session, log, keyed):
    other = session.create_table("visits", LOG)
    writer = session.write_many([log, other, keyed])
    writer.append(log, {"id": 1})
    writer.append(other, {"id": 1})
    assert writer.flush().rows == 2
    session.drop_table("visits")
    for number in range(3):
        writer.append(other, {"id": number})
        writer.append(log, {"id": 10 + number})
        writer.upsert(keyed, user(number))
    with pytest.raises(FlussError, match="visits") as failed:
        writer.flush()
    assert failed.value.table == other.name
    assert list(failed.value.failures) == [other.name]
    assert failed.value.progress.not_written == 3
    assert failed.value.progress.missing.tolist() == [1, 2, 3], (
        "rows of the table, in the order of calls"
    )
    delivered = failed.value.delivered
    assert {name: each.rows for name, each in delivered.items()} == {log.name: 3, keyed.name: 3}
    assert "6 rows of 2 other tables were delivered" in "".join(failed.value.__notes__)
    assert writer.flush().rows == 0, "it is raised once"
    with pytest.raises(TableNotFoundError):
        writer.append(other, {"id": 4})
    again = session.create_table("visits", {"id": "BIGINT", "new": "STRING"})
    writer.append(other, {"id": 5, "new": "x"})
    assert writer.flush()[other.name].rows == 1
    assert rows_of(again) == [{"id": 5, "new": "x"}]
    writer.close()


def test_a_table_that_is_dropped_and_created_again_takes_no_rows_of_the_old_one_silently(session):
    session.create_table("twice", LOG)
    writer = session.write_many(["twice"])
    writer.append("twice", {"id": 1})
    writer.flush()
    session.drop_table("twice")
    new = session.create_table("twice", LOG)
    writer.append("twice", {"id": 2})
    with pytest.raises(FlussError) as failed:
        writer.flush()
    assert failed.value.progress.not_written == 1
    writer.append("twice", {"id": 3})
    assert writer.flush().rows == 1
    assert rows_of(new) == [{"id": 3, "note": None}]


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pa.Table.from_pylist, lambda rows: pd.DataFrame(rows).convert_dtypes(), pl.DataFrame, list, lambda rows: pa.Table.from_pylist(rows).to_reader()], ids=["arrow", "pandas", "polars", "dicts", "stream"])  # fmt: skip
def test_a_frame_is_split_by_the_column_of_its_tables(session, log, keyed, make):
    rows = [
        {"table": "users" if number % 3 else "clicks", "id": number // 3, "name": f"{number}" if number % 3 else None, "age": 1 if number % 3 else None, "note": None if number % 3 else f"{number}"}
        for number in range(300)
    ]  # fmt: skip
    if make is list:
        rows = [{k: v for k, v in each.items() if v is not None} for each in rows]
    with session.write_many() as writer:
        taken = writer.route(make(rows))
        assert taken == {log.name: 100, keyed.name: 200}
        report = writer.flush()
        assert {name: each.rows for name, each in report.items()} == taken
    assert [each["note"] for each in rows_of(log)] == [str(3 * each) for each in range(100)]
    # Of the two rows of each key, the second is the last one.
    assert [each["name"] for each in rows_of(keyed)] == [str(3 * each + 2) for each in range(100)]


def test_changes_are_routed(session, log, keyed):
    changes = pa.table(
        {
            "op": ["u", "u", "c", "u", "u"],
            "_change_type": ["insert", "insert", None, "delete", "update_before"],
            "id": [1, 2, 3, 1, 2],
            "name": ["a", "b", None, None, None],
            "age": pa.nulls(5, pa.int32()),
        }
    )
    with session.write_many() as writer:
        names = {"u": keyed, "c": log}
        writer.route(changes.drop_columns(["age"]).append_column("age", changes["age"]).filter(pa.array([True, True, False, True, True])), by="op", tables=names)  # fmt: skip
        writer.route([{"op": "c", "id": 3, "_change_type": "+I"}], by="op", tables=names.get)
        report = writer.flush()
    assert report[keyed.name].rows == 3
    assert report[keyed.name].counts["delete"] == 1
    assert rows_of(keyed) == [user(2, "b", None)]
    assert rows_of(log) == [{"id": 3, "note": None}]
    with session.write_many() as writer:
        for data in (
            [{"t": "clicks", "id": 1, "_change_type": "insert"}, {"t": "clicks", "id": 1, "_change_type": "delete"}],
            pa.table({"t": ["clicks"] * 2, "id": [1, 2], "note": ["", ""], "_change_type": ["insert", "-D"]}),
        ):  # fmt: skip
            with pytest.raises(InvalidValueError, match="is a log") as refused:
                writer.route(data, by="t")
            assert refused.value.row == 1
        assert writer.flush().rows == 0


@pytest.mark.parametrize(
    ("column", "row", "says"),
    [
        (["users", "clicks", None], 2, "is NULL"),
        (["users", "users", "Users"], 2, "users"),
        (["users", "nothing", "users"], 1, "nothing"),
        (["users", "a.b.c", "users"], 1, "a.b.c"),
        (["users", "", "users"], 1, "table"),
        ([1, 2, 3], 0, "not the name of a table"),
    ],
)
@pytest.mark.parametrize("make", [pa.Table.from_pylist, list], ids=["arrow", "dicts"])
def test_a_row_without_a_table_refuses_the_frame(session, log, keyed, column, row, says, make):
    rows = [{"table": name, "id": number, "name": None, "age": None, "note": None} for number, name in enumerate(column)]  # fmt: skip
    if make is list:
        rows = [{"table": each["table"], "id": each["id"]} for each in rows]
    with session.write_many() as writer:
        with pytest.raises(FlussError, match=says) as refused:
            writer.route(make(rows))
        assert refused.value.row == row
        assert writer.flush().rows == 0, "nothing of a refused frame is taken"


def test_columns_of_other_tables_are_left_out_where_they_are_null(session, log, keyed):
    frame = pa.table({"table": ["clicks", "users"], "id": [1, 2], "name": ["lost?", "x"], "age": pa.array([None, 1], pa.int32()), "note": [None, None]})  # fmt: skip
    with session.write_many() as writer:
        with pytest.raises(SchemaMismatchError, match="'name'") as refused:
            writer.route(frame)
        assert (refused.value.table, refused.value.row) == (log.name, 0)
        with pytest.raises(SchemaMismatchError, match="'tabel'"):
            writer.route(frame, by="tabel")
        with pytest.raises(InvalidValueError, match="dicts"):
            writer.route([("clicks", 1)])
        assert writer.route(frame.slice(0, 0)) == {}
        assert writer.route([]) == {}
        assert writer.flush().rows == 0


# --- limits and life ------------------------------------------------------------------------------


def test_closed_writers_and_the_end_of_a_block(session, log):
    with session.write_many([log]) as writer:
        writer.append(log, {"id": 1})
    assert writer.is_closed
    for write in (
        lambda: writer.append(log, {"id": 2}),
        lambda: writer.route([{"table": "clicks"}]),
    ):
        with pytest.raises(ClosedError):
            write()
    writer.close()
    with pytest.raises(ZeroDivisionError), session.write_many([log]) as writer:  # noqa: PT012
        writer.append(log, {"id": 2})
        _ = 1 / 0
    assert [each["id"] for each in rows_of(log)] == [1, 2], "what was taken is written"


def test_a_failure_in_a_block_that_fails_is_a_note(session):
    session.create_table("gone", LOG)
    with pytest.raises(ZeroDivisionError) as raised, session.write_many(["gone"]) as writer:  # noqa: PT012
        writer.append("gone", {"id": 1})
        writer.flush()
        session.drop_table("gone")
        writer.append("gone", {"id": 2})
        _ = 1 / 0
    assert "1 not written" in "".join(raised.value.__notes__)


def test_limits_are_kept(session, log, keyed, monkeypatch):
    monkeypatch.setattr(many_writer, "TABLES_MAX", 1)
    monkeypatch.setattr(table_writer, "CORES_MAX", 2)
    with session.write_many() as writer:
        writer.upsert(keyed, user(1))
        with pytest.raises(LimitExceededError, match="at most 1 tables"):
            writer.append(log, {"id": 1})
        writer.update(keyed, {"id": 1, "age": 2})
        with pytest.raises(LimitExceededError, match="2 different sets"):
            writer.update(keyed, {"id": 1, "name": "x"})
        writer.flush()
        writer.update(keyed, {"id": 1, "name": "x"})
    assert rows_of(keyed) == [user(1, "x", 2)]


def test_threads_share_a_writer(session, log, keyed):
    with session.write_many() as writer:

        def write(part):
            for number in range(500):
                writer.append("clicks", {"id": part * 1_000 + number})
                writer.upsert("users", user(part, str(number)))
                if number % 50 == 0:
                    writer.update("users", {"id": part, "age": number})
                if number % 200 == 0:
                    writer.flush()

        threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert log.count() == 2_000
    assert [each["name"] for each in rows_of(keyed)] == ["499"] * 4


def test_a_dropped_writer_still_delivers(session, log):
    writer = session.write_many([log])
    writer.append(log, {"id": 1})
    del writer
    gc.collect()
    with session.write_many([log]) as writer:
        writer.append(log, {"id": 2})
    deadline = threading.Event()
    for _ in range(100):
        if log.count() == 2:
            break
        deadline.wait(0.05)
    assert log.count() == 2


def test_many_tables_are_opened_and_flushed_together(session):
    names = [f"many_{number}" for number in range(60)]
    for name in names:
        session.create_table(name, LOG, buckets=1)
    with session.write_many(names) as writer:
        taken = writer.route(pa.table({"table": names * 5, "id": range(300), "note": [""] * 300}))
        assert set(taken.values()) == {5}
        assert len(writer.flush()) == 60
    assert [session.table(name).count() for name in names] == [5] * 60
