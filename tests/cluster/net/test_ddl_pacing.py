"""What is made inside a new table waits, whichever client made the table; nothing else does."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

import fluss.net.ddl_pacing
from fluss.errors import TableNotFoundError
from fluss.model.paths import TablePath
from fluss.net.cluster_client import Cluster
from fluss.net.ddl_pacing import DATABASE_SETTLE_S, TABLE_SETTLE_S, DdlPacing

PATH = TablePath("sales", "orders")
SCHEDULING_S = 0.01


@dataclass
class _Answer:
    created_time: int


class _FakeCluster:
    """Knows the age of every table, and counts how often it was asked."""

    def __init__(self, age_s: float | None) -> None:
        self._age_s = age_s
        self.asked = 0

    async def ask_any(self, *_: Any) -> _Answer:
        self.asked += 1
        if self._age_s is None:
            raise TableNotFoundError("there is no such table.")
        return _Answer(created_time=int((time.time() - self._age_s) * 1000))


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each pause was meant to be, which a busy machine may lengthen."""
    meant: list[float] = []

    async def sleep(seconds: float) -> None:
        meant.append(seconds)
        await anyio.sleep(seconds)

    monkeypatch.setattr(fluss.net.ddl_pacing, "anyio", SimpleNamespace(sleep=sleep))
    return meant


async def _settle(ddl_pacing: DdlPacing, cluster: _FakeCluster) -> float:
    """How long it took."""
    since = asyncio.get_running_loop().time()
    await ddl_pacing.wait_until_table_settled(cast("Cluster", cluster), PATH)
    return asyncio.get_running_loop().time() - since


async def test_a_new_table_of_another_client_is_waited_for() -> None:
    cluster = _FakeCluster(age_s=0.0)

    assert await _settle(DdlPacing(), cluster) >= TABLE_SETTLE_S - SCHEDULING_S


async def test_an_old_table_is_asked_for_its_age_once_and_never_waited_for(
    slept: list[float],
) -> None:
    cluster, ddl_pacing = _FakeCluster(age_s=60.0), DdlPacing()

    await _settle(ddl_pacing, cluster)
    await _settle(ddl_pacing, cluster)

    assert not any(slept)
    assert cluster.asked == 1


async def test_a_new_table_of_this_client_is_waited_for_without_a_question() -> None:
    cluster, ddl_pacing = _FakeCluster(age_s=60.0), DdlPacing()

    ddl_pacing.created(PATH)

    assert await _settle(ddl_pacing, cluster) >= TABLE_SETTLE_S - SCHEDULING_S
    assert cluster.asked == 0


async def test_a_clock_that_runs_ahead_costs_no_more_than_the_pause(slept: list[float]) -> None:
    await _settle(DdlPacing(), _FakeCluster(age_s=-3600.0))

    assert 0 < sum(slept) <= TABLE_SETTLE_S


async def test_a_dropped_table_is_unknown_again() -> None:
    cluster, ddl_pacing = _FakeCluster(age_s=60.0), DdlPacing()
    await _settle(ddl_pacing, cluster)

    ddl_pacing.forget(PATH)
    await _settle(ddl_pacing, cluster)

    assert cluster.asked == 2


async def test_a_missing_table_is_left_to_the_request_that_follows(slept: list[float]) -> None:
    await _settle(DdlPacing(), _FakeCluster(age_s=None))

    assert not any(slept)


async def test_a_new_database_is_waited_for_and_an_old_one_is_not(slept: list[float]) -> None:
    ddl_pacing = DdlPacing()
    ddl_pacing.created("sales")
    since = asyncio.get_running_loop().time()

    await ddl_pacing.wait_until_settled("sales")
    waited_s = asyncio.get_running_loop().time() - since
    await ddl_pacing.wait_until_settled("elsewhere")

    assert waited_s >= DATABASE_SETTLE_S - SCHEDULING_S
    assert len(slept) == 1
