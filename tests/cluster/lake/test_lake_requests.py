"""The requests of tiering workers, on both servers: hand-outs, fencing, offsets and snapshots."""

from __future__ import annotations

import json
import uuid
from typing import NamedTuple

import pytest

from fluss.wire import messages as pb
from tests.support.lake.lake_requests import ENABLED, LakeRequests, local_file
from tests.support.servers.raw_client import COORDINATOR, RawClient

OFTEN = {**ENABLED, "table.datalake.freshness": "3s"}
UNKNOWN = 99_999


@pytest.fixture
def requests(lake_cluster, session):
    made = LakeRequests(lake_cluster.bootstrap_servers, session.database)
    yield made
    made.client.close()


@pytest.fixture
def table(requests, session):
    name = f"t_{uuid.uuid4().hex[:8]}"
    requests.create(name, [("id", "BIGINT")])
    session.table(name).offsets()  # waits until the coordinator knows the table
    return name


# --- rounds ---------------------------------------------------------------------------------------


class Often(NamedTuple):
    """A table that is tiered often."""

    name: str
    table_id: int


@pytest.fixture
def often(requests):
    name = f"often_{uuid.uuid4().hex[:8]}"
    requests.create(name, [("id", "BIGINT")], properties=OFTEN)
    yield Often(name=name, table_id=requests.table_id(name))
    requests.drop(name)


def errors_of(answers):
    return [each.error.error_code for each in answers]


def test_a_round_is_fenced(requests, often):
    assert not requests.heartbeat().HasField("tiering_table")
    table_id, coordinator, epoch = requests.take(often.table_id)
    assert epoch == 1
    for coordinators, epochs, code in ((0, 0, 0), (0, 1, 50), (0, -1, 50), (1, 0, 23), (1, 1, 23)):
        named = [(table_id, coordinator + coordinators, epoch + epochs)]
        assert errors_of(requests.heartbeat(tiering_tables=named).tiering_table_resp) == [code]
        if code:
            assert errors_of(requests.heartbeat(failed_tables=named).failed_table_resp) == [code]
            answer = requests.heartbeat(finished_tables=named)
            assert errors_of(answer.finished_table_resp) == [code]


def test_the_end_of_a_round_may_be_reported_twice(requests, often):
    mine = [requests.take(often.table_id)]
    requests.alter(often.name, "table.datalake.freshness", "1h")
    for _ in range(2):
        assert errors_of(requests.heartbeat(finished_tables=mine).finished_table_resp) == [0]
    assert errors_of(requests.heartbeat(failed_tables=mine).failed_table_resp) == [0]
    # The table is not being tiered; once its freshness has passed, it has another epoch as well.
    answer = requests.heartbeat(tiering_tables=mine)
    assert errors_of(answer.tiering_table_resp) in ([-1], [50])


def test_a_failed_round_is_handed_out_in_the_same_answer(requests, often):
    mine = requests.take(often.table_id)
    answer = requests.heartbeat(failed_tables=[mine], request_table=True)
    assert answer.tiering_table.tiering_epoch == mine[2] + 1
    mine = (*mine[:2], mine[2] + 1)
    answer = requests.heartbeat(
        finished_tables=[mine], force_finished_tables=[often.table_id], request_table=True
    )
    assert answer.tiering_table.tiering_epoch == mine[2] + 1


def test_a_table_that_does_not_exist_is_7(requests):
    epoch = requests.heartbeat().coordinator_epoch
    for name in ("tiering", "finished", "failed"):
        answer = requests.heartbeat(**{f"{name}_tables": [(UNKNOWN, epoch, 1)]})
        assert errors_of(getattr(answer, f"{name}_table_resp")) == [7]


def test_a_table_whose_lake_is_disabled_is_forgotten(requests):
    name = f"gone_{uuid.uuid4().hex[:8]}"
    requests.create(name, [("id", "BIGINT")], properties=OFTEN)
    mine = requests.take(requests.table_id(name))
    requests.alter(name, "table.datalake.enabled", "false")
    for _ in range(50):  # 0.9.1 notices it a moment later
        (code,) = errors_of(requests.heartbeat(tiering_tables=[mine]).tiering_table_resp)
        if code == 7:
            return
    pytest.fail(f"the answer is {code}")


# --- offsets and snapshots ------------------------------------------------------------------------


def test_the_file_of_offsets_is_the_one_of_fluss(requests, table):
    path = requests.prepared(table, [(None, 1, 7)])
    table_id = requests.table_id(table)
    assert f"lake/{requests.database}/{table}-{table_id}/metadata/" in path
    assert path.startswith("file:/")
    assert path.endswith(".offsets")
    found = local_file(path).read_text()
    assert found == f'{{"version":1,"table_id":{table_id},"bucket_offsets":[-1,7]}}'


def test_the_offsets_of_partitions_are_those_of_fluss(requests):
    name = f"parts_{uuid.uuid4().hex[:8]}"
    requests.create(name, partition_keys=["name"])
    path = requests.prepared(name, [(3, 1, 7), (2, 0, 4)])
    assert json.loads(local_file(path).read_text()) == {
        "version": 1,
        "table_id": requests.table_id(name),
        "partition_offsets": [
            {"partition_id": 2, "bucket_offsets": [4]},
            {"partition_id": 3, "bucket_offsets": [-1, 7]},
        ],
    }
    requests.commit(requests.table_id(name), 1, path)
    assert requests.snapshot(name) == (1, {(2, 0): 4, (3, 1): 7})


