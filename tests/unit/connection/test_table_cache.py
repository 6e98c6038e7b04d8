"""What a connection keeps of a table, and when it asks again."""

import asyncio
from types import SimpleNamespace

import pytest

from fluss.connection import table_cache
from fluss.connection.table_cache import TableCache
from fluss.errors import TableNotFoundError
from fluss.model.paths import TablePath

PATH = TablePath("fluss", "events")


class FakeCluster:
    """Counts questions; a table has an id, and a schema named by its id."""

    def __init__(self):
        self.metadata_epoch = 0
        self.view = SimpleNamespace(table_id=lambda _: self.seen_table_id)
        self.seen_table_id = None
        self.table_id, self.schema_id = 7, 1
        self.asked, self.was_asked = 0, asyncio.Event()

    async def info_of(self, path):
        self.asked += 1
        self.was_asked.set()
        info = SimpleNamespace(
            table_path=path,
            table_id=self.table_id,
            schema_id=self.schema_id,
            schema=f"schema {self.schema_id}",
        )
        await asyncio.sleep(0)
        if self.table_id is None:
            raise TableNotFoundError("gone")
        return info


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(table_cache, "table_info_of", lambda cluster, path: cluster.info_of(path))
    return FakeCluster()


async def test_many_calls_ask_once(cluster):
    tables = TableCache(cluster)
    for _ in range(10):
        assert (await tables.recent(PATH)).info.table_id == 7
    await asyncio.gather(*(tables.recent(PATH) for _ in range(10)))
    assert cluster.asked == 1


async def test_concurrent_first_calls_share_one_question(cluster):
    tables = TableCache(cluster)
    await asyncio.gather(*(tables.recent(PATH) for _ in range(10)))
    assert cluster.asked == 1


async def test_a_call_for_the_current_table_always_asks_and_renews_what_is_kept(cluster):
    tables = TableCache(cluster)
    await tables.recent(PATH)
    cluster.schema_id = 2
    assert (await tables.current(PATH)).info.schema_id == 2
    assert (await tables.recent(PATH)).info.schema_id == 2
    assert cluster.asked == 2


async def test_what_is_old_is_asked_for_again(cluster, monkeypatch):
    tables = TableCache(cluster)
    await tables.recent(PATH)
    monkeypatch.setattr(table_cache, "REUSED_S", 0.0)
    await tables.recent(PATH)
    assert cluster.asked == 2


async def test_a_change_of_our_own_is_seen_immediately(cluster):
    tables = TableCache(cluster)
    await tables.recent(PATH)
    cluster.metadata_epoch += 1
    cluster.schema_id = 2
    assert (await tables.recent(PATH)).info.schema_id == 2


async def test_what_is_learned_while_a_change_is_in_flight_is_not_kept(cluster):
    tables = TableCache(cluster)
    asking = asyncio.create_task(tables.recent(PATH))
    await asyncio.wait_for(cluster.was_asked.wait(), 30)
    cluster.metadata_epoch += 1
    await asking
    await tables.recent(PATH)
    assert cluster.asked == 2


async def test_metadata_of_another_table_of_the_name_is_believed(cluster):
    tables = TableCache(cluster)
    await tables.recent(PATH)
    cluster.table_id = cluster.seen_table_id = 8
    assert (await tables.recent(PATH)).info.table_id == 8


async def test_facts_that_are_too_old_for_the_caller_are_asked_for_again(cluster):
    tables = TableCache(cluster)
    await tables.recent(PATH)
    cluster.schema_id = 2
    assert (await tables.recent(PATH, lambda info: info.schema_id >= 2)).info.schema_id == 2
    assert cluster.asked == 2


async def test_a_table_that_is_forgotten_is_asked_for_again(cluster):
    tables = TableCache(cluster)
    tables.forget(PATH)
    await tables.recent(PATH)
    tables.forget(PATH)
    await tables.recent(PATH)
    assert cluster.asked == 2


async def test_schemas_stay_known_as_long_as_the_table_is_the_same(cluster):
    tables = TableCache(cluster)
    first = await tables.recent(PATH)
    cluster.schema_id = 2
    second = await tables.current(PATH)
    assert second.schemas == {1: "schema 1", 2: "schema 2"}
    cluster.table_id = 8
    assert (await tables.current(PATH)).schemas == {2: "schema 2"}
    assert first.info.schema_id == 1


async def test_an_error_is_not_kept(cluster):
    tables = TableCache(cluster)
    await tables.recent(PATH)
    cluster.table_id = None
    with pytest.raises(TableNotFoundError):
        await tables.current(PATH)
    cluster.table_id = 8
    assert (await tables.recent(PATH)).info.table_id == 8


async def test_tables_that_are_no_longer_valid_take_no_room(cluster, monkeypatch):
    tables = TableCache(cluster)
    monkeypatch.setattr(table_cache, "REUSED_S", 0.0)
    for number in range(10):
        await tables.recent(TablePath("fluss", f"t{number}"))
    assert len(tables._entries) == 1
