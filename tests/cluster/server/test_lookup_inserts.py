"""Lookups that insert missing rows, where the key does not have all columns of the key."""

import pytest

from fluss.model.schema.column import Column
from fluss.model.types.factory import DataTypes
from fluss.rows.formats.compacted_row import CompactedRowWriter
from fluss.wire import messages as pb
from tests.support.differential.differential_servers import ServerUnderComparison
from tests.support.differential.differential_tables import DifferentialTable, Kind
from tests.support.servers.embedded import running

ID = Column("id", DataTypes.int().not_null())
DAY = Column("day", DataTypes.date().not_null())
PLACE = Column("place", DataTypes.string().not_null())
NAME = Column("name", DataTypes.string())
DAYS_TO_2026 = 20_454


@pytest.mark.parametrize("columns", [(ID, DAY, PLACE, NAME), (PLACE, NAME, ID, DAY)])
def test_an_insert_sets_the_columns_of_the_partition(tmp_path, columns):
    table = DifferentialTable(
        Kind(
            name="visits",
            columns=columns,
            keys=("id", "day", "place"),
            partition_by=("day", "place"),
        )
    )
    with running(tmp_path) as server:
        client = ServerUnderComparison(server.address, "fluss")
        path = client.path(table.name)
        spec = pb.PbPartitionSpec()
        spec.partition_key_values.add(key="day", value="2026-01-01")
        spec.partition_key_values.add(key="place", value="north")
        client.call(
            pb.CreateTableRequest(
                table_path=path,
                table_json=table.descriptor.to_json().encode(),
                ignore_if_exists=False,
            )
        )
        client.call(
            pb.CreatePartitionRequest(
                table_path=path, partition_spec=spec, ignore_if_not_exists=False
            )
        )
        for _ in range(2):
            assert look_up(client, table, [7, 8]) == [
                {"id": 7, "day": DAYS_TO_2026, "place": "north", "name": None},
                {"id": 8, "day": DAYS_TO_2026, "place": "north", "name": None},
            ]
        client.close()


def look_up(client, table, ids):
    writer = CompactedRowWriter([ID.data_type], is_key=True)
    request = pb.LookupRequest(
        table_id=client.table_id(table.name), insert_if_not_exists=True, acks=-1, timeout_ms=1_000
    )
    request.buckets_req.add(
        bucket_id=0,
        partition_id=client.partition_id(table.name, "2026-01-01$north"),
        keys=[writer.write([each]) for each in ids],
    )
    (answer,) = client.call(request).buckets_resp
    assert not answer.HasField("error_code"), answer.error_message
    names = table.newest.column_names
    return [dict(zip(names, table.read_value(each.values), strict=True)) for each in answer.values]
