"""Which snapshots of a lake are kept, and how their offsets are written."""

from __future__ import annotations

import json

import pytest

from fluss.errors import CorruptDataError
from fluss_server.lake.lake_settings import LakeLocation, settings_of_tables, settings_to_json
from fluss_server.lake.lake_snapshots import KnownSnapshot, LakeRecord, record_from_json
from fluss_server.lake.offsets_file import offsets_from_json, offsets_to_json


def record_of(*ids):
    record = LakeRecord()
    for snapshot_id in ids:
        record = with_snapshot(record, snapshot_id, earliest_kept=-1)
    return record


def with_snapshot(record, snapshot_id, *, name=None, readable=None, earliest_kept=None):
    added = KnownSnapshot(
        snapshot_id=snapshot_id, tiered=name or f"{snapshot_id}.offsets", readable=readable
    )
    return record.with_snapshot(added, earliest_kept=earliest_kept, now_ms=7)


def ids_of(record):
    return [each.snapshot_id for each in record.snapshots]


# Ids of Iceberg do not grow.
@pytest.mark.parametrize(
    ("earliest_kept", "expected"),
    [
        (None, [40]),
        (-1, [30, 10, 20, 40]),
        (99, [30, 10, 20, 40]),
        (30, [30, 10, 20, 40]),
        (10, [10, 20, 40]),
        (20, [20, 40]),
    ],
)
def test_the_snapshots_from_the_named_one_on_are_kept(earliest_kept, expected):
    record = with_snapshot(record_of(30, 10, 20), 40, earliest_kept=earliest_kept)
    assert ids_of(record) == expected
    assert record.files == {f"{each}.offsets" for each in expected}


def test_a_commit_that_is_sent_again_changes_nothing():
    record = record_of(1, 2)
    assert with_snapshot(record, 2, earliest_kept=-1) == record
    again = with_snapshot(with_snapshot(record, 3), 3)
    assert again == with_snapshot(record, 3)
    assert again.files == {"3.offsets"}  # so its file is not among those that are removed


def test_the_newest_readable_snapshot_is_found():
    record = with_snapshot(record_of(1), 2, readable="r", earliest_kept=-1)
    record = with_snapshot(record, 3, earliest_kept=-1)
    assert (record.find(None).snapshot_id, record.readable) == (3, (2, "r"))
    assert record.find(1).tiered == "1.offsets"
    assert record.find(9) is None
    assert LakeRecord().find(None) is LakeRecord().readable is None


def test_a_record_is_what_was_stored():
    record = with_snapshot(record_of(1), 2, readable="r", earliest_kept=-1)
    assert record_from_json(json.loads(json.dumps(record.to_json_object()))) == record
    assert record_from_json(None) == LakeRecord()


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ({(None, 1): 7}, '{"version":1,"table_id":3,"bucket_offsets":[-1,7]}'),
        ({}, '{"version":1,"table_id":3}'),
        (
            {(4, 0): 0},
            '{"version":1,"table_id":3,"partition_offsets":[{"partition_id":4,"bucket_offsets":[0]}]}',
        ),
    ],
)
def test_offsets_have_the_text_of_fluss(offsets, text):
    assert offsets_to_json(3, offsets) == text
    assert offsets_from_json(text, table_id=3) == offsets


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version":2,"table_id":3}', '{"version":1,"table_id":4}',
     '{"version":1,"table_id":3,"bucket_offsets":["x"]}', '{"version":1,"table_id":3,"bucket_offsets":5}'],
)  # fmt: skip
def test_what_is_no_file_of_offsets_of_the_table_is_refused(text):
    with pytest.raises(CorruptDataError, match="table 3"):
        offsets_from_json(text, table_id=3)


def test_secrets_are_neither_kept_nor_told():
    settings = {
        "uri": "jdbc:postgresql://db/lake",
        "jdbc.password": "x",
        "s3.secret-access-key": "x",
        "S3.Access-KEY-id": "x",
        "jdbc.user": "ann",
    }
    assert json.loads(settings_to_json(settings)).keys() == {"uri", "jdbc.user"}
    assert settings_of_tables("iceberg", settings).keys() == {
        "table.datalake.iceberg.uri",
        "table.datalake.iceberg.jdbc.user",
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (False, None),
        (True, LakeLocation()),
        ("sqlite:///lake.db", LakeLocation(url="sqlite:///lake.db")),
        ({"url": "x", "warehouse": "w"}, LakeLocation(url="x", warehouse="w")),
    ],
)
def test_a_lake_is_named_in_several_ways(given, expected):
    assert LakeLocation.of(given) == expected
    if expected is not None:
        assert LakeLocation.of(expected.fields) == expected
