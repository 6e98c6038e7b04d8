"""Tables that change between two queries of one frame, and between the requests of one query.

A frame knows its table from the query before. It asks at the same time what the table is now, and
where the known table ends; here either answer comes first, and the table changes between them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import polars as pl
import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.errors import FlussError, SchemaMismatchError, TableNotFoundError
from fluss.scan.scan_planner import _Pinning
from fluss_polars.lazy_scan import FlussScan
from tests.support.servers.rescaling import needs_rescaling, rescale

ANSWER_S_MAX = 10.0
OTHERS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "day": ["a", "b", "c"],
        "name": ["x", "y", "z"],
        "score": [0.5, 1.5, 2.5],
    }
)


def dropped(session):
    session.drop_table("events")


def created_again(session):
    session.drop_table("events")
    session.create_table("events", OTHERS, buckets=2).append(OTHERS)


def created_with_other_types(session):
    session.drop_table("events")
    session.create_table("events", pa.schema([("id", pa.string())]), buckets=1)


def with_another_column(session):
    session.alter_table("events", add_columns=pa.schema([("extra", pa.int32())]))
    added = pa.array([5, 6, 7], pa.int32())
    session.table("events").append(OTHERS.append_column("extra", added))


def with_more_rows(session):
    session.table("events").append(OTHERS)


CHANGES = (
    dropped,
    created_again,
    created_with_other_types,
    with_another_column,
    with_more_rows,
)


def outcome(query):
    """The rows of a query, or its error."""
    try:
        return query.collect().sort("id").rows()
    except (FlussError, pl.exceptions.PolarsError) as error:
        return type(error)


def queries_of(frame):
    return (
        frame.select("id", "name"),
        frame.filter(pl.col("id") < 5).select("id", "score"),
        frame.filter(pl.col("name") == "z").select("id"),
        frame.select("id").head(10_000),
    )


@pytest.fixture
def plainly(monkeypatch):
    """`plainly(query)`: its outcome where every query opens the table before it plans."""

    def collected(query):
        with monkeypatch.context() as patch:
            patch.setattr(FlussScan, "_planned_as_known", lambda *_: None)
            return outcome(query)

    return collected


@pytest.mark.parametrize("change", CHANGES)
def test_a_query_sees_what_has_changed_since_the_query_before_it(events, session, plainly, change):
    frame = pl.scan_fluss(events)
    before = [outcome(query) for query in queries_of(frame)]
    assert [len(rows) for rows in before] == [1_000, 5, 0, 1_000]
    change(session)
    after = [outcome(query) for query in queries_of(frame)]
    assert after == [plainly(query) for query in queries_of(frame)]
    assert after != before
    assert after == [outcome(query) for query in queries_of(frame)]


def test_a_query_sees_partitions_that_came_and_went(parted, plainly):
    frame = pl.scan_fluss(parted)
    days = frame.group_by("day").len().rename({"day": "id"})
    assert len(outcome(days)) == 3
    parted.create_partition({"day": "2026-02-01"})
    parted.append(OTHERS.slice(0, 1).set_column(1, "day", pa.array(["2026-02-01"])))
    added = outcome(days)
    assert ("2026-02-01", 1) in added
    assert added == plainly(days)
    gone = parted.partitions()[0].partition_name
    parted.drop_partition({"day": gone})
    left = outcome(days)
    assert left == [each for each in added if each[0] != gone] == plainly(days)


def test_a_query_sees_partitions_with_more_buckets_than_the_others(parted, session, plainly):
    needs_rescaling(session)
    frame = pl.scan_fluss(parted)
    days = frame.group_by("day").len().rename({"day": "id"})
    assert len(outcome(days)) == 3
    rescale(session, "parted", 5)
    parted.create_partition({"day": "2026-02-01"})
    many = pa.concat_tables([OTHERS] * 50).set_column(1, "day", pa.array(["2026-02-01"] * 150))
    session.table("parted").append(many)
    found = outcome(days)
    assert ("2026-02-01", 150) in found
    assert found == plainly(days)


# --- between the two requests ---------------------------------------------------------------------


class Between:
    """Changes a table after the first of the two answers, and holds the second until then."""

    def __init__(self, monkeypatch, change, *, first):
        self._change, self._first = change, first
        self._is_begun = False
        self._changed = threading.Event()
        for owner, name in ((ClientConnection, "table"), (_Pinning, "_pinned")):
            monkeypatch.setattr(owner, name, self._held(getattr(owner, name), name))

    @property
    def has_happened(self):
        return self._changed.is_set()

    def _held(self, ask, name):
        async def asked(*given):
            # The change asks for the table as well.
            if name == "table" and "unless_changed" not in str(asyncio.current_task().get_coro()):
                return await ask(*given)
            if name != self._first:
                await self._until_changed()
                return await ask(*given)
            answer = await ask(*given)
            if not self._is_begun:
                self._is_begun = True
                await asyncio.to_thread(self._change)
                self._changed.set()
            await self._until_changed()
            return answer

        return asked

    async def _until_changed(self):
        end = time.monotonic() + ANSWER_S_MAX
        while not self._changed.is_set():
            assert time.monotonic() < end, "both are asked at the same time"
            await asyncio.sleep(0.001)


@pytest.fixture
def between(session, monkeypatch):
    def planted(change, first):
        return Between(monkeypatch, partial(change, session), first=first)

    return planted


@pytest.mark.parametrize("first", ["table", "_pinned"])
@pytest.mark.parametrize("change", [dropped, created_with_other_types])
def test_a_table_that_goes_between_the_two_requests_is_an_error(events, between, change, first):
    frame = pl.scan_fluss(events).select("id", "name")
    frame.collect_schema()
    changing = between(change, first)
    with pytest.raises(FlussError) as raised:
        frame.collect()
    assert changing.has_happened
    assert isinstance(raised.value, TableNotFoundError | SchemaMismatchError) or (
        change is created_with_other_types and "has no column" in str(raised.value)
    )


def test_a_table_that_is_created_again_after_its_offsets_were_asked_is_read_again(events, between):
    frame = pl.scan_fluss(events).select("id", "name")
    frame.collect_schema()
    changing = between(created_again, "_pinned")
    assert frame.collect().sort("id").rows() == [(1, "x"), (2, "y"), (3, "z")]
    assert changing.has_happened


@pytest.mark.parametrize("first", ["table", "_pinned"])
def test_a_column_that_is_added_between_the_two_requests_is_left_out(events, between, first):
    frame = pl.scan_fluss(events)
    names = frame.collect_schema().names()
    changing = between(
        lambda session: session.alter_table(
            "events", add_columns=pa.schema([("extra", pa.int32())])
        ),
        first,
    )
    found = frame.collect()
    assert changing.has_happened
    assert found.columns == names
    assert found.height == 1_000
