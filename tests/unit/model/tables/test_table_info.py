from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.errors import InvalidSchemaError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import LogFormat
from tests.support.copies import pickled

SCHEMA = Schema(
    pa.schema([("id", pa.int32()), ("day", pa.string()), ("v", pa.int64())]), ["id", "day"]
)
DESCRIPTOR = TableDescriptor(
    SCHEMA,
    partition_keys=["day"],
    bucket_count=3,
    comment="what it is",
    properties={"table.replication.factor": "1", "table.auto-partition.enabled": "true"},
    custom_properties={"owner": "me"},
)


def info(descriptor=DESCRIPTOR, **facts):
    return TableInfo.of(
        descriptor, table_path=TablePath("db", "t"), table_id=7, schema_id=2, **facts
    )


def test_every_documented_accessor_answers():
    table = info(created_time=11, modified_time=12)
    assert table.table_id == 7
    assert table.table_path == TablePath("db", "t")
    assert table.num_buckets == 3
    assert table.schema_id == 2
    assert table.comment == "what it is"
    assert table.created_time == 11
    assert table.modified_time == 12
    assert table.get_primary_keys() == ["id", "day"]
    assert table.get_partition_keys() == ["day"]
    assert table.get_bucket_keys() == ["id"]
    assert table.has_primary_key() is True
    assert table.is_partitioned() is True
    assert table.get_schema() is SCHEMA
    assert table.get_column_names() == ["id", "day", "v"]
    assert table.get_column_count() == 3
    assert table.get_properties()["table.replication.factor"] == "1"
    assert table.get_custom_properties() == {"owner": "me"}


def test_the_facts_of_the_rust_client_are_fields():
    table = info()
    assert table.schema is SCHEMA
    assert table.primary_keys == ("id", "day")
    assert table.partition_keys == ("day",)
    assert table.properties["table.replication.factor"] == "1"
    assert table.custom_properties == {"owner": "me"}


def test_codecs_find_their_facts():
    table = info()
    assert table.physical_primary_keys == ("id",)
    assert table.has_bucket_key
    assert table.is_default_bucket_key
    assert table.is_auto_partitioned
    assert table.options.log_format is LogFormat.ARROW
    assert table.row_type.field_names == ("id", "day", "v")


def test_bucket_keys_that_a_user_named_are_distinguished():
    plain = Schema(pa.schema([("a", pa.int8())]))
    assert info(TableDescriptor(plain, bucket_count=1)).is_default_bucket_key
    assert not info(TableDescriptor(plain, bucket_count=1, bucket_keys=["a"])).is_default_bucket_key


def test_what_an_accessor_gives_back_may_be_changed():
    table = info()
    table.get_properties().clear()
    table.get_column_names().clear()
    assert table.get_column_count() == 3
    assert table.get_properties()


def test_a_table_can_be_pickled():
    table = info()
    made = pickled(table)
    assert made == table
    assert hash(made) == hash(table)
    assert made.options.auto_partition_enabled


def test_a_table_that_exists_has_buckets():
    with pytest.raises(InvalidSchemaError, match="how many buckets"):
        info(TableDescriptor(SCHEMA))
