"""Listing the partition of history, which servers list only if they are asked for it."""

import asyncio

import pyarrow as pa
import pytest

import fluss
from fluss.errors import InvalidValueError
from fluss.model.schema.schema import Schema
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import SERVED, ScriptedCluster
from tests.support.scripted.scripted_peer import api_versions, success

HISTORY = (77, "__historical__")
SCHEMA = Schema(pa.schema([pa.field("p", pa.string(), nullable=False), ("id", pa.int64())]))
KEEPS_HISTORY = {
    "table.auto-partition.enabled": "true",
    "table.datalake.historical-partition.enabled": "true",
}


class Listing(ScriptedCluster):
    """Lists one partition, and that of history if `is_new` and asked for it."""

    is_new = True

    def _answer(self, request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, api_versions(*SERVED, ApiKey.LIST_PARTITION_INFOS))
        return super()._answer(request)

    def _list_partition_infos(self, asked):
        answer = pb.ListPartitionInfosResponse()
        listed = [(5, "20260101")]
        if self.is_new and asked.include_system_partitions:
            answer.system_partitions_included = True
            listed.append(HISTORY)
        for partition_id, name in listed:
            info = answer.partitions_info.add(partition_id=partition_id, bucket_count=3)
            info.partition_spec.partition_key_values.add(key="p", value=name)
        return answer


def listed(*, is_new=True, properties=KEEPS_HISTORY, partition=HISTORY, asks=True):
    with Listing(SCHEMA, partition=partition, properties=properties, bucket_count=3) as cluster:
        cluster.is_new = is_new
        with fluss.connect(f"fluss://{cluster.bootstrap}/db") as session:
            found = session.table("t").partitions(include_system_partitions=asks)
    return {each.partition_name: (each.partition_id, each.bucket_count) for each in found}


NORMAL = {"20260101": (5, 3)}
ALL = NORMAL | {HISTORY[1]: (HISTORY[0], 3)}


@pytest.mark.parametrize("is_new", [True, False], ids=["it lists it", "it knows it by name"])
def test_the_partition_of_history_is_listed_if_it_is_asked_for(is_new):
    assert listed(is_new=is_new) == ALL
    assert listed(is_new=is_new, asks=False) == NORMAL


def test_it_is_not_listed_where_there_is_none():
    assert listed(is_new=False, partition=(5, "20260101")) == NORMAL
    assert listed(is_new=False, properties={}) == NORMAL


async def refused(cluster):
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with await fluss.FlussConnection.create(config) as connection:
        admin = await connection.get_admin()
        with pytest.raises(InvalidValueError, match="no spec selects them"):
            await admin.list_partition_infos("db.t", {"p": "1"}, include_system_partitions=True)


def test_a_spec_does_not_select_partitions_of_the_system():
    with Listing(SCHEMA, partition=HISTORY, properties=KEEPS_HISTORY) as cluster:
        asyncio.run(refused(cluster))
        assert ApiKey.LIST_PARTITION_INFOS not in cluster.asked
