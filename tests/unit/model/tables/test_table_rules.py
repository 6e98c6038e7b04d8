from __future__ import annotations

import json

import pyarrow as pa
import pytest

from fluss.errors import ConfigError, InvalidNameError, InvalidSchemaError
from fluss.model.did_you_mean import is_slip_of
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import TableOptions
from fluss.model.tables.table_rules import check_new_table
from fluss.model.types.factory import DataTypes as D

LOG = Schema(pa.schema([("id", pa.int32()), ("day", pa.string()), ("raw", pa.binary())]))
KEYED = Schema(
    pa.schema([("id", pa.int32()), ("day", pa.string()), ("v", pa.int64()), ("s", pa.string())]),
    ["id", "day"],
)
AUTO = {"table.auto-partition.enabled": "true"}


def table(schema=LOG, properties=None, **facts):
    return TableDescriptor(schema, properties=properties or {}, **facts)


@pytest.mark.parametrize(
    ("schema", "properties", "facts"),
    [
        (LOG, {}, {}),
        (LOG, {"table.log.format": "indexed"}, {}),
        (LOG, {"table.log.arrow.compression.zstd.level": "22"}, {}),
        (LOG, {"table.statistics.columns": "id, day"}, {}),
        (LOG, {"table.statistics.columns": "*"}, {}),
        (LOG, AUTO, {"partition_keys": ["day"]}),
        (KEYED, {"table.kv.format": "INDEXED", "table.log.format": "INDEXED"}, {}),
        (KEYED, {"table.log.format": "COMPACTED"}, {}),
        (KEYED, {"table.merge-engine": "first_row", "table.delete.behavior": "disable"}, {}),
        (
            KEYED,
            {"table.merge-engine": "versioned", "table.merge-engine.versioned.ver-column": "v"},
            {},
        ),
        (KEYED, {"table.merge-engine": "aggregation", "table.delete.behavior": "allow"}, {}),
    ],
)
def test_a_table_that_servers_make_is_let_through(schema, properties, facts):
    check_new_table(table(schema, properties, **facts), known_options_only=True)


@pytest.mark.parametrize(
    ("schema", "properties", "facts", "error", "why"),
    [
        (LOG, {"owner": "me"}, {}, ConfigError, "not one of Fluss's table properties"),
        (LOG, {"table.log.format": "CSV"}, {}, ConfigError, "'CSV' is not one of"),
        (LOG, {"table.log.arrow.compression.zstd.level": "0"}, {}, ConfigError, "from 1 to 22"),
        (LOG, {"table.log.tiered.local-segments": "0"}, {}, ConfigError, "from 1"),
        (LOG, {"table.replication.factor": "0"}, {}, ConfigError, "from 1"),
        (LOG, {"table.merge-engine": "first_row"}, {}, InvalidSchemaError, "needs a primary key"),
        (LOG, {"table.delete.behavior": "allow"}, {}, InvalidSchemaError, "with a primary key"),
        (LOG, {"table.statistics.columns": " "}, {}, ConfigError, "is ' '"),
        (LOG, {"table.statistics.columns": "raw"}, {}, InvalidSchemaError, "no statistics"),
        (LOG, {"table.statistics.columns": "nope"}, {}, InvalidSchemaError, "no column 'nope'"),
        (LOG, AUTO, {}, InvalidSchemaError, "not partitioned"),
        (
            LOG,
            AUTO,
            {"partition_keys": ["day", "id"]},
            InvalidSchemaError,
            "does not name the one with the time",
        ),
        (
            LOG,
            {**AUTO, "table.auto-partition.key": "raw"},
            {"partition_keys": ["day", "id"]},
            InvalidSchemaError,
            "not a partition key",
        ),
        (
            LOG,
            {
                **AUTO,
                "table.auto-partition.key": "day",
                "table.auto-partition.num-precreate": "2",
            },
            {"partition_keys": ["day", "id"]},
            InvalidSchemaError,
            "made ahead",
        ),
        (KEYED, {"table.log.format": "INDEXED"}, {}, InvalidSchemaError, "COMPACTED cannot"),
        (KEYED, {"table.statistics.columns": "*"}, {}, InvalidSchemaError, "without a primary"),
        (KEYED, {"table.merge-engine": "versioned"}, {}, InvalidSchemaError, "which column"),
        (
            KEYED,
            {"table.merge-engine": "versioned", "table.merge-engine.versioned.ver-column": "s"},
            {},
            InvalidSchemaError,
            "has to be INT, BIGINT",
        ),
        (
            KEYED,
            {"table.merge-engine": "first_row", "table.delete.behavior": "allow"},
            {},
            InvalidSchemaError,
            "cannot delete",
        ),
        (
            KEYED,
            {"table.merge-engine": "aggregation", "table.changelog.image": "WAL"},
            {},
            InvalidSchemaError,
            "full changelog",
        ),
    ],
)
def test_a_table_that_no_server_makes_is_refused(schema, properties, facts, error, why):
    with pytest.raises(error) as caught:
        check_new_table(table(schema, properties, **facts))
    assert why in caught.value.message


def test_several_partition_keys_may_have_one_that_is_the_time():
    properties = {**AUTO, "table.auto-partition.key": "day"}
    check_new_table(table(LOG, properties, partition_keys=["day", "id"]))


def test_a_slip_of_the_pen_is_caught_by_the_client():
    for key, meant in (
        ("table.log.tll", "table.log.ttl"),
        ("table.replication.facto", "table.replication.factor"),
        ("table.datalake.enable", "table.datalake.enabled"),
    ):
        with pytest.raises(ConfigError) as caught:
            check_new_table(table(properties={key: "1"}))
        assert caught.value.hint == f"did you mean {meant!r}?"


def test_an_option_of_a_newer_server_passes_the_client_and_not_the_server():
    newer = table(properties={"table.something.quite-new": "1"})
    check_new_table(newer)
    with pytest.raises(ConfigError, match=r"table\.something\.quite-new"):
        check_new_table(newer, known_options_only=True)


def test_no_option_is_taken_for_a_slip_of_another():
    keys = list(TableOptions.OPTIONS)
    for key in keys:
        assert not is_slip_of(key, [each for each in keys if each != key]), key


def test_reserved_columns_are_refused_even_if_an_old_schema_has_them():
    columns = [{"name": "__bucket", "data_type": {"type": "INTEGER"}}]
    old = Schema.from_json(json.dumps({"columns": columns}))
    with pytest.raises(InvalidNameError, match="__bucket"):
        check_new_table(table(old))


def test_an_aggregation_has_to_fit_its_column():
    schema = (
        Schema.builder()
        .column("k", D.string())
        .column("v", D.string(), aggregation="sum")
        .primary_key(["k"])
        .build()
    )
    with pytest.raises(InvalidSchemaError, match="'v' is STRING; sum combines"):
        check_new_table(table(schema, {"table.merge-engine": "aggregation"}))
