"""Tables whose partitions have different numbers of buckets: written, looked up and read.

Only servers since 1.0 can change the bucket count of a table; on others the tests that need it are
skipped, and the rest shows that nothing depends on counts that such servers do not report.
"""

import uuid

import pyarrow as pa
import pytest

import fluss
from fluss import col
from fluss.errors import FlussError
from fluss.exactly_once import Task, append_exactly_once
from fluss.lookup.lookup_cores import key_lookup
from fluss.net.handoff import BlockingSink
from fluss.scan.table_stats import table_size
from fluss.wire import messages
from fluss.wire.table_paths import write_table_path
from fluss.write.writer_pool import upsert_core
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.rescaling import needs_rescaling, rescale

DAYS = {"d1": 2, "d2": 5, "d3": 1}


def rows_of(days, count=120):
    return pa.table(
        {
            "day": [day for day in days for _ in range(count)],
            "id": pa.array([each for _ in days for each in range(count)], pa.int64()),
            "x": [f"{day} {each}" for day in days for each in range(count)],
        }
    )


def sorted_rows(table):
    return sorted(table.to_pylist(), key=lambda row: (row["day"], row["id"]))


def grown(session, name, *, primary_key=None, bucket_key=None, other=None):
    """A table with a partition of two buckets, then one of five, then one of one."""
    needs_rescaling(session)
    keys = {"primary_key": primary_key} if primary_key else {"bucket_key": bucket_key}
    if primary_key and bucket_key:
        keys["bucket_key"] = bucket_key
    session.create_table(name, rows_of(["d1"]), partition_by=["day"], buckets=2, **keys)
    writer = (other or session).table(name)
    for day, buckets in DAYS.items():
        if buckets != 2:
            rescale(session, name, buckets)
        write = writer.upsert if primary_key else writer.append
        write(rows_of([day]))
    return session.table(name)


@pytest.fixture
def keyed_days(session):
    return grown(session, "keyed_days", primary_key=["day", "id"])


def counts_of(table):
    return {each.partition_name: each.bucket_count for each in table.partitions()}


def test_partitions_report_their_bucket_counts(keyed_days):
    assert counts_of(keyed_days) == DAYS
    assert keyed_days.info.num_buckets == 1
    assert keyed_days.info.bucket_count_epoch == 2
    assert "bucket_count=5" in repr(keyed_days.partitions()[1])
    offsets = keyed_days.offsets().to_pylist()
    assert len(offsets) == sum(DAYS.values())
    assert sum(each["end"] - each["earliest"] for each in offsets) == 360


def test_servers_before_1_0_report_no_counts(parted):
    infos = parted.partitions()
    assert {each.bucket_count for each in infos} in ({None}, {2})
    assert {parted.info.bucket_count_of(each) for each in infos} == {2}


@pytest.mark.parametrize("strategy", [None, "changelog", "scan_kv", "limit_scan"])
def test_the_state_has_the_rows_of_all_partitions(keyed_days, strategy):
    options = {} if strategy is None else {"strategy": strategy}
    assert sorted_rows(keyed_days.scan(**options).to_arrow()) == sorted_rows(rows_of(DAYS))


def test_rows_by_key_are_found_in_every_partition(session, cluster, database, keyed_days):
    # Another connection: it knows no partition when it places its first keys.
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as other:
        lookup = key_lookup(other.table("keyed_days")._core)
        keys = [(day, each) for day in [*DAYS, "d9"] for each in range(30)]
        sinks = [BlockingSink() for _ in keys]
        for key, sink in zip(keys, sinks, strict=True):
            lookup.ask(key, sink)
        found = [lookup.decode(each.wait_for_result(lambda: None)) for each in sinks]
        assert [each and each["x"] for each in found] == [
            None if day == "d9" else f"{day} {each}" for day, each in keys
        ]
    keys = rows_of([*DAYS, "d9"]).select(["day", "id"])
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as other:
        found = other.table("keyed_days").lookup(keys)
    assert found["_found"].to_pylist() == [True] * 360 + [False] * 120
    assert found["x"].to_pylist()[:360] == rows_of(DAYS)["x"].to_pylist()


def test_prefixes_are_found_in_every_partition(session):
    table = grown(session, "prefixes", primary_key=["day", "id", "x"], bucket_key=["id"])
    for day in DAYS:
        for each in (1, 50, 119):
            found = table.prefix_lookup([{"day": day, "id": each}])
            assert found["x"].to_pylist() == [f"{day} {each}"]


def test_a_filter_reads_only_the_bucket_of_its_key_in_each_partition(keyed_days):
    scan = keyed_days.scan(filter=col("id") == 77, mode="changelog")
    assert sorted(row["x"] for row in scan.to_arrow().to_pylist()) == ["d1 77", "d2 77", "d3 77"]
    assert (scan.stats.splits, scan.stats.buckets_pruned) == (3, 5)
    assert keyed_days.count(filter=col("_bucket") == 4) > 0
    assert keyed_days.count() == 360


def test_limits_and_tails_read_all_partitions(keyed_days):
    assert keyed_days.head(300).num_rows == 300
    assert keyed_days.scan(tail=5, mode="changelog").to_arrow().num_rows == 5
    assert keyed_days.scan(start="-1h", mode="changelog").to_arrow().num_rows == 360
    size = table_size(keyed_days._core)
    assert (size.partitions, size.rows) == (3, 360)


def test_rows_are_replaced_and_deleted_where_they_are(keyed_days):
    changed = rows_of(DAYS, 10).set_column(2, "x", pa.array(["new"] * 30))
    keyed_days.upsert(changed)
    keyed_days.delete(rows_of(DAYS, 5).select(["day", "id"]))
    found = sorted_rows(keyed_days.to_arrow())
    assert len(found) == 345
    assert [row["id"] for row in found if row["x"] == "new"] == [5, 6, 7, 8, 9] * 3


