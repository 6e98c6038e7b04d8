"""Following a log: what is there, what comes, partitions that join, and an end from outside."""

import threading

import pytest

import fluss.session.follow
from fluss.errors import ClosedError, ConfigError, InvalidValueError, UnsupportedOperationError


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
    monkeypatch.setattr(fluss.session.follow, "PARTITIONS_EVERY_S", 0.0)
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


def test_closing_ends_whoever_iterates(events):
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
