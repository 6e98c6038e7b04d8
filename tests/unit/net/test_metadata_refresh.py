"""Requests for metadata that several callers wait for, or none does."""

import asyncio
import gc

import pytest

from fluss.errors import PartitionNotFoundError
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.net.cluster_client import PATHS_PER_QUESTION_MAX, Cluster
from fluss.net.counters import Counters
from tests.support.scripted.write_plan import TABLE, view_of

PARTITION = PhysicalTablePath(TABLE, "EU")


class Refreshing(Cluster):
    """Every request for metadata fails after a moment."""

    def __init__(self):
        self._refreshing = {}

    async def _refresh(self, paths):
        await asyncio.sleep(0)
        raise PartitionNotFoundError(f"{len(paths)} partitions do not exist")


async def unread_errors(call):
    """Run a call, and return what asyncio logs about tasks whose errors were not read."""
    unread = []
    asyncio.get_running_loop().set_exception_handler(lambda _, facts: unread.append(facts))
    await call()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    return unread


def test_a_failed_request_without_waiting_callers_is_not_logged():
    async def call():
        waiting = asyncio.ensure_future(Refreshing().refresh())
        await asyncio.sleep(0)
        waiting.cancel()

    assert asyncio.run(unread_errors(call)) == []


def test_of_two_failed_requests_one_is_raised_and_none_is_logged():
    paths = [
        PhysicalTablePath(TablePath("db", "t"), f"p{number}")
        for number in range(PATHS_PER_QUESTION_MAX + 1)
    ]

    async def call():
        with pytest.raises(PartitionNotFoundError, match="partitions do not exist"):
            await Refreshing().refresh(paths)

    assert asyncio.run(unread_errors(call)) == []


class Dropped(Cluster):
    """A partition is known here, and the servers do not know it any more."""

    def __init__(self):
        self._refreshing = {}
        self.counters = Counters()
        self.metadata_epoch = 0
        self.view = view_of(PARTITION, partition_id=5)

    async def _ask_any(self, *_):
        raise PartitionNotFoundError("the partition does not exist")


def test_a_partition_that_the_servers_do_not_know_is_forgotten():
    cluster = Dropped()
    assert cluster.view.partition_id(PARTITION) == 5
    with pytest.raises(PartitionNotFoundError):
        asyncio.run(cluster.refresh([PARTITION]))
    assert cluster.view.partition_id(PARTITION) is None, "a writer creates it again"