def test_logs_keep_their_rows_with_and_without_bucket_keys(session):
    for name, key in (("hashed", ["id"]), ("any_bucket", [])):
        table = grown(session, name, bucket_key=key)
        assert sorted_rows(table.to_arrow()) == sorted_rows(rows_of(DAYS))
        assert counts_of(table) == DAYS


def test_a_writer_from_before_the_change_places_its_rows_again(session, cluster, database):
    needs_rescaling(session)
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as other:
        # Its table handle says two buckets, whatever the partitions have.
        session.create_table(
            "stale", rows_of(["d1"]), primary_key=["day", "id"], partition_by=["day"], buckets=2
        )
        stale = other.table("stale")
        stale.upsert(rows_of(["d1"]))
        rescale(session, "stale", 7)
        writer = upsert_core(stale._core)
        for row in rows_of(["d2"]).to_pylist():
            writer.upsert(row)
        writer.upsert({"day": "d2", "id": 3, "x": "later"})
        writer.delete({"day": "d2", "id": 4})
        other._connection.engine.run(writer.flush())
        writer_counts = counts_of(session.table("stale"))
        assert writer_counts == {"d1": 2, "d2": 7}
        table = session.table("stale")
        found = {
            row["id"]: row["x"]
            for row in table.scan(filter=col("day") == "d2").to_arrow().to_pylist()
        }
        assert found == {each: f"d2 {each}" for each in range(120) if each != 4} | {3: "later"}
        assert table.lookup([("d2", 119)])["x"].to_pylist() == ["d2 119"]


def test_a_partition_that_is_made_again_with_other_buckets_is_written(session, cluster, database):
    needs_rescaling(session)
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as other:
        session.create_table(
            "again", rows_of(["d1"]), primary_key=["day", "id"], partition_by=["day"], buckets=2
        )
        table = other.table("again")
        table.upsert(rows_of(["d1"]))
        rescale(session, "again", 5)
        session.table("again").drop_partition({"day": "d1"})
        session.table("again").create_partition({"day": "d1"})
        table.upsert(rows_of(["d1"], 60))
        assert sorted_rows(session.table("again").to_arrow()) == sorted_rows(rows_of(["d1"], 60))
        assert table.lookup([("d1", 59)])["x"].to_pylist() == ["d1 59"]


def test_a_follower_reads_new_partitions_with_all_their_buckets(session, monkeypatch):
    monkeypatch.setattr("fluss.scan.followed_table.PARTITIONS_EVERY_S", 0.05)
    table = grown(session, "followed", bucket_key=["id"])
    seen = []
    with table.follow(start="earliest") as follower:
        rescale(session, "followed", 6)
        table.append(rows_of(["d4"]))
        for _ in range(100):
            seen += [row for batch in follower.poll(0.2) for row in batch.to_pylist()]
            if len(seen) == 480:
                break
    assert sorted(row["x"] for row in seen) == sorted(rows_of([*DAYS, "d4"])["x"].to_pylist())


def test_rows_are_written_once_into_partitions_of_any_size(session):
    table = grown(session, "once", bucket_key=["id"])
    rescale(session, "once", 4)
    task = Task(run=uuid.uuid4().hex, step=0, part=0)
    rows = rows_of(["d2", "d5"]).to_batches()
    assert append_exactly_once(table._core, task, rows).again == 0
    assert append_exactly_once(session.table("once")._core, task, rows).again == 240
    assert table.count() == 360 + 240
    assert counts_of(table)["d5"] == 4


def test_the_count_is_checked_by_the_server(session, keyed_days):
    for wrong, why in ((0, "at least one"), (200_000, "maximum")):
        with pytest.raises(FlussError, match=why):
            rescale(session, "keyed_days", wrong)
    rescale(session, "keyed_days", 1)
    assert session.table("keyed_days").info.bucket_count_epoch == 2
    session.create_table("flat", rows_of(["d1"]), buckets=2)
    with pytest.raises(FlussError, match="partitioned") as refused:
        rescale(session, "flat", 3)
    assert refused.value.error_code == 56


def test_requests_without_the_count_are_refused_on_rescaled_tables(session, keyed_days):
    cluster = session._connection.cluster
    partition = next(each for each in keyed_days.partitions() if each.partition_name == "d2")
    request = messages.ListOffsetsRequest(
        follower_server_id=-1,
        offset_type=1,
        table_id=keyed_days.info.table_id,
        partition_id=partition.partition_id,
        bucket_id=[0],
    )

    def code_for(count):
        if count is None:
            request.ClearField("routing_bucket_count")
        else:
            request.routing_bucket_count = count
        ask = cluster.ask_server(0, request, messages.ListOffsetsResponse)
        (answer,) = session._connection.engine.run(ask).buckets_resp
        return answer.error_code

    assert [code_for(each) for each in (None, 0, 1, 2, 5)] == [74, 74, 74, 74, 0]


def test_metadata_names_counts_and_epoch(session, keyed_days):
    cluster = session._connection.cluster
    path = keyed_days.info.table_path
    request = messages.MetadataRequest(table_path=[write_table_path(path)])
    for day in DAYS:
        request.partitions_path.add(
            database_name=path.database_name, table_name=path.table_name, partition_name=day
        )
    answer = session._connection.engine.run(cluster.ask_any(request, messages.MetadataResponse))
    assert answer.table_metadata[0].bucket_count_epoch == 2
    assert {
        each.partition_name: (each.bucket_count, len(each.bucket_metadata))
        for each in answer.partition_metadata
    } == {day: (count, count) for day, count in DAYS.items()}
