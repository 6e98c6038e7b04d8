"""Several tasks create one table concurrently."""

import pyarrow as pa
import pytest

from fluss.errors import ServerError, TableNotFoundError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss_spark import table_creation

PATH = TablePath("db", "t")
RACE = "KeeperErrorCode = NodeExists for /fluss/metadata/databases/db/tables/t/schemas/1"


class Creating:
    """A session whose server answers with an error, and shows the table later."""

    def __init__(self, message, *, looks):
        self.message, self.looks = message, looks

    def create_table(self, *_, **__):
        raise ServerError(self.message, -1)

    def table(self, path):
        self.looks -= 1
        if self.looks > 0:
            raise TableNotFoundError(f"There is no table {path}.")


def make(session):
    described = TableDescriptor(Schema(pa.schema([("id", pa.int64())])), bucket_count=1).to_json()
    table_creation.NewTable(PATH, described).create(session)


def test_a_table_that_another_task_is_making_is_waited_for():
    session = Creating(RACE, looks=3)
    make(session)
    assert session.looks == 0


def test_a_table_that_never_comes_is_an_error(monkeypatch):
    monkeypatch.setattr(table_creation, "_LOOK_EVERY_S", 0)
    with pytest.raises(ServerError, match="NodeExists"):
        make(Creating(RACE, looks=1_000))


def test_another_error_is_raised_immediately():
    session = Creating("no disk", looks=3)
    with pytest.raises(ServerError, match="no disk"):
        make(session)
    assert session.looks == 3
