from __future__ import annotations

import copy
import json

import pyarrow as pa
import pytest

from fluss.errors import ConfigError, CorruptDataError, InvalidSchemaError
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import LogFormat
from tests.support.copies import pickled
from tests.support.differential.golden import golden

LOG = Schema(pa.schema([("id", pa.int32()), ("region", pa.string()), ("d", pa.decimal128(5, 2))]))
KEYED = Schema(
    pa.schema([("id", pa.int32()), ("region", pa.string()), ("tags", pa.list_(pa.string()))]),
    ["id", "region"],
)

TABLES = [name for name, entry in golden("documents").items() if "schema" in entry["given"]]


def test_a_table_is_described_by_a_schema_alone():
    table = TableDescriptor(LOG)
    assert table.get_schema() is LOG
    assert table.partition_keys == ()
    assert table.bucket_keys == ()
    assert table.bucket_count is None
    assert table.comment is None
    assert table.properties == {}


def test_none_stands_for_nothing_in_every_argument():
    assert TableDescriptor(LOG) == TableDescriptor(
        LOG,
        partition_keys=None,
        bucket_count=None,
        bucket_keys=None,
        comment=None,
        log_format=None,
        kv_format=None,
        properties=None,
        custom_properties=None,
    )


def test_a_primary_key_table_is_bucketed_by_its_key_without_the_partitions():
    table = TableDescriptor(KEYED, partition_keys=["region"], bucket_count=3)
    assert table.bucket_keys == ("id",)
    assert table.physical_primary_keys == ("id",)
    assert table.is_partitioned
    assert table.has_primary_key


def test_formats_become_properties():
    table = TableDescriptor(KEYED, log_format="arrow", kv_format="INDEXED")
    assert table.properties == {"table.log.format": "ARROW", "table.kv.format": "INDEXED"}
    assert table.options.log_format is LogFormat.ARROW
    with pytest.raises(ConfigError, match="'PARQUET' is not one of"):
        TableDescriptor(LOG, log_format="PARQUET")


def test_a_format_given_twice_has_to_be_the_same():
    properties = {"table.log.format": "arrow"}
    assert TableDescriptor(LOG, log_format="ARROW", properties=properties)
    with pytest.raises(InvalidSchemaError, match="INDEXED by argument and 'arrow'"):
        TableDescriptor(LOG, log_format="INDEXED", properties=properties)


def test_the_builder_makes_the_same_table():
    built = (
        TableDescriptor.builder()
        .schema(KEYED)
        .log_format(LogFormat.ARROW)
        .kv_format("COMPACTED")
        .property("table.log.ttl", "1 d")
        .properties({"table.replication.factor": 1})
        .custom_property("owner", "me")
        .custom_properties({"team": "ours"})
        .partitioned_by(["region"])
        .distributed_by(4, ["id"])
        .comment("what it is")
        .build()
    )
    assert built == TableDescriptor(
        KEYED,
        partition_keys=["region"],
        bucket_count=4,
        bucket_keys=["id"],
        comment="what it is",
        properties={
            "table.log.format": "ARROW",
            "table.kv.format": "COMPACTED",
            "table.log.ttl": "1 d",
            "table.replication.factor": "1",
        },
        custom_properties={"owner": "me", "team": "ours"},
    )
    with pytest.raises(InvalidSchemaError, match="no schema"):
        TableDescriptor.builder().build()


def test_a_table_comes_back_from_its_json_and_from_a_pickle():
    table = TableDescriptor(
        KEYED,
        partition_keys=["region"],
        bucket_count=4,
        comment="größer",
        properties={"table.log.ttl": "1 d"},
        custom_properties={"k": "日本"},
    )
    assert TableDescriptor.from_json(table.to_json()) == table
    assert TableDescriptor.from_json(table.to_json().encode()) == table
    assert pickled(table) == table
    assert copy.deepcopy(table) == table
    assert hash(copy.deepcopy(table)) == hash(table)


def test_a_log_table_that_leaves_buckets_to_the_server_says_nothing_of_them():
    written = json.loads(TableDescriptor(LOG).to_json())
    assert list(written) == [
        "version",
        "schema",
        "partition_key",
        "properties",
        "custom_properties",
    ]
    counted = json.loads(TableDescriptor(LOG, bucket_count=3).to_json())
    assert counted["bucket_key"] == []
    assert counted["bucket_count"] == 3


@pytest.mark.parametrize("name", TABLES)
def test_the_json_of_a_table_is_understood_as_java_does(name):
    entry = golden("documents")[name]
    read = TableDescriptor.from_json(json.dumps(entry["given"]))
    assert json.loads(read.to_json()) == entry["java"]
    assert list(json.loads(read.to_json())) == list(entry["java"])


@pytest.mark.parametrize(
    ("schema", "facts", "why"),
    [
        (LOG, {"partition_keys": ["zone"]}, "'zone', which the schema does not have"),
        (LOG, {"partition_keys": ["region", "region"]}, "'region' twice"),
        (LOG, {"partition_keys": ["d"]}, "DECIMAL cannot name a partition"),
        (LOG, {"partition_keys": "region"}, "not as a list"),
        (LOG, {"bucket_keys": ["zone"]}, "'zone', which the schema does not have"),
        (LOG, {"bucket_keys": ["id", "id"]}, "'id' twice"),
        (LOG, {"bucket_keys": ["region"], "partition_keys": ["region"]}, "always the same"),
        (LOG, {"bucket_count": 0}, "from 1 on"),
        (LOG, {"bucket_count": True}, "from 1 on"),
        (LOG, {"bucket_count": "3"}, "from 1 on"),
        (LOG, {"properties": {"a": None}}, "values are text"),
        (KEYED, {"partition_keys": ["tags"]}, "not in the primary key"),
        (KEYED, {"partition_keys": ["id", "region"]}, "none is left to tell rows apart"),
        (KEYED, {"bucket_keys": ["tags"]}, "not in the primary key"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(schema, facts, why):
    with pytest.raises(InvalidSchemaError) as caught:
        TableDescriptor(schema, **facts)
    assert why in caught.value.message


def test_a_nested_column_cannot_choose_a_bucket():
    schema = Schema(pa.schema([("a", pa.list_(pa.int8()))]))
    with pytest.raises(InvalidSchemaError, match="cannot choose a bucket"):
        TableDescriptor(schema, bucket_keys=["a"])


def test_an_arrow_schema_is_no_schema_yet():
    with pytest.raises(InvalidSchemaError) as caught:
        TableDescriptor(pa.schema([("a", pa.int8())]))
    assert caught.value.hint == "wrap it: fluss.Schema(pyarrow_schema)"


def test_a_table_is_changed_by_making_another():
    table = TableDescriptor(KEYED, properties={"table.log.ttl": "1 d"})
    changed = table.with_bucket_count(5).with_properties({"table.log.ttl": "2 d", "table.x": "y"})
    assert changed.bucket_count == 5
    assert changed.properties == {"table.log.ttl": "2 d", "table.x": "y"}
    assert table.properties == {"table.log.ttl": "1 d"}


@pytest.mark.parametrize(
    "change",
    [
        {"schema": None},
        {"partition_key": "id"},
        {"partition_key": [1]},
        {"bucket_count": "3"},
        {"bucket_key": {}},
        {"properties": []},
        {"properties": {"a": 1}},
        {"custom_properties": {"a": None}},
        {"comment": 7},
    ],
)
def test_json_that_fluss_does_not_write_is_corrupt(change):
    written = json.loads(TableDescriptor(LOG).to_json()) | change
    with pytest.raises(CorruptDataError):
        TableDescriptor.from_json(json.dumps(written))
