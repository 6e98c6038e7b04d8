"""Following a log: what is there, what comes, partitions that join, and an end from outside."""

import threading

import pytest

import fluss.scan.follow
from fluss import col
from fluss.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    PartitionNotFoundError,
    UnsupportedOperationError,
)
from fluss.log.decode import Decoder


def taken(follow, rows_min, *, polls_max=200):
    found = []
    for _ in range(polls_max):
        found += follow.poll(0.1)
        if sum(each.num_rows for each in found) >= rows_min:
            break
    return [row for batch in found for row in batch.to_pylist()]


def test_what_is_there_and_what_comes(events, rows):
    with events.follow(start="earliest", with_metadata=["_log_offset"]) as follow:
        assert len(taken(follow, 1_000)) == 1_000
        events.append(rows.slice(0, 40))
        assert sorted(each["id"] for each in taken(follow, 40)) == list(range(40))
        cursor = follow.cursor()
        events.append(rows.slice(0, 3))
    assert events.scan(start=cursor).count() == 3


def test_by_default_only_what_comes(events, rows):
    with events.follow(columns=["id"]) as follow:
        assert follow.poll(0.05) == []
        events.append(rows.slice(0, 5))
        assert taken(follow, 5) == [{"id": each} for each in range(5)] or follow.stats.rows_returned


def test_partitions_that_are_created_join(parted, rows, monkeypatch):
    monkeypatch.setattr(fluss.scan.followed_table, "PARTITIONS_EVERY_S", 0.0)
    with parted.follow(columns=["id", "_partition"]) as follow:
        follow.poll(0.05)
        new = rows.slice(0, 2).set_column(1, "day", [["2026-02-01"] * 2])
        parted.append(new)
        assert sorted(each["_partition"] for each in taken(follow, 2)) == ["2026-02-01"] * 2


def test_changes_of_a_keyed_table_are_followed(keyed):
    with keyed.follow() as follow:
        follow.poll(0.05)
        keyed.delete({"id": [500]})
        (row,) = taken(follow, 1)
        assert (row["_change_type"], row["id"]) == ("delete", 500)


@pytest.mark.parametrize(
    "predicate",
    [
        col("_log_offset") >= 100,
        col("_bucket") == 2,
        (col("_bucket") == 1) | (col("id") < 5),
        (col("_change_type") == "insert") & (col("x") > 100),
        col("_partition").is_null() & (col("id") >= 990),
    ],
    ids=str,
)
def test_conditions_on_metadata_and_rows_are_those_of_a_scan(events, rows, predicate):
    expected = sorted(events.scan(filter=predicate).to_arrow().column("id").to_pylist())
    assert 0 < len(expected) < 1_000
    with events.follow(start="earliest", filter=predicate, columns=["id"]) as follow:
        assert sorted(each["id"] for each in taken(follow, len(expected))) == expected
        assert follow.stats.rows_returned == len(expected)


def test_a_time_to_begin_at_is_exact(events, rows):
    stamped = events.scan(with_metadata=["_commit_timestamp"]).to_arrow()
    times = sorted(set(stamped.column("_commit_timestamp").to_pylist()))
    middle = times[len(times) // 2]
    expected = events.scan(start=middle).count()
    with events.follow(start=middle) as follow:
        assert len(taken(follow, expected)) == expected


def test_the_cursor_is_behind_the_batch_that_was_given_out_and_no_further(events):
    with events.follow(start="earliest", columns=["id"]) as follow:
        found, cursors = [], []
        for batch in follow:
            found += batch.column("id").to_pylist()
            cursors.append((len(found), follow.cursor()))
            if len(found) == 1_000:
                break
    assert len(cursors) > 4
    for count, cursor in cursors:
        rest = events.scan(start=cursor, columns=["id"]).to_arrow().column("id").to_pylist()
        assert sorted(found[:count] + rest) == list(range(1_000))


def test_the_cursor_passes_rows_that_no_condition_wants(events):
    with events.follow(start="earliest", filter=col("id") < 0) as follow:
        for _ in range(50):
            assert follow.poll(0.1) == []
            if follow.stats.rows_read == 1_000:
                break
        assert events.scan(start=follow.cursor()).count() == 0


def test_who_is_interrupted_while_rows_are_decoded_loses_none(events, monkeypatch):
    decode, calls = Decoder.decode, []

    def interrupted(decoder, fetched):
        calls.append(fetched)
        for number, each in enumerate(decode(decoder, fetched)):
            if number == 1 and len(calls) % 2:
                raise KeyboardInterrupt
            yield each

    monkeypatch.setattr(Decoder, "decode", interrupted)
    found = []
    with events.follow(start="earliest", columns=["id"]) as follow:
        for _ in range(200):
            try:
                found += [
                    each for batch in follow.poll(0.1) for each in batch.column(0).to_pylist()
                ]
            except KeyboardInterrupt:
                continue
            if len(found) >= 1_000:
                break
    assert sorted(found) == list(range(1_000))
    assert len(calls) > 4


def test_a_partition_that_is_dropped_is_an_error_unless_it_may_be(parted, rows):
    strict = parted.follow(columns=["id"])
    lenient = parted.follow(columns=["id"], missing_partitions="skip")
    assert strict.poll(0.05) == lenient.poll(0.05) == []
    parted.drop_partition({"day": "2026-01-02"})
    with pytest.raises(PartitionNotFoundError, match="missing_partitions='skip'"):
        taken(strict, 1)
    parted.append(rows.filter([each != 1 for each in range(3)] * 333 + [True]))
    assert len(taken(lenient, 667)) == 667
    assert parted.scan(start=lenient.cursor()).count() == 0
    strict.close()
    lenient.close()


def test_closing_ends_an_iteration_on_another_thread(events):
    follow = events.follow()
    threading.Timer(0.3, follow.close).start()
    assert list(follow) == []
    with pytest.raises(ClosedError):
        follow.poll()
    assert "closed" in repr(follow)


def test_what_has_no_end_is_not_collected(events):
    follow = events.follow()
    with pytest.raises(UnsupportedOperationError, match="never ends"):
        follow.to_arrow()
    with pytest.raises(UnsupportedOperationError, match="never ends"):
        follow.to_pandas()
    for option in ({"end": 5}, {"limit": 5}, {"strat": 5}):
        with pytest.raises(ConfigError):
            events.follow(**option)
    with pytest.raises(InvalidValueError, match="cuts a log"):
        events.follow(mode="state")
