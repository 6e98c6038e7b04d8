"""The JSON files beside remote logs and snapshots."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from fluss.errors import CorruptDataError
from fluss.records.manifest import KvSnapshot, RemoteLogManifest, RemoteSegment, SnapshotFile

SEGMENT_ID = "5d7c0a3e-8a52-4b6e-9d0f-0123456789ab"
MANIFEST = {
    "version": 1,
    "database": "db",
    "table": "t",
    "partition_name": "2026",
    "table_id": 7,
    "partition_id": 8,
    "bucket_id": 0,
    "highest_copied_end_offset": 20,
    "remote_log_segments": [
        {
            "segment_id": SEGMENT_ID,
            "start_offset": 0,
            "end_offset": 10,
            "logical_start_offset": 2,
            "logical_end_offset": 9,
            "max_timestamp": 123,
            "size_in_bytes": 456,
        }
    ],
}
# As Java wrote it, for a snapshot of a partitioned table.
SNAPSHOT = (
    '{"version":1,"table_id":1,"partition_id":10,"bucket_id":1,"snapshot_id":1,'
    '"snapshot_location":"oss://bucket/snapshot","kv_snapshot_handle":{"shared_file_handles":['
    '{"kv_file_handle":{"path":"oss://bucket/shared/t1.sst","size":1},"local_path":"one.sst"}],'
    '"private_file_handles":[{"kv_file_handle":{"path":"oss://bucket/snapshot1/t3","size":3},'
    '"local_path":"CURRENT"}],"snapshot_incremental_size":5},"log_offset":10,"row_count":1234,'
    '"auto_inc_id_range":[{"column_id":2,"start":10000,"end":20000}]}'
)


def without(document, *names):
    return {key: value for key, value in document.items() if key not in names}


def test_a_manifest_survives():
    text = json.dumps(MANIFEST, separators=(",", ":"))
    manifest = RemoteLogManifest.from_json(text)
    assert manifest.to_json() == text
    assert manifest.segments == (
        RemoteSegment(
            segment_id=UUID(SEGMENT_ID),
            start_offset=0,
            end_offset=10,
            logical_start_offset=2,
            logical_end_offset=9,
            max_timestamp=123,
            size_bytes=456,
        ),
    )


def test_what_a_manifest_need_not_say_may_be_missing():
    plain = without(MANIFEST, "partition_name", "partition_id", "highest_copied_end_offset")
    manifest = RemoteLogManifest.from_json(json.dumps(plain))
    assert (manifest.partition, manifest.partition_id) == (None, None)
    assert json.loads(manifest.to_json()) == plain


def test_a_snapshot_survives():
    snapshot = KvSnapshot.from_json(SNAPSHOT)
    assert snapshot.to_json() == SNAPSHOT
    assert snapshot.private_files == (
        SnapshotFile(path="oss://bucket/snapshot1/t3", size_bytes=3, local_name="CURRENT"),
    )
    assert (snapshot.log_offset, snapshot.row_count) == (10, 1234)


def test_what_a_snapshot_need_not_say_may_be_missing():
    plain = without(json.loads(SNAPSHOT), "partition_id", "row_count", "auto_inc_id_range")
    snapshot = KvSnapshot.from_json(json.dumps(plain))
    assert (snapshot.partition_id, snapshot.row_count, snapshot.auto_increment_ranges) == (
        None,
        None,
        (),
    )
    assert json.loads(snapshot.to_json()) == plain


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a\\b", "a\x00"]
)
def test_a_local_name_does_not_lead_out_of_its_directory(name):
    document = json.loads(SNAPSHOT)
    document["kv_snapshot_handle"]["private_file_handles"][0]["local_path"] = name
    with pytest.raises(CorruptDataError, match="not a file's name"):
        KvSnapshot.from_json(json.dumps(document))


@pytest.mark.parametrize("name", ["database", "table_id", "bucket_id", "remote_log_segments"])
def test_a_manifest_without_what_it_must_say_is_refused(name):
    with pytest.raises(CorruptDataError, match="remote log manifest"):
        RemoteLogManifest.from_json(json.dumps(without(MANIFEST, name)))


@pytest.mark.parametrize("name", ["snapshot_id", "kv_snapshot_handle", "log_offset", "version"])
def test_a_snapshot_without_what_it_must_say_is_refused(name):
    with pytest.raises(CorruptDataError, match="KV snapshot"):
        KvSnapshot.from_json(json.dumps(without(json.loads(SNAPSHOT), name)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("segment_id", "no uuid"), ("start_offset", -1), ("end_offset", -1), ("size_in_bytes", -1),
     ("max_timestamp", "x"), ("logical_start_offset", 1.5)],
)  # fmt: skip
def test_a_segment_that_cannot_be_is_refused(name, value):
    document = json.loads(json.dumps(MANIFEST))
    document["remote_log_segments"][0][name] = value
    with pytest.raises(CorruptDataError):
        RemoteLogManifest.from_json(json.dumps(document))


def test_another_version_is_refused():
    with pytest.raises(CorruptDataError, match="version is 2"):
        RemoteLogManifest.from_json(json.dumps(MANIFEST | {"version": 2}))


@pytest.mark.parametrize("text", ["", "[]", "{", b"\xff", "null"])
def test_what_is_no_document_is_refused(text):
    with pytest.raises(CorruptDataError):
        RemoteLogManifest.from_json(text)
    with pytest.raises(CorruptDataError):
        KvSnapshot.from_json(text)
