"""A table that the embedded server creates in its lake is, field by field, the one that Fluss does.

Both servers get the same requests; what they made is read by pyiceberg, without the product's
code.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from fluss_server import LocalCluster
from fluss_testkit.lake_profile import CATALOG_FILE, WAREHOUSE, iceberg_lake
from tests.support.lake.lake_requests import ENABLED, LakeRequests
from tests.support.servers.fix_cluster import server_kinds

pytestmark = pytest.mark.skipif(
    len(server_kinds()) < 2, reason="it compares the real server with the embedded one"
)

PLAIN = [
    ("boolean", "BOOLEAN"), ("tinyint", "TINYINT"), ("smallint", "SMALLINT"), ("int", "INTEGER"),
    ("bigint", "BIGINT"), ("float", "FLOAT"), ("double", "DOUBLE"),
    ("char", {"type": "CHAR", "length": 5}), ("string", "STRING"),
    ("decimal", {"type": "DECIMAL", "precision": 12, "scale": 3}), ("date", "DATE"),
    ("time", {"type": "TIME_WITHOUT_TIME_ZONE", "precision": 3}),
    ("timestamp", {"type": "TIMESTAMP_WITHOUT_TIME_ZONE", "precision": 9}),
    ("timestamp_ltz", {"type": "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "precision": 3}),
    ("binary", {"type": "BINARY", "length": 4}), ("bytes", "BYTES"),
]  # fmt: skip
REQUIRED_INT = {"type": "INTEGER", "nullable": False}


def row_of(first_id):
    fields = [
        {"name": "a", "field_type": {"type": "INTEGER"}, "description": "a field"},
        {"name": "b", "field_type": {"type": "ARRAY", "element_type": REQUIRED_INT}},
    ]
    numbered = [{**each, "field_id": first_id + place} for place, each in enumerate(fields)]
    return {"type": "ROW", "fields": numbered}


TEXT = {"type": "STRING", "nullable": False}
NESTED = [
    ("array", {"type": "ARRAY", "element_type": {"type": "STRING"}}),
    ("map", {"type": "MAP", "key_type": TEXT, "value_type": row_of(10)}),
    ("row", row_of(20)),
    ("deep", {"type": "ARRAY", "element_type": {**row_of(30), "nullable": False}}),
    ("last", "INTEGER"),
]
ORDERS = [("id", "BIGINT"), ("day", "STRING"), ("place", "STRING"), ("amount", "DOUBLE")]

TABLES: dict[str, dict[str, Any]] = {
    "log": {},
    "log with a bucket key": {"bucket_keys": ["name"], "buckets": 5},
    "log of all types": {"columns": PLAIN},
    "log of nested types": {"columns": NESTED},
    "partitioned log": {"columns": ORDERS, "partition_keys": ["day"]},
    "partitioned log with a bucket key": {
        "columns": ORDERS,
        "partition_keys": ["day", "place"],
        "bucket_keys": ["id"],
    },
    "primary key": {"keys": ["id"], "buckets": 1},
    "primary key of two columns": {
        "columns": ORDERS,
        "keys": ["id", "place"],
        "bucket_keys": ["id"],
    },
    "primary key in the middle, and all types": {
        "columns": PLAIN,
        "keys": ["bigint"],
        "buckets": 7,
    },
    "partitioned primary key": {
        "columns": ORDERS,
        "keys": ["day", "id"],
        "partition_keys": ["day"],
    },
    "properties": {
        "keys": ["id"],
        "properties": {
            **ENABLED,
            "table.datalake.freshness": "30s",
            "table.merge-engine": "first_row",
            "table.log.ttl": "1d",
        },
        "custom": {
            "mine": "x",
            "iceberg.write.metadata.delete-after-commit.enabled": "true",
            "iceberg.write.parquet.compression-codec": "snappy",
            "iceberg.write.delete.mode": "copy-on-write",
        },
    },
    **{
        f"bucket key {name}": {"columns": [(name, kind)], "bucket_keys": [name]}
        for name, kind in PLAIN
        if name not in {"boolean", "float", "double", "tinyint", "smallint"}
    },
}


@pytest.fixture(scope="module")
def real(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("real_lake")
    start_cluster = request.getfixturevalue("start_cluster")
    with start_cluster(iceberg_lake(directory)) as running:
        made = Made(running.bootstrap_servers, directory / CATALOG_FILE, directory / WAREHOUSE)
        yield made
        made.requests.client.close()


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    directory = tmp_path_factory.mktemp("our_lake")
    with LocalCluster(directory, durability="none", lake=True, in_thread=True) as running:
        lake = directory / "iceberg"
        made = Made(running.bootstrap_servers, lake / "catalog.sqlite", lake / "warehouse")
        yield made
        made.requests.client.close()


class Made:
    """The tables of one server."""

    def __init__(self, bootstrap, catalog, warehouse) -> None:
        self.requests = LakeRequests(bootstrap, "fluss")
        self.warehouse = warehouse
        self._catalog = catalog

    def table(self, name):
        uri = f"sqlite:///{self._catalog}"
        catalog = load_catalog("fluss-iceberg-catalog", type="sql", uri=uri)
        return catalog.load_table(("fluss", name))

    def described(self, name):
        """The table's JSON, without what says where the lake is."""
        found = self.requests.described(name)
        catalog, warehouse = str(self._catalog), self.warehouse.as_uri()
        found["properties"] = {
            key: value.replace(catalog, "CATALOG").replace(warehouse, "WAREHOUSE")
            for key, value in found["properties"].items()
        }
        found["properties"].pop("table.datalake.iceberg.jdbc.user", None)  # of the profile
        return found


def fields_of(metadata, warehouse):
    """What a table in the lake is, without what differs from one creation to the next."""
    (schema,), (spec,), (order,) = metadata.schemas, metadata.partition_specs, metadata.sort_orders
    return {
        "version": metadata.format_version,
        "place": metadata.location.removeprefix(warehouse.as_uri()),
        "columns": [repr(each) for each in schema.fields],
        "identifiers": sorted(schema.identifier_field_ids),
        "last column": metadata.last_column_id,
        "partitions": (spec.spec_id, [repr(each) for each in spec.fields]),
        "last partition": metadata.last_partition_id,
        "order": repr(order),
        "properties": metadata.properties,
        "schema": (schema.schema_id, metadata.current_schema_id),
        "snapshot": metadata.current_snapshot_id,
    }


@pytest.mark.parametrize("given", TABLES.values(), ids=TABLES)
def test_both_servers_create_the_same_table(real, ours, given):
    name = f"t_{uuid.uuid4().hex[:8]}"
    for server in (real, ours):
        server.requests.create(name, **given)
    made = [fields_of(each.table(name).metadata, each.warehouse) for each in (real, ours)]
    assert made[1] == made[0]
    assert ours.described(name) == real.described(name)


@pytest.mark.parametrize("name", ["boolean", "float", "double"])
def test_both_servers_refuse_the_same_bucket_keys(real, ours, name):
    given = {"columns": PLAIN, "bucket_keys": [name]}
    codes = [
        each.requests.refusal(lambda each=each: each.requests.create(f"no_{name}", **given))
        for each in (real, ours)
    ]
    assert codes[1] == codes[0]
