"""Java reads every generated message, and writes the same bytes again."""

import os

import pytest

from fluss.errors import MissingRuntimeError
from fluss.wire._generated import messages_pb2
from fluss.wire.messages import message_class
from tests.support.differential.frame_oracle import ask_java
from tests.support.generators.random_messages import labels

# What came after 0.9.1.
NEW_MESSAGES = {
    "AddServerTagByRackRequest", "AddServerTagByRackResponse", "RemoveServerTagByRackRequest",
    "RemoveServerTagByRackResponse",
    "AlterDatabaseRequest", "AlterDatabaseResponse", "GetClusterHealthRequest",
    "GetClusterHealthResponse", "ListKvSnapshotsRequest", "ListKvSnapshotsResponse",
    "ListRemoteLogManifestsRequest", "ListRemoteLogManifestsResponse", "PbCompoundPredicate",
    "PbLakeTieringStats", "PbLeafPredicate", "PbLiteralValue", "PbModifyBucketCount",
    "PbPredicate", "PbRemoteLogManifestEntry", "PbScanReqForBucket", "ScanKvRequest",
    "ScanKvResponse",
}  # fmt: skip
NEW_FIELDS = {
    "AlterTableRequest.modify_bucket_count", "FetchLogRequest.read_preference",
    "GetTableInfoResponse.bucket_count_epoch", "GetTableInfoResponse.remote_data_dir",
    "LimitScanRequest.routing_bucket_count", "ListOffsetsRequest.routing_bucket_count",
    "ListPartitionInfosRequest.include_system_partitions",
    "ListPartitionInfosResponse.system_partitions_included", "PbAddColumn.agg_function_params",
    "PbAddColumn.agg_function_type", "PbBucketMetadata.bucket_epoch", "PbBucketMetadata.isr",
    "PbFetchLogReqForBucket.routing_bucket_count", "PbFetchLogReqForTable.filter_predicate",
    "PbFetchLogReqForTable.filter_schema_id", "PbFetchLogRespForBucket.filtered_end_offset",
    "PbFetchLogRespForBucket.min_retain_offset", "PbHeartbeatReqForTable.lake_tiering_stats",
    "PbLookupReqForBucket.original_partition_name", "PbLookupReqForBucket.routing_bucket_count",
    "PbLookupRespForBucket.original_partition_name", "PbPartitionInfo.bucket_count",
    "PbPartitionInfo.remote_data_dir", "PbPartitionMetadata.bucket_count",
    "PbPrefixLookupReqForBucket.routing_bucket_count",
    "PbProduceLogReqForBucket.original_partition_name",
    "PbProduceLogReqForBucket.routing_bucket_count",
    "PbProduceLogRespForBucket.original_partition_name",
    "PbPutKvReqForBucket.original_partition_name", "PbPutKvReqForBucket.routing_bucket_count",
    "PbPutKvRespForBucket.original_partition_name", "PbPutKvRespForBucket.pressure",
    "PbTableMetadata.bucket_count_epoch", "PbTableMetadata.remote_data_dir",
    "PbTableStatsReqForBucket.routing_bucket_count",
}  # fmt: skip


@pytest.mark.oracle
def test_java_reads_every_message_and_writes_the_same():
    ours = {
        name: fill(message_class(name)) for name in messages_pb2.DESCRIPTOR.message_types_by_name
    }
    questions = [
        f"again {name} {message.SerializeToString().hex() or '-'}" for name, message in ours.items()
    ]
    java = dict(zip(ours, ask_or_skip(questions), strict=True))
    assert {name for name in java if java[name] == "absent"} == NEW_MESSAGES
    lost = set()
    for name in ours.keys() - NEW_MESSAGES:
        theirs = type(ours[name]).FromString(bytes.fromhex(java[name]))
        lost |= compare(ours[name], theirs)
    assert lost == NEW_FIELDS


def ask_or_skip(questions):
    try:
        return ask_java(questions)
    except MissingRuntimeError as error:
        if os.environ.get("FLUSS_TEST_REQUIRE_REAL") == "1":
            raise
        pytest.skip(str(error))


def compare(ours, theirs):
    """The fields that Java dropped; all others must be the same."""
    name = ours.DESCRIPTOR.name
    found = dict(theirs.ListFields())
    lost = set()
    for field, value in ours.ListFields():
        if field not in found:
            lost.add(f"{name}.{field.name}")
        elif field.message_type is None:
            assert value == found[field], f"{name}.{field.name}"
        else:
            pairs = zip(listed(value), listed(found[field]), strict=True)
            lost = lost.union(*(compare(*pair) for pair in pairs))
    return lost


def listed(value):
    return [value] if hasattr(value, "ListFields") else list(value)


def fill(cls, depth=6, seed=1):
    """A message with every field set, each to a value of its own."""
    message = cls()
    known = labels(cls)
    for field in cls.DESCRIPTOR.fields:
        value = seed * 40 + field.number
        match field.type:
            case 9:
                value = f"text {value}"
            case 12:
                value = f"bytes {value}".encode()
            case 8:
                value = True
            case 2 | 1:
                value = float(value)
            case 3:
                value = value << 33
            case 11:
                if depth == 0:
                    continue
                value = fill(message_class(field.message_type.name), depth - 1, seed + 1)
        if known[field.name] == 3:
            getattr(message, field.name).extend([value, value])
        elif field.type == 11:
            getattr(message, field.name).CopyFrom(value)
        else:
            setattr(message, field.name, value)
    return message
