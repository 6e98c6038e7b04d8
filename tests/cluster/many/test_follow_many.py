"""One reader of many tables: batches with their tables, one cursor, tables that change."""

import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import pytest

import fluss
from fluss import col
from fluss.errors import (
    ClosedError,
    ConfigError,
    CorruptDataError,
    FlussError,
    InvalidValueError,
    PartitionNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.log.decode import Decoder
from fluss.model.options.many_cursor import ManyCursor
from fluss.scan import follow_many, followed_table
from tests.cluster.many.conftest import KEYED, LOG

WAIT_S = 30


def taken(reader, rows_min, *, polls_max=300):
    """The rows of each table, by the short name of the table."""
    found: dict[str, list] = {}
    for _ in range(polls_max):
        for name, batch in reader.poll(0.1):
            found.setdefault(name.partition(".")[2], []).extend(batch.to_pylist())
        if sum(map(len, found.values())) >= rows_min:
            break
    return found


def ids(rows):
    return sorted(each["id"] for each in rows)


def clicks(first, count):
    return [{"id": number, "note": f"{number}"} for number in range(first, first + count)]


def test_what_is_there_and_what_comes_of_all_tables(session, log, keyed):
    log.append(clicks(0, 20))
    with session.follow_many([log, "users"], start="earliest") as reader:
        assert reader.tables == (log.name, keyed.name)
        assert ids(taken(reader, 20)["clicks"]) == list(range(20))
        keyed.upsert([{"id": 1, "name": "one"}])
        keyed.delete([1])
        log.append(clicks(20, 3))
        found = taken(reader, 5)
        assert ids(found["clicks"]) == [20, 21, 22]
        assert [each["_change_type"] for each in found["users"]] == ["insert", "delete"]
        assert reader.schema("users").names[-3:] == ["id", "name", "age"]
        assert reader.stats[log.name].rows_returned == 23
        assert reader.poll(0.0) == []


def test_options_and_places_of_each_table(session, log, keyed):
    log.append(clicks(0, 10))
    keyed.upsert([{"id": 1, "name": "one"}])
    tables = {log: {"columns": ["id"], "filter": col("id") >= 7, "start": "earliest"}, "users": {}}
    with session.follow_many(tables) as reader:
        assert taken(reader, 3) == {"clicks": [{"id": 7}, {"id": 8}, {"id": 9}]}
        keyed.upsert([{"id": 2, "name": "two"}])
        assert ids(taken(reader, 1)["users"]) == [2], "by default only what comes"
    with session.follow_many([log, keyed], start={"users": "earliest"}) as reader:
        assert ids(taken(reader, 2)["users"]) == [1, 2]
    with pytest.raises(InvalidValueError, match=r"place for .*nothing"):
        session.follow_many([log], start={"nothing": 0})
    with pytest.raises(ConfigError, match="'colums'"):
        session.follow_many([log], colums=["id"])
    with pytest.raises(InvalidValueError, match="are a dict"):
        session.follow_many({"clicks": "earliest"})
    with pytest.raises(UnsupportedOperationError, match="never ends"):
        session.follow_many([log]).to_arrow()


def test_the_cursor_goes_on_and_reads_added_tables_from_their_beginning(session, log, keyed):
    log.append(clicks(0, 10))
    with session.follow_many([log, keyed], start="earliest") as reader:
        taken(reader, 10)
        text = str(reader.cursor())
    log.append(clicks(10, 5))
    keyed.upsert([{"id": 5, "name": "five"}])
    session.create_table("visits", LOG).append(clicks(0, 3))
    assert ManyCursor.from_json(text).to_json() == text
    for start in (text, ManyCursor.from_json(text)):
        with session.follow_many(["clicks", "users", "visits"], start=start) as reader:
            found = taken(reader, 9)
            assert {name: ids(rows) for name, rows in found.items()} == {
                "clicks": [10, 11, 12, 13, 14],
                "users": [5],
                "visits": [0, 1, 2],
            }


def test_the_cursor_stands_after_what_was_given_out(session, log, keyed):
    for number in range(6):
        log.append(clicks(number, 1))
        keyed.upsert([{"id": number, "name": "x"}])
    seen: Counter = Counter()
    cursor = "earliest"
    for _ in range(12):
        with session.follow_many([log, keyed], start=cursor) as reader:
            for name, batch in reader:
                seen.update((name, each["id"]) for each in batch.to_pylist())
                cursor = reader.cursor()
                break
        if len(seen) == 12:
            break
    assert len(seen) == 12
    assert set(seen.values()) == {1}, "no row twice, none left out"


def test_tables_are_added_and_removed_while_it_reads(session, log, keyed):
    log.append(clicks(0, 5))
    with session.follow_many([keyed]) as reader:
        assert reader.poll(0.0) == []
        reader.add(log, start="earliest", columns=["id"])
        assert ids(taken(reader, 5)["clicks"]) == [0, 1, 2, 3, 4]
        with pytest.raises(InvalidValueError, match="followed already"):
            reader.add("clicks")
        reader.remove("clicks")
        with pytest.raises(InvalidValueError, match="not followed") as refused:
            reader.remove("click")
        assert refused.value.hint
        log.append(clicks(5, 5))
        keyed.upsert([{"id": 1, "name": "x"}])
        assert set(taken(reader, 1)) == {"users"}
        assert reader.tables == (keyed.name,)
        assert set(reader.cursor().tables) == {keyed.name}
        reader.remove(keyed)
        assert reader.poll(0.05) == []
        reader.add(log, start="earliest")
        assert len(taken(reader, 10)["clicks"]) == 10


def test_a_dropped_table_is_reported_and_the_others_are_read(session, log):
    session.create_table("gone", LOG).append(clicks(0, 1))
    with session.follow_many([log, "gone"], start="earliest") as reader:
        assert len(taken(reader, 1)["gone"]) == 1
        session.drop_table("gone")
        with pytest.raises(FlussError) as failed:
            taken(reader, 1)
        assert failed.value.table == str(session.path_of("gone"))
        log.append(clicks(0, 2))
        found, deadline = 0, time.monotonic() + WAIT_S
        while found < 2 and time.monotonic() < deadline:
            try:
                found += sum(each.batch.num_rows for each in reader.poll(0.1))
            except FlussError as error:  # raised as long as there are no rows
                assert error.table == failed.value.table  # noqa: PT017 - raised between the rows
        assert found == 2
        reader.remove("gone")
        log.append(clicks(2, 1))
        assert ids(taken(reader, 1)["clicks"]) == [2]
        session.create_table("gone", LOG).append(clicks(7, 1))
        reader.add("gone", start="earliest")
        assert ids(taken(reader, 1)["gone"]) == [7]


def test_polls_wait_after_a_dropped_table_was_reported(session, log):
    days = session.create_table("days", {"id": "BIGINT", "day": "STRING"}, partition_by="day")
    days.append([{"id": 1, "day": "a"}])
    session.create_table("gone", LOG, buckets=3)
    with session.follow_many([log, "gone", days], start="earliest") as reader:
        assert ids(taken(reader, 1)["days"]) == [1]
        session.drop_table("gone")
        session.drop_table("days")
        reported, deadline = set(), time.monotonic() + WAIT_S
        while len(reported) < 2 and time.monotonic() < deadline:
            try:
                reader.poll(0.1)
            except FlussError as error:
                reported.add(error.table)  # the first failure may be raised again before the second
        assert reported == {str(session.path_of("gone")), days.name}
        begin = time.monotonic()
        for _ in range(3):
            with pytest.raises(FlussError):
                reader.poll(0.3)
        assert time.monotonic() - begin > 0.8
        log.append(clicks(0, 2))
        assert ids(taken_after_errors(reader, 2)) == [0, 1]
        assert {name.partition(".")[2] for name in reader.cursor().tables} == {"clicks", "gone", "days"}  # fmt: skip


def taken_after_errors(reader, rows_min):
    rows, deadline = [], time.monotonic() + WAIT_S
    while len(rows) < rows_min and time.monotonic() < deadline:
        with suppress(FlussError):  # raised by polls without rows
            rows += [row for each in reader.poll(0.1) for row in each.batch.to_pylist()]
    return rows


def test_a_cursor_of_a_table_that_was_created_again_is_refused(session, log):
    session.create_table("again", LOG)
    with session.follow_many([log, "again"], start="earliest") as reader:
        cursor = reader.cursor()
    session.drop_table("again")
    session.create_table("again", LOG)
    with pytest.raises(FlussError, match="again"):
        session.follow_many([log, "again"], start=cursor)


def test_damaged_rows_of_one_table_do_not_stop_the_others(session, log, keyed, monkeypatch):
    log.append(clicks(0, 3))
    keyed.upsert([{"id": 1, "name": "x"}])
    decode = Decoder.decode

    def damaged(self, fetched):
        if self._table.table_path.table_name == "clicks":
            raise CorruptDataError("damaged", what="log batch", at=0, why="a test")
        return decode(self, fetched)

    monkeypatch.setattr(Decoder, "decode", damaged)
    rows, errors = [], []
    with session.follow_many([log, keyed], start="earliest") as reader:
        for _ in range(100):
            try:
                rows += reader.poll(0.1)
            except CorruptDataError as error:
                errors.append(error.table)
            if rows and len(errors) > 1:
                break
        assert [each.table for each in rows] == [keyed.name]
        assert set(errors) == {log.name}
        assert {offset for _, offset in reader.cursor().tables[log.name].offsets} == {0}
        reader.remove(log)
        monkeypatch.undo()
        reader.add(log, start="earliest")
        assert len(taken(reader, 3)["clicks"]) == 3


def test_new_partitions_join_and_dropped_ones_are_skipped(session, log, monkeypatch):
    monkeypatch.setattr(followed_table, "PARTITIONS_EVERY_S", 0.0)
    schema = {"id": "BIGINT", "day": "STRING"}
    days = session.create_table("days", schema, partition_by="day", buckets=1)
    options = {"missing_partitions": "skip"}
    with (
        session.follow_many({log: {}, days: options}) as reader,
        session.follow_many([days]) as strict,
    ):
        reader.poll(0.0)
        days.append([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
        assert ids(taken(reader, 2)["days"]) == [1, 2]
        assert ids(taken(strict, 2)["days"]) == [1, 2]
        days.drop_partition({"day": "a"})
        log.append(clicks(0, 1))
        days.append([{"id": 3, "day": "b"}])
        found = taken(reader, 2)
        assert (ids(found["days"]), ids(found["clicks"])) == ([3], [0])
        with pytest.raises(PartitionNotFoundError) as failed:
            taken(strict, 2)
        assert failed.value.table == days.name


def test_one_request_asks_for_all_tables(wire, database):
    with fluss.connect(f"fluss://{wire.bootstrap}/{database}") as session:
        names = [f"t{number}" for number in range(5)]
        for name in names:
            session.create_table(name, LOG, buckets=1).append(clicks(0, 2))
        with session.follow_many(names, start="earliest") as reader:
            taken(reader, 10)
            with wire.recording() as seen:
                taken(reader, 1, polls_max=2)
        asked = [len(each.request.tables_req) for each in seen.of("FETCH_LOG")]
        assert max(asked) == 5


@dataclass
class Click:
    id: int
    note: str | None


@dataclass
class User:
    id: int
    name: str | None


def test_rows_of_classes(session, log, keyed):
    clicked, users = log.typed(Click), keyed.typed(User)
    log.append(clicks(1, 1))
    keyed.upsert([{"id": 1, "name": "one"}])
    keyed.delete([1])
    got: list = []
    with session.follow_many([clicked, users], start="earliest") as reader:
        while len(got) < 3:
            for name, batch in reader.poll(1.0):
                if name == log.name:
                    got += clicked.rows_of(batch)
                else:
                    got += [(each.change_type.long_name, each.row) for each in users.changes_of(batch)]  # fmt: skip
    assert Click(1, "1") in got
    assert [each for each in got if isinstance(each, tuple)] == [
        ("insert", User(1, "one")),
        ("delete", User(1, "one")),
    ]


def test_an_end_from_another_thread(session, log):
    reader = session.follow_many([log])
    threading.Timer(0.2, reader.close).start()
    assert list(reader) == []
    with pytest.raises(ClosedError):
        reader.poll()
    with pytest.raises(ClosedError):
        reader.add("users")
    reader.close()


def test_tables_that_do_not_exist_and_too_many(session, log, keyed, monkeypatch):
    with pytest.raises(TableNotFoundError) as refused:
        session.follow_many([log, "userz"])
    assert "users" in refused.value.hint
    monkeypatch.setattr(follow_many, "TABLES_MAX", 1)
    with pytest.raises(InvalidValueError, match="at most 1 tables"):
        session.follow_many([log, keyed])
    with session.follow_many([]) as reader:
        assert reader.poll(0.01) == []


def test_a_large_table_does_not_hold_back_a_small_one(session, log, keyed):
    log.append({"id": list(range(200_000)), "note": ["some text that is long enough"] * 200_000})
    keyed.upsert([{"id": 1, "name": "x"}])
    with session.follow_many([log, keyed], start="earliest") as reader:
        before = 0
        for name, batch in reader:
            if name == keyed.name:
                break
            before += batch.num_rows
        assert before < 150_000


def test_changes_of_many_tables_are_copied(session, log, keyed):
    session.create_table("clicks_copy", LOG)
    session.create_table("users_copy", KEYED, primary_key="id")
    log.append(clicks(0, 7))
    keyed.upsert([{"id": number, "name": "x"} for number in range(5)])
    keyed.delete([3])
    copies = {log.name: "clicks_copy", keyed.name: "users_copy"}
    with (
        session.follow_many({log: {}, keyed: {"with_metadata": ["_change_type"]}}, start="earliest") as reader,
        session.write_many(copies.values()) as writer,
    ):  # fmt: skip
        rows = 0
        while rows < 13:
            for name, batch in reader.poll(1.0):
                writer.write(copies[name], batch)
                rows += batch.num_rows
    assert ids(session.table("clicks_copy").to_arrow().to_pylist()) == list(range(7))
    assert ids(session.table("users_copy").to_arrow().to_pylist()) == [0, 1, 2, 4]
