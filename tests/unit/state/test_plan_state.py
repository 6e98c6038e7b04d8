"""Which way the state of a bucket is read, and what is refused before anything is."""

from dataclasses import replace

import pytest

from fluss.errors import (
    InvalidValueError,
    MissingExtraError,
    OffsetOutOfRangeError,
    SnapshotNotFoundError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from fluss.state.plan_state import (
    SMALL_CHANGES_MAX,
    StateFacts,
    check_strategy,
    choose_strategy,
    needs_snapshots,
)

MANY = SMALL_CHANGES_MAX + 1
PLAIN = StateFacts(
    pin=MANY,
    earliest=0,
    is_past=False,
    offers_scan_kv=False,
    snapshot_offset=None,
    has_rocksdb=True,
    is_full_image=True,
)


def chosen(**facts):
    return choose_strategy(replace(PLAIN, **facts))[0]


@pytest.mark.parametrize(
    ("facts", "strategy"),
    [
        ({"pin": 0}, "changelog"),
        ({}, "changelog"),
        ({"offers_scan_kv": True}, "scan_kv"),
        ({"offers_scan_kv": True, "snapshot_offset": 5}, "scan_kv"),
        ({"pin": SMALL_CHANGES_MAX}, "limit_scan"),
        ({"snapshot_offset": MANY - 1}, "snapshot"),
        ({"snapshot_offset": MANY + 1}, "snapshot"),
        ({"snapshot_offset": 5, "has_rocksdb": False}, "changelog"),
        ({"earliest": 7}, "limit_scan"),
        ({"earliest": 7, "snapshot_offset": 9}, "snapshot"),
        ({"earliest": 7, "snapshot_offset": 3}, "limit_scan"),
    ],
)
def test_the_current_state_is_read_by_the_best_strategy(facts, strategy):
    assert chosen(**facts) == strategy


@pytest.mark.parametrize(
    ("facts", "strategy"),
    [
        ({}, "changelog"),
        ({"snapshot_offset": 5, "offers_scan_kv": True}, "changelog"),
        ({"earliest": 7, "snapshot_offset": 9, "offers_scan_kv": True}, "snapshot"),
        ({"earliest": 7, "snapshot_offset": MANY + 1}, "snapshot"),
        ({"earliest": 7, "snapshot_offset": MANY + 1, "offers_scan_kv": True}, "scan_kv"),
        ({"earliest": 7, "pin": 20}, "limit_scan"),
    ],
)
def test_a_past_moment_is_replayed_where_the_log_is_whole_and_else_rolled_back(facts, strategy):
    assert chosen(is_past=True, **facts) == strategy


@pytest.mark.parametrize("is_past", [False, True])
def test_a_changelog_without_images_rolls_forward_only(is_past):
    facts = {"is_full_image": False, "is_past": is_past}
    for offers in (False, True):
        assert chosen(**facts, offers_scan_kv=offers) == "changelog"
        more = {"earliest": 7, "snapshot_offset": MANY}
        assert chosen(**facts, **more, offers_scan_kv=offers) == "snapshot"
    for without in (
        {"earliest": 7},
        {"earliest": 7, "snapshot_offset": MANY + 1},
        {"earliest": 7, "snapshot_offset": 9, "has_rocksdb": False},
    ):
        with pytest.raises(UnsupportedOperationError, match="'wal'") as raised:
            chosen(**facts, **without)
        assert raised.value.hint
        # It may still be the state of that offset, where nothing has been written since.
        assert chosen(**facts, **without, offers_scan_kv=True) == "scan_kv"
    with pytest.raises(UnsupportedOperationError, match="'wal'"):
        chosen(**facts, earliest=MANY + 1, offers_scan_kv=True)


@pytest.mark.parametrize("is_past", [False, True])
def test_a_pin_before_the_beginning_of_the_log_is_refused(is_past):
    with pytest.raises(OffsetOutOfRangeError, match="begins at offset 50") as raised:
        chosen(pin=49, earliest=50, snapshot_offset=60, is_past=is_past)
    assert "50" in raised.value.hint


@pytest.mark.parametrize(
    ("strategy", "facts", "error"),
    [
        ("changelog", {"earliest": 1}, OffsetOutOfRangeError),
        ("scan_kv", {}, UnsupportedVersionError),
        ("scan_kv", {"offers_scan_kv": True, "pin": 3, "earliest": 4}, OffsetOutOfRangeError),
        ("limit_scan", {"pin": 3, "earliest": 4}, OffsetOutOfRangeError),
        ("snapshot", {}, SnapshotNotFoundError),
        ("snapshot", {"has_rocksdb": False, "snapshot_offset": 3}, MissingExtraError),
        ("snapshot", {"pin": 3, "earliest": 4, "snapshot_offset": 5}, OffsetOutOfRangeError),
        (
            "snapshot",
            {"pin": 3, "snapshot_offset": 5, "is_full_image": False},
            UnsupportedOperationError,
        ),
    ],
)
def test_a_strategy_that_cannot_be_used_is_refused_with_what_it_needs(strategy, facts, error):
    with pytest.raises(error) as raised:
        check_strategy(strategy, replace(PLAIN, **facts))
    assert raised.value.hint


def test_a_strategy_that_can_be_used_is_used():
    facts = replace(PLAIN, offers_scan_kv=True, snapshot_offset=3)
    for strategy in ("scan_kv", "limit_scan", "snapshot", "changelog"):
        assert check_strategy(strategy, facts) == (strategy, "it was asked for")


def test_a_strategy_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(InvalidValueError, match="snapshoot") as raised:
        check_strategy("snapshoot", PLAIN)
    assert "'snapshot'" in raised.value.hint


def test_snapshots_are_only_asked_for_where_it_matters():
    assert needs_snapshots(None, PLAIN)
    assert needs_snapshots(None, replace(PLAIN, is_past=True, earliest=3))
    assert needs_snapshots(None, replace(PLAIN, is_full_image=False, pin=3))
    assert needs_snapshots("snapshot", PLAIN)
    assert not needs_snapshots("changelog", PLAIN)
    assert not needs_snapshots(None, replace(PLAIN, pin=0))
    assert not needs_snapshots(None, replace(PLAIN, pin=SMALL_CHANGES_MAX))
    assert not needs_snapshots(None, replace(PLAIN, offers_scan_kv=True))
    assert not needs_snapshots(None, replace(PLAIN, is_past=True))


@pytest.mark.parametrize(
    ("facts", "strategy"),
    [
        ({"pin": 0}, "changelog"),
        ({"offers_scan_kv": True}, "scan_kv"),
        ({"offers_scan_kv": True, "is_full_image": False}, "scan_kv"),
        ({"snapshot_offset": MANY}, "snapshot"),
        ({}, "limit_scan"),
    ],
)
def test_where_rows_expire_only_servers_know_the_state(facts, strategy):
    assert chosen(expires=True, **facts) == strategy


def test_where_rows_expire_an_earlier_state_is_refused_unless_the_changelog_is_asked_for():
    facts = replace(PLAIN, expires=True, is_past=True)
    with pytest.raises(UnsupportedOperationError, match="expire"):
        choose_strategy(facts)
    assert check_strategy("changelog", facts)[0] == "changelog"
