"""Settings, rebalances and health: their texts, numbers and rules."""

import pytest

from fluss import (
    AlterConfig,
    ClusterHealth,
    ClusterHealthStatus,
    ConfigEntry,
    GoalType,
    RebalanceProgress,
    RebalanceResultForBucket,
    RebalanceStatus,
    ServerTag,
    TableBucket,
    TableChange,
)
from fluss.errors import InvalidValueError


def moved(bucket, status):
    return RebalanceResultForBucket(
        bucket=TableBucket(1, bucket), original_leader=0, new_leader=1, original_replicas=(0,),
        new_replicas=(1,), status=status,
    )  # fmt: skip


def progress_of(*statuses):
    found = {TableBucket(1, at): moved(at, status) for at, status in enumerate(statuses)}
    status = RebalanceStatus.REBALANCING
    return RebalanceProgress(rebalance_id="id-1", status=status, progress_for_bucket_map=found)


def test_progress_is_the_share_of_finished_buckets():
    half = progress_of(RebalanceStatus.COMPLETED, RebalanceStatus.NOT_STARTED)
    assert (half.progress, half.format_as_percentage()) == (0.5, "50.00%")
    assert str(half) == "rebalance id-1: REBALANCING, 50.00% of 2 buckets"
    failed = progress_of(RebalanceStatus.FAILED, RebalanceStatus.CANCELED, RebalanceStatus.TIMEOUT)
    assert failed.progress == 1.0
    assert progress_of(None).progress == 0.0


def test_nothing_to_move_has_no_progress():
    assert progress_of().progress is None
    assert progress_of().format_as_percentage() == "NONE"
    assert str(progress_of()).endswith("nothing to move")


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (ServerTag.PERMANENT_OFFLINE, 0),
        (ServerTag.TEMPORARY_OFFLINE, 1),
        (GoalType.RACK_AWARE, 2),
        (RebalanceStatus.TIMEOUT, 5),
        (ClusterHealthStatus.RED, 2),
    ],
)
def test_numbers_are_those_of_java(member, code):
    assert member.code == code
    assert type(member).from_code(code) is member
    assert type(member).from_code(99) is None


def test_a_name_may_be_written_as_people_write_it():
    assert ServerTag.of("temporary-offline") is ServerTag.TEMPORARY_OFFLINE
    with pytest.raises(InvalidValueError, match="no GoalType"):
        GoalType.of("fast")


def test_a_setting_has_a_value_unless_it_is_deleted():
    assert str(AlterConfig.set("a", "1")) == "SET a 1"
    assert str(AlterConfig.delete("a")) == "DELETE a"
    for wrong in (("a", None, "SET"), ("a", "1", "DELETE"), ("", "1", "SET")):
        with pytest.raises(InvalidValueError):
            AlterConfig(*wrong)


def test_a_table_has_at_least_one_bucket():
    with pytest.raises(InvalidValueError, match="at least 1 bucket"):
        TableChange.modify_bucket_count(0)


def test_health_reads_as_a_sentence():
    found = ClusterHealth(
        num_replicas=6, in_sync_replicas=5, num_leader_replicas=2, active_leader_replicas=2,
        status=ClusterHealthStatus.YELLOW,
    )  # fmt: skip
    assert str(found) == "YELLOW: 5 of 6 replicas in sync, 2 of 2 leaders active"


def test_settings_with_secrets_are_not_shown():
    entry = ConfigEntry("datalake.iceberg.jdbc.password", "hunter2", "INITIAL_SERVER_CONFIG")
    change = AlterConfig.set("datalake.iceberg.jdbc.password", "hunter2")
    assert (entry.value, change.value) == ("hunter2", "hunter2")
    assert entry.shown == "***"
    for text in (repr(entry), str(entry), repr(change), str(change)):
        assert "***" in text
        assert "hunter2" not in text
    with pytest.raises(InvalidValueError) as refused:
        AlterConfig("datalake.iceberg.jdbc.password", "hunter2", "DELETE")
    assert "hunter2" not in str(refused.value)
    plain = ConfigEntry("kv.snapshot.interval", "5min", "DYNAMIC_SERVER_CONFIG")
    assert "'5min'" in repr(plain)
