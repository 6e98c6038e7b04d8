"""Hand-made tables and appends, for tests of servers rather than of rows.

A batch without records is only a header, so it needs no codec; the server assigns it one offset,
and replicates and keeps it like any other.
"""

from __future__ import annotations

import json
import struct

import crc32c

from fluss.wire import messages as pb
from tests.support.servers.raw_client import COORDINATOR, RawClient

ALL_REPLICAS = -1
LATEST = 1
PRODUCE_TIMEOUT_MS = 10_000


def create_log_table(client: RawClient, database: str, table: str, **properties: str) -> int:
    """Create a log table of one INTEGER column and one bucket; return its id."""
    column = {"name": "id", "data_type": {"type": "INTEGER"}, "id": 0}
    descriptor = {
        "version": 1,
        "schema": {"version": 1, "columns": [column], "highest_field_id": 0},
        "partition_key": [],
        "bucket_key": [],
        "bucket_count": 1,
        "properties": {name.replace("__", "."): value for name, value in properties.items()},
        "custom_properties": {},
    }
    path = pb.PbTablePath(database_name=database, table_name=table)
    request = pb.CreateTableRequest(
        table_path=path, table_json=json.dumps(descriptor).encode(), ignore_if_exists=False
    )
    client.call(request, to=COORDINATOR)
    return client.call(pb.GetTableInfoRequest(table_path=path)).table_id


def recordless_batch() -> bytes:
    """Return the header of an empty log batch of magic 0."""
    schema_id, attributes, last_offset_delta, writer_id, sequence, count = 1, 1, 0, -1, -1, 0
    sealed = struct.pack(
        "<hbiqii", schema_id, attributes, last_offset_delta, writer_id, sequence, count
    )
    base_offset, magic, timestamp = 0, 0, 0
    length = 1 + 8 + 4 + len(sealed)
    head = struct.pack("<qibq", base_offset, length, magic, timestamp)
    return head + struct.pack("<I", crc32c.crc32c(sealed)) + sealed


def append_nothing(client: RawClient, table_id: int, *, to: int) -> pb.PbProduceLogRespForBucket:
    """Append one empty batch to bucket 0 through its leader, acknowledged by all replicas."""
    bucket = pb.PbProduceLogReqForBucket(bucket_id=0, records=recordless_batch())
    request = pb.ProduceLogRequest(
        acks=ALL_REPLICAS, table_id=table_id, timeout_ms=PRODUCE_TIMEOUT_MS, buckets_req=[bucket]
    )
    (answer,) = client.call(request, to=to).buckets_resp
    return answer


def end_offset(client: RawClient, table_id: int, *, to: int) -> int:
    """Return the end of bucket 0 on this server; -1 where it refuses."""
    request = pb.ListOffsetsRequest(
        follower_server_id=-1, offset_type=LATEST, table_id=table_id, bucket_id=[0]
    )
    (answer,) = client.call(request, to=to).buckets_resp
    return answer.offset if answer.HasField("offset") else -1
