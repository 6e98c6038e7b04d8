"""Several tasks create one table concurrently."""

import asyncio
from types import SimpleNamespace

import pyarrow as pa
import pytest

from fluss.errors import ServerError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss_spark import table_creation

PATH = TablePath("db", "t")
RACE = "KeeperErrorCode = NodeExists for /fluss/metadata/databases/db/tables/t/schemas/1"


class Admin:
    """An administrator whose server answers with an error, and shows the table later."""

    def __init__(self, message, *, looks):
        self.message, self.looks = message, looks

    async def create_table(self, *_, **__):
        raise ServerError(self.message, -1)

    async def table_exists(self, _path):
        self.looks -= 1
        return self.looks <= 0


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(table_creation, "admin_of", lambda connection: connection.admin)
    return _create


def _create(admin):
    described = TableDescriptor(Schema(pa.schema([("id", pa.int64())])), bucket_count=1).to_json()
    engine = SimpleNamespace(run=asyncio.run)
    table_creation.NewTable(PATH, described).create(SimpleNamespace(admin=admin, engine=engine))


def test_a_table_that_another_task_is_making_is_waited_for(make):
    admin = Admin(RACE, looks=3)
    make(admin)
    assert admin.looks == 0


def test_a_table_that_never_comes_is_an_error(make, monkeypatch):
    monkeypatch.setattr(table_creation, "_LOOK_EVERY_S", 0)
    with pytest.raises(ServerError, match="NodeExists"):
        make(Admin(RACE, looks=1_000))


def test_another_error_is_raised_immediately(make):
    admin = Admin("no disk", looks=3)
    with pytest.raises(ServerError, match="no disk"):
        make(admin)
    assert admin.looks == 3
