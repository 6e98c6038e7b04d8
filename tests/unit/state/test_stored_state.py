"""KV snapshots: the layout of their values follows from the table."""

import pytest

from fluss import DataTypes, Schema
from fluss.errors import UnsupportedOperationError
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.state.stored_state import _frames_function, _values_of

VALUE = bytes.fromhex("01000001027631e807")  # schema 1, (1, "v1", 1000), from Java's classes
TAG = bytes.fromhex("00000000000003e8")


def table_of(layout):
    properties = {} if layout is None else {"table.kv.value-layout-version": str(layout)}
    if layout == 2:
        properties["table.kv.ttl"] = "1 d"
    schema = Schema.builder().column("id", DataTypes.int()).primary_key(["id"]).build()
    descriptor = TableDescriptor(schema, bucket_count=1, properties=properties)
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=1, schema_id=1)


@pytest.mark.parametrize(("layout", "stored"), [(None, VALUE), (1, VALUE), (2, TAG + VALUE)])
def test_values_are_read_by_the_layout_of_the_table(tmp_path, layout, stored):
    rocksdict = pytest.importorskip("rocksdict")
    database = rocksdict.Rdict(str(tmp_path), rocksdict.Options(raw_mode=True))
    for number in range(3):
        database[bytes([number])] = stored
    frames = _frames_function(table_of(layout))
    (chunk,) = _values_of(database, rocksdict.ReadOptions(), frames)
    assert [chunk.data[a:b].tobytes() for a, b in zip(chunk.starts, chunk.ends, strict=True)] == [
        VALUE
    ] * 3
    database.close()


def test_a_layout_that_came_later_is_refused():
    with pytest.raises(UnsupportedOperationError, match="layout 3"):
        _frames_function(table_of(3))
