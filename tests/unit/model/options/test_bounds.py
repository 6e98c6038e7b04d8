"""Every way to say where a scan begins or ends, and what is refused."""

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError
from fluss.model.offsets import OffsetSpec, OffsetType
from fluss.model.options.bounds import EARLIEST, LATEST, BoundKind, Cursor, bound_of
from fluss.model.paths import TableBucket

BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("value", "kind", "number"),
    [
        ("earliest", BoundKind.EARLIEST, 0),
        (" Latest ", BoundKind.LATEST, 0),
        (-2, BoundKind.EARLIEST, 0),
        (-1, BoundKind.LATEST, 0),
        (OffsetSpec.earliest(), BoundKind.EARLIEST, 0),
        (OffsetSpec.timestamp(7), BoundKind.TIME, 7),
        (OffsetType.LATEST, BoundKind.LATEST, 0),
        (0, BoundKind.OFFSET, 0),
        ("123", BoundKind.OFFSET, 123),
        ("-10m", BoundKind.AGO, 600_000),
        (timedelta(seconds=-2), BoundKind.AGO, 2_000),
        (datetime(1970, 1, 1, 1, 0, 1, tzinfo=BERLIN), BoundKind.TIME, 1_000),
        ("1970-01-01T00:00:02Z", BoundKind.TIME, 2_000),
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), BoundKind.TIME, 1),
    ],
)
def test_a_bound_is_written_in_many_ways(value, kind, number):
    bound = bound_of(value, "start")
    assert (bound.kind, bound.number) == (kind, number)


def test_offsets_are_given_bucket_by_bucket():
    bound = bound_of({0: 5, ("EU", 1): 7, TableBucket.with_partition(3, 9, 2): 8}, "start")
    assert dict(bound.offsets) == {(None, 0): 5, ("EU", 1): 7, (9, 2): 8}


@pytest.mark.parametrize(
    "value",
    [
        True,
        -3,
        2**63,
        1.5,
        "earlyest",
        "-10 fortnights",
        "2026-01-01T00:00:00",
        datetime(2026, 1, 1),  # noqa: DTZ001 - that is what is refused
        datetime(1969, 12, 31, tzinfo=UTC),
        {"a": 1},
        {True: 1},
        {0: "5"},
        {0: -3},
        {("EU", "x"): 1},
        "{}",
        '{"version":2}',
        '{"version":1,"table_id":true,"offsets":[]}',
        "9" * 5000,
        object(),
    ],
)
def test_what_is_no_bound_is_refused_with_the_ways_to_say_one(value):
    with pytest.raises(InvalidValueError) as caught:
        bound_of(value, "start")
    assert caught.value.hint


def test_the_error_of_a_slip_names_what_was_meant():
    with pytest.raises(InvalidValueError, match="did you mean 'earliest'"):
        bound_of("earlyest", "start")


def test_a_time_ago_is_counted_from_the_moment_of_planning():
    bound = bound_of("-10s", "start")
    assert bound.at(60_000).number == 50_000
    assert bound.at(1_000).number == 0
    assert EARLIEST.at(5) is EARLIEST
    assert LATEST.at(5) is LATEST


OFFSETS = st.dictionaries(
    st.tuples(st.none() | st.integers(0, 2**40), st.integers(0, 2**20)), st.integers(0, 2**60)
)


@given(OFFSETS, st.integers(0, 2**40))
def test_a_cursor_travels_as_text(offsets, table_id):
    places = {
        TableBucket.with_partition(table_id, partition, bucket): offset
        for (partition, bucket), offset in offsets.items()
    }
    cursor = Cursor.of(table_id, places)
    assert Cursor.from_json(cursor.to_json()) == cursor
    assert bound_of(str(cursor), "start").cursor == cursor
    assert dict(cursor.offsets) == offsets


@given(st.text(max_size=40))
def test_a_text_becomes_a_bound_or_a_refusal(text):
    with contextlib.suppress(InvalidValueError):
        assert str(bound_of(text, "end"))
