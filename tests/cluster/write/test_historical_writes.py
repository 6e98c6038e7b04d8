"""Writes into partitions that have expired: they go to the system's partition, with their names.

No server at hand has such a partition. The scripted one answers as Java's client 1.0.0 expects, and
checks sequences for each writer and bucket, as servers do.
"""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import fluss
from fluss.errors import (
    FlussError,
    PartitionNotFoundError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from fluss.exactly_once import Task, append_exactly_once
from fluss.model.schema.schema import Schema
from fluss.records.kv.kv_batch import read_kv_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import SERVED, ScriptedCluster
from tests.support.scripted.scripted_peer import api_versions, success

HISTORY = (77, "__historical__")
COLUMNS = pa.schema([pa.field("p", pa.string(), nullable=False), ("id", pa.int64())])
KEYED = pa.schema(
    [pa.field("p", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)]
)
KEEPS_HISTORY = {
    "table.auto-partition.enabled": "true",
    "table.auto-partition.time-unit": "DAY",
    "table.auto-partition.time-zone": "UTC",
    "table.auto-partition.num-retention": "3",
    "table.datalake.historical-partition.enabled": "true",
}
DAYS = ("20200101", "20200102", "20200103")
UNKNOWN_BUCKET = 21
OUT_OF_ORDER = 31
THROTTLED = 73


class History(ScriptedCluster):
    """Takes writes; `written` has the rows of each original partition, in their order."""

    def _answer(self, request):
        if request.api_key == ApiKey.API_VERSIONS:
            newer = [ApiKey.PRODUCE_LOG, ApiKey.PUT_KV, ApiKey.INIT_WRITER, ApiKey.CREATE_PARTITION]
            body = pb.ApiVersionsResponse.FromString(api_versions(*SERVED, *newer))
            for each in body.api_versions:
                if each.api_key in (ApiKey.PRODUCE_LOG, ApiKey.PUT_KV):
                    each.max_version = self.versions[each.api_key]
            return success(request, body.SerializeToString())
        return super()._answer(request)

    def __post_init__(self):
        super().__post_init__()
        self.versions = {ApiKey.PRODUCE_LOG: 1, ApiKey.PUT_KV: 3}
        self.requests, self.created, self.throttle = [], [], 0
        self.sequences, self.written, self.writer_ids = {}, {}, iter(range(100, 1_000))

    def _init_writer(self, _):
        return pb.InitWriterResponse(writer_id=next(self.writer_ids))

    def _create_partition(self, asked):
        self.created.append(asked)
        return 43

    def _produce_log(self, asked):
        return self._write(asked, pb.ProduceLogResponse(), is_kv=False)

    def _put_kv(self, asked):
        return self._write(asked, pb.PutKvResponse(), is_kv=True)

    def _write(self, asked, answer, *, is_kv):
        self.requests.append(asked)
        # Last first: answers are matched by their names, not by their places.
        for requested in reversed(asked.buckets_req):
            bucket = answer.buckets_resp.add(
                bucket_id=requested.bucket_id,
                partition_id=requested.partition_id,
                original_partition_name=requested.original_partition_name,
            )
            if requested.partition_id != self.partition[0]:
                bucket.error_code = UNKNOWN_BUCKET
                continue
            if self.throttle:
                self.throttle -= 1
                bucket.error_code = THROTTLED
                continue
            if is_kv:
                batch = read_kv_batch(requested.records)
                writer, sequence, count = batch.writer_id, batch.batch_sequence, len(batch)
            else:
                (batch,) = iter_log_batches(requested.records)
                writer, sequence = batch.header.writer_id, batch.header.batch_sequence
                count = batch.record_count
            place = (writer, requested.partition_id, requested.bucket_id)
            last = self.sequences.get(place, -1)
            if sequence != last + 1:
                bucket.error_code = OUT_OF_ORDER
                continue
            self.sequences[place] = sequence
            name = requested.original_partition_name
            self.written[name] = self.written.get(name, 0) + count
        return answer


def history(schema, **changes):
    partition = changes.pop("partition", HISTORY)
    properties = {**KEEPS_HISTORY, **changes.pop("properties", {})}
    return History(schema, partition=partition, properties=properties, bucket_count=2, **changes)


def session_of(cluster):
    options = {"operation-timeout": "5s", "retry.backoff-ms": "5", "writer.batch-timeout": "1ms"}
    return fluss.connect(f"fluss://{cluster.bootstrap}/db", **options)


def rows(count=60):
    return {"p": [DAYS[each % 3] for each in range(count)], "id": list(range(count))}


@pytest.fixture(params=[Schema(COLUMNS), Schema(KEYED, ["p", "id"])], ids=["log", "keyed"])
def schema(request):
    return request.param


def write(session, schema, given):
    table = session.table("t")
    (table.upsert if schema.primary_keys else table.append)(given)


def test_rows_of_expired_partitions_go_to_history_each_partition_by_itself(schema):
    with history(schema) as cluster, session_of(cluster) as session:
        for _ in range(3):
            write(session, schema, rows())
        assert cluster.written == dict.fromkeys(DAYS, 60)
        assert cluster.created == [], "the partition of the system is never created by a client"
        buckets = [each for asked in cluster.requests for each in asked.buckets_req]
        assert {each.partition_id for each in buckets} == {HISTORY[0]}
        assert {each.routing_bucket_count for each in buckets} == {2}
        # A bucket may be in a request several times, told apart by the original partition.
        told_apart = [
            [(each.bucket_id, each.original_partition_name) for each in asked.buckets_req]
            for asked in cluster.requests
        ]
        assert all(len(each) == len(set(each)) for each in told_apart)
        assert any(len({bucket for bucket, _ in each}) < len(each) for each in told_apart)
        # No two original partitions write a bucket with one writer id.
        names = {}
        for each in buckets:
            batch = (
                read_kv_batch(each.records).writer_id
                if schema.primary_keys
                else next(iter(iter_log_batches(each.records))).header.writer_id
            )
            names.setdefault((each.bucket_id, batch), set()).add(each.original_partition_name)
        assert all(len(each) == 1 for each in names.values())


def test_a_throttled_write_is_repeated(schema):
    with history(schema) as cluster, session_of(cluster) as session:
        cluster.throttle = 4
        write(session, schema, rows())
        assert cluster.written == dict.fromkeys(DAYS, 20)


def test_without_the_partition_of_history_nothing_is_written_or_created(schema):
    with history(schema, partition=(5, "20990101")) as cluster, session_of(cluster) as session:
        with pytest.raises(PartitionNotFoundError, match=r"20200101.* has expired"):
            write(session, schema, {"p": ["20200101"], "id": [1]})
        assert (cluster.written, cluster.created) == ({}, [])


def test_a_server_that_would_mix_partitions_up_is_refused(schema):
    with history(schema) as cluster:
        cluster.versions = {ApiKey.PRODUCE_LOG: 0, ApiKey.PUT_KV: 2}
        with session_of(cluster) as session:
            with pytest.raises(UnsupportedVersionError):
                write(session, schema, {"p": ["20200101"], "id": [1]})
            assert cluster.requests == []


@pytest.mark.parametrize(
    "properties",
    [
        {"table.datalake.historical-partition.enabled": "false"},
        {"table.auto-partition.num-retention": "-1"},
        {"table.auto-partition.enabled": "false"},
    ],
)
def test_tables_without_history_create_their_partitions(schema, properties):
    with history(schema, properties=properties) as cluster, session_of(cluster) as session:
        with pytest.raises(FlussError):
            write(session, schema, {"p": ["20200101"], "id": [1]})
        assert cluster.created
        assert cluster.written == {}


def test_a_partition_that_exists_is_written_as_ever_even_where_it_has_expired(schema):
    with history(schema, partition=(5, "20200101")) as cluster, session_of(cluster) as session:
        write(session, schema, {"p": ["20200101"], "id": [1]})
        (asked,) = cluster.requests
        (bucket,) = asked.buckets_req
        assert bucket.partition_id == 5
        assert not bucket.HasField("original_partition_name")


def test_a_partition_that_expires_under_a_writer_moves_to_history(schema):
    with history(schema, partition=(5, "20200101")) as cluster, session_of(cluster) as session:
        given = {"p": ["20200101"] * 20, "id": list(range(20))}
        write(session, schema, given)
        write(session, schema, given)
        assert cluster.written == {"": 40}
        cluster.partition = HISTORY
        # The old partition may have had the rows, and the lake may have them by now.
        with pytest.raises(FlussError, match="20 in doubt"):
            write(session, schema, given)
        for _ in range(2):
            write(session, schema, given)
        assert cluster.written == {"": 40, "20200101": 40}
        assert cluster.created == []


def test_new_partitions_are_created(schema):
    today = datetime.now(UTC).strftime("%Y%m%d")
    with history(schema) as cluster, session_of(cluster) as session:
        with pytest.raises(FlussError):
            write(session, schema, {"p": [today], "id": [1]})
        assert cluster.created


def test_expired_partitions_are_not_written_exactly_once():
    with history(Schema(COLUMNS)) as cluster, session_of(cluster) as session:
        rows_of_task = pa.table(rows(6)).to_batches()
        with pytest.raises(
            UnsupportedOperationError, match="cannot be written exactly once"
        ) as refused:
            append_exactly_once(session.table("t"), Task(run="r", step=0, part=0), rows_of_task)
        assert (refused.value.table, refused.value.partition) == ("db.t", DAYS[0])
        assert "plain writer" in refused.value.hint
        assert (cluster.written, cluster.created) == ({}, []), "nothing of the task is written"
