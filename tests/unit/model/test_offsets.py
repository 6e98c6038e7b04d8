from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from fluss.errors import InvalidValueError
from fluss.model.offsets import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    OffsetSpec,
    OffsetType,
    offset_spec,
)
from tests.support.copies import pickled

NOON_MS = 1_704_067_200_000
NOON = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "keywords"),
    [
        (OffsetSpec.latest(), {}),
        (OffsetSpec.Latest, {}),
        (OffsetType.LATEST, {}),
        ("latest", {}),
        ("LATEST", {}),
        (LATEST_OFFSET, {}),
        (None, {"offset_type": "latest"}),
        (None, {"offset_type": OffsetType.LATEST}),
    ],
)
def test_the_latest_offset_can_be_asked_for_in_every_documented_way(asked, keywords):
    assert offset_spec(asked, **keywords) == OffsetSpec.latest()


@pytest.mark.parametrize(
    "asked", [OffsetSpec.Earliest, OffsetType.EARLIEST, "Earliest", EARLIEST_OFFSET]
)
def test_so_can_the_earliest(asked):
    assert offset_spec(asked) == OffsetSpec.earliest()


@pytest.mark.parametrize(
    ("asked", "keywords"),
    [
        (OffsetSpec.timestamp(NOON_MS), {}),
        (OffsetSpec.Timestamp(NOON_MS), {}),
        (NOON_MS, {}),
        (NOON, {}),
        (NOON.astimezone(timezone(timedelta(hours=5))), {}),
        ("timestamp", {"timestamp": NOON_MS}),
        (None, {"offset_type": "timestamp", "timestamp": NOON_MS}),
        (None, {"offset_type": OffsetType.TIMESTAMP, "timestamp": NOON}),
        (None, {"timestamp": NOON_MS}),
    ],
)
def test_so_can_an_offset_by_time(asked, keywords):
    assert offset_spec(asked, **keywords) == OffsetSpec(OffsetType.TIMESTAMP, NOON_MS)


@pytest.mark.parametrize(
    ("asked", "keywords", "why"),
    [
        (None, {}, "No offset"),
        ("latest", {"offset_type": "latest"}, "twice"),
        ("newest", {}, "not a kind of offset"),
        ("timestamp", {}, "no time is given"),
        ("latest", {"timestamp": 5}, "only to it"),
        (OffsetSpec.latest(), {"timestamp": 5}, "both given"),
        (5, {"timestamp": 5}, "both given"),
        (-3, {}, "not one in milliseconds"),
        (2**63, {}, "not one in milliseconds"),
        (1.5, {}, "not a time"),
        (True, {}, "not a time"),
        (NOON.replace(tzinfo=None), {}, "has no zone"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked, keywords, why):
    with pytest.raises(InvalidValueError) as caught:
        offset_spec(asked, **keywords)
    assert why in str(caught.value)


def test_a_mistyped_kind_brings_the_right_one():
    with pytest.raises(InvalidValueError) as caught:
        offset_spec("lastest")
    assert caught.value.hint == "did you mean 'latest'?"


def test_an_offset_is_shown_as_it_is_written_and_can_be_a_key():
    assert repr(OffsetSpec.latest()) == "OffsetSpec.latest()"
    assert repr(OffsetSpec.timestamp(5)) == "OffsetSpec.timestamp(5)"
    assert {OffsetSpec.timestamp(5)} == {pickled(OffsetSpec.timestamp(5))}
    assert (EARLIEST_OFFSET, LATEST_OFFSET) == (-2, -1)