def test_a_table_without_a_snapshot_has_none(requests, table):
    for which in ({}, {"snapshot_id": 5}, {"readable": True}):
        assert requests.refusal(lambda which=which: requests.snapshot(table, **which)) == 53
    both = {"readable": True, "snapshot_id": 5}
    assert requests.refusal(lambda: requests.snapshot(table, **both)) == -1
    assert requests.refusal(lambda: requests.snapshot("nix")) == 7


def test_new_offsets_are_added_to_those_of_the_newest_snapshot(requests, table):
    requests.committed(table, 100, [(None, 1, 7)])
    assert requests.snapshot(table) == (100, {(None, 1): 7})
    requests.committed(table, 50, [(None, 0, 3)])
    assert requests.snapshot(table) == (50, {(None, 0): 3, (None, 1): 7})
    alone = requests.prepared(table, [(None, 0, 2)], ignore_previous_table_offsets=True)
    requests.commit(requests.table_id(table), 70, alone)
    assert requests.snapshot(table) == (70, {(None, 0): 2})


def test_the_newest_snapshot_alone_is_kept(requests, table):
    first = requests.committed(table, 1, [(None, 0, 1)])
    requests.committed(table, 2, [(None, 0, 2)], told=[(None, 0, 2)])
    assert requests.snapshot(table, snapshot_id=2) == (2, {(None, 0): 2})
    assert requests.refusal(lambda: requests.snapshot(table, snapshot_id=1)) == 53
    assert not local_file(first).exists()


def test_snapshots_are_kept_from_the_named_one_on(requests, table):
    paths = [requests.committed(table, 30, [(None, 0, 1)])]
    for snapshot_id, keep in ((10, -1), (20, 99), (40, 10)):  # ids of Iceberg do not grow
        paths.append(requests.committed(table, snapshot_id, [(None, 0, snapshot_id)], keep=keep))
    for snapshot_id in (10, 20, 40):
        found = requests.snapshot(table, snapshot_id=snapshot_id)
        assert found == (snapshot_id, {(None, 0): snapshot_id})
    assert requests.refusal(lambda: requests.snapshot(table, snapshot_id=30)) == 53
    assert [local_file(path).exists() for path in paths] == [False, True, True, True]


def test_the_newest_readable_snapshot_is_another_one(requests, table):
    path = requests.prepared(table, [(None, 0, 3)])
    readable = requests.prepared(table, [(None, 0, 2)])
    table_id = requests.table_id(table)
    requests.commit(table_id, 1, path, readable=readable)
    requests.committed(table, 2, [(None, 0, 9)], keep=-1)
    assert requests.snapshot(table, readable=True) == (1, {(None, 0): 2})
    assert requests.snapshot(table, snapshot_id=1) == (1, {(None, 0): 3})
    assert requests.snapshot(table) == (2, {(None, 0): 9})
    requests.committed(table, 3, [(None, 0, 10)])
    assert not local_file(readable).exists()


def test_a_commit_without_a_file_brings_its_offsets(requests, table):
    answer = requests.commit(requests.table_id(table), 9, None, told=[(None, 1, 11)])
    assert not answer.error_code
    assert requests.snapshot(table) == (9, {(None, 1): 11})
    assert requests.snapshot(table, readable=True) == (9, {(None, 1): 11})
    requests.committed(table, 10, [(None, 0, 2)])
    assert requests.snapshot(table) == (10, {(None, 0): 2, (None, 1): 11})


def test_each_table_of_a_commit_is_answered_alone(requests, table):
    other = f"other_{uuid.uuid4().hex[:8]}"
    requests.create(other, [("id", "BIGINT")])
    request = pb.CommitLakeTableSnapshotRequest()
    request.lake_table_snapshot_metadata.add(
        table_id=requests.table_id(table),
        snapshot_id=8,
        tiered_bucket_offsets_file_path=requests.prepared(table, [(None, 0, 3)]),
    )
    told = request.tables_req.add(table_id=requests.table_id(other), snapshot_id=8)
    told.buckets_req.add(bucket_id=0, log_end_offset=3)
    answers = {each.table_id: each.error_code for each in requests.call(request).table_resp}
    assert answers == {requests.table_id(table): 0, requests.table_id(other): -1}
    assert requests.snapshot(table) == (8, {(None, 0): 3})
    assert requests.refusal(lambda: requests.snapshot(other)) == 53
    assert not requests.call(pb.CommitLakeTableSnapshotRequest()).table_resp


def test_a_table_that_is_not_enabled_may_have_snapshots(requests):
    name = f"plain_{uuid.uuid4().hex[:8]}"
    requests.create(name, [("id", "BIGINT")], properties={})
    requests.committed(name, 5, [(None, 0, 3)])
    assert requests.snapshot(name) == (5, {(None, 0): 3})


def test_the_heartbeat_of_a_cluster_without_a_lake_has_no_work(cluster):
    with RawClient(cluster.bootstrap) as client:
        answer = client.call(pb.LakeTieringHeartbeatRequest(request_table=True), to=COORDINATOR)
    assert not answer.HasField("tiering_table")
