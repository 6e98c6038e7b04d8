"""What a copy of a table's definition gets, and what it does not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.errors import CorruptDataError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.copied_properties import copied_properties
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo

OWN = {
    "table.log.ttl": "3d",
    "table.datalake.enabled": "true",
    "table.datalake.format": "iceberg",
    "table.datalake.freshness": "1min",
}
OF_CLUSTER = {
    "table.datalake.iceberg.type": "rest",
    "table.datalake.iceberg.uri": "http://catalog",
    "table.datalake.iceberg.credential": "id:hunter2",
    "table.datalake.paimon.jdbc.password": "hunter2",
}
CUSTOM = {"team": "a", "iceberg.write.format": "orc"}
SECRETS = {"sink.password": "hunter2", "sink.url": "https://ann:hunter2@host/"}


def info(properties, custom):
    descriptor = TableDescriptor(
        Schema(pa.schema([("id", pa.int32())])),
        bucket_count=1,
        properties=properties,
        custom_properties=custom,
    )
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=7, schema_id=1)


def test_definitions_are_copied_and_neither_secrets_nor_what_the_cluster_adds():
    found = copied_properties(info({**OWN, **OF_CLUSTER}, {**CUSTOM, **SECRETS}))
    expected = {**OWN, **CUSTOM}
    assert {key: found.properties[key] for key in expected} == expected
    assert set(found.properties) - set(expected) <= {"table.log.format", "table.kv.format"}
    assert found.secrets == tuple(SECRETS)
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("value", ['["hunter2"]', '"hunter2 \\ud800"'])
def test_an_error_of_damaged_properties_does_not_show_a_value(value):
    text = (
        '{"version":1,"schema":{"version":1,"columns":[{"name":"a","data_type":{"type":"INTEGER"},'
        '"id":0}],"highest_field_id":0},"partition_key":[],"custom_properties":{},'
        f'"properties":{{"table.datalake.iceberg.jdbc.password":{value}}}}}'
    )
    with pytest.raises(CorruptDataError, match="password") as refused:
        TableDescriptor.from_json(text)
    assert "hunter2" not in repr(refused.value) + str(refused.value)
