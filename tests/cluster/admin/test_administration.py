"""The administration of a cluster: access, settings, servers, snapshots, offsets of producers.

The cluster of this module has an authorizer and two users. The real one has three tablet servers.
"""

import time

import pytest

import fluss
from fluss import (
    AclBinding,
    AclBindingFilter,
    AlterConfig,
    DatabaseChange,
    RebalanceStatus,
    Resource,
    TableBucket,
    TableChange,
)
from fluss.errors import (
    AuthenticationError,
    AuthorizationError,
    DatabaseNotFoundError,
    FlussError,
    InvalidValueError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from fluss_server.local_cluster import LocalCluster
from fluss_testkit.cluster_profiles import Profile
from tests.support.servers.fix_cluster import server_kinds

USERS = {"admin": "secret-1", "alice": "secret-2"}
# Another server knows a new entry, or has moved its replicas, within this time.
SETTLE_S_MAX = 30
MARKS = {"real": [pytest.mark.real], "embedded": []}


@pytest.fixture(
    scope="module", params=[pytest.param(each, marks=MARKS[each]) for each in server_kinds()]
)
def guarded(request):
    """The address of a cluster with access control, and whether it is of release 1.0."""
    if request.param == "embedded":
        with LocalCluster(users=USERS, super_users=["admin"]) as running:
            yield running.sasl_bootstrap_servers, True
        return
    start = request.getfixturevalue("start_cluster")
    # The checks that the cluster is ready are made without a login.
    options = {"authorizer.enabled": "true", "super.users": "User:admin;User:ANONYMOUS"}
    with start(Profile(tablet_servers=3), options=options, users=USERS) as running:
        yield running.sasl_bootstrap_servers, False


@pytest.fixture(scope="module")
def admin(guarded):
    with fluss.connect(f"fluss://{guarded[0]}", user="admin", password=USERS["admin"]) as session:
        session.create_database("shop")
        session.create_table(
            "shop.stock", {"id": "INT NOT NULL", "n": "INT"}, primary_key="id", buckets=2
        )
        session.create_table("shop.visits", {"page": "STRING"}, buckets=3)
        session.append("shop.visits", {"page": ["a", "b", "c"]})
        session.upsert("shop.stock", {"id": [1, 2], "n": [10, 20]})
        yield session


@pytest.fixture(scope="module")
def alice(guarded, admin):
    with fluss.connect(f"fluss://{guarded[0]}", user="alice", password=USERS["alice"]) as session:
        yield session


@pytest.fixture
def no_acls(admin):
    """The cluster has no entries before the test, and none after it."""
    yield
    admin.drop_acls([AclBindingFilter()])


def eventually(condition):
    """Wait until all servers know what one of them knows already."""
    deadline = time.monotonic() + SETTLE_S_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def is_refused(call):
    try:
        call()
    except AuthorizationError:
        return True
    return False


# --- access ---------------------------------------------------------------------------------------


def test_entries_are_created_listed_and_dropped(admin, no_acls):
    assert admin.list_acls() == []
    read = AclBinding(Resource.table("shop.stock"), "alice", "READ", "10.0.0.1")
    see = AclBinding(Resource.cluster(), "*", "DESCRIBE")
    admin.create_acls([read, see])
    admin.create_acls([read])
    assert set(admin.list_acls()) == {read, see}
    assert admin.list_acls(AclBindingFilter(principal="User:alice")) == [read]
    assert admin.list_acls(AclBindingFilter(operation="ALL")) == []
    assert admin.list_acls(AclBindingFilter(resource_type="TABLE", host="10.0.0.1")) == [read]
    assert admin.drop_acls([AclBindingFilter(resource_type="DATABASE")]) == []
    assert admin.drop_acls([read, AclBindingFilter(resource_type="TABLE")]) == [read]
    assert admin.list_acls() == [see]


def test_a_user_may_do_what_entries_allow(guarded, admin, alice, no_acls):
    eventually(lambda: is_refused(lambda: alice.table("shop.stock")))
    assert is_refused(lambda: alice.create_database("mine"))
    assert alice.databases() == []
    if guarded[1]:  # servers of 0.9.1 tell everybody
        assert not alice.table_exists("shop.stock")
    admin.create_acls([AclBinding(Resource.table("shop.stock"), "alice", "READ")])
    eventually(lambda: not is_refused(lambda: alice.table("shop.stock").to_arrow()))
    stock = alice.table("shop.stock")
    assert sorted(stock.to_arrow()["id"].to_pylist()) == [1, 2]
    # A right on a table shows neither its database nor other tables.
    assert alice.databases() == []
    assert alice.tables("shop") == ["stock"]
    assert is_refused(lambda: stock.upsert({"id": [3], "n": [30]}))
    assert is_refused(lambda: alice.alter_table("shop.stock", set_properties={"mine": "1"}))
    assert is_refused(lambda: alice.drop_table("shop.stock"))
    assert is_refused(lambda: alice.table("shop.visits"))
    assert is_refused(alice.rebalance)
    admin.create_acls([AclBinding(Resource.database("shop"), "alice", "ALL")])
    eventually(lambda: alice.databases() == ["shop"])
    eventually(lambda: not is_refused(lambda: stock.upsert({"id": [3], "n": [30]})))
    assert alice.tables("shop") == ["stock", "visits"]
    assert stock.lookup({"id": [3]})["n"].to_pylist() == [30]
    stock.delete({"id": [3]})


def test_an_entry_for_everything_of_a_type_counts_for_that_type(admin, alice, no_acls):
    admin.create_acls([AclBinding(Resource.database("*"), "alice", "READ")])
    eventually(lambda: "shop" in alice.databases())
    assert alice.tables("shop") == []
    admin.create_acls([AclBinding(Resource.table("*"), "*", "READ")])
    eventually(lambda: alice.tables("shop") == ["stock", "visits"])
    eventually(lambda: not is_refused(lambda: alice.table("shop.visits").to_arrow()))
    assert is_refused(lambda: alice.append("shop.visits", {"page": ["d"]}))


def test_entries_need_a_right_of_their_own(alice):
    entry = AclBinding(Resource.table("shop.stock"), "alice", "WRITE")
    with pytest.raises(AuthorizationError, match="alice"):
        alice.create_acls([entry])
    assert alice.list_acls() == []


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_shown_and_changed(admin):
    key = "kv.rocksdb.shared-rate-limiter.bytes-per-sec"

    def value():
        return {each.key: (each.value, each.source) for each in admin.describe_cluster_configs()}

    before = value()
    assert before
    admin.alter_cluster_configs([AlterConfig.set(key, "64 mb")])
    assert value()[key] == ("64 mb", "DYNAMIC_SERVER_CONFIG")
    with pytest.raises(FlussError, match="not allowed to be changed dynamically"):
        admin.alter_cluster_configs([AlterConfig.delete(key), AlterConfig.set("data.dir", "/x")])
    assert value()[key][0] == "64 mb", "all changes of a request, or none"
    with pytest.raises(FlussError):
        admin.alter_cluster_configs([AlterConfig.set(key, "blue")])
    with pytest.raises(FlussError):
        admin.alter_cluster_configs([AlterConfig.append(key, "1 mb")])
    admin.alter_cluster_configs([AlterConfig.delete(key)])
    assert value() == before


def test_users_are_added_while_the_server_runs(guarded, admin):
    if not guarded[1]:
        pytest.skip("servers before 1.0 have no such setting")
    key = "security.sasl.plain.credentials"

    def logs_in(password):
        try:
            with fluss.connect(f"fluss://{guarded[0]}", user="zoe", password=password) as session:
                return session.databases() == []
        except AuthenticationError:
            return False

    assert not logs_in("one")
    admin.alter_cluster_configs([AlterConfig.append(key, "zoe:one")])
    assert {each.key: each.value for each in admin.describe_cluster_configs()}[key] == "zoe:******"
    assert logs_in("one")
    assert not logs_in("two")
    with pytest.raises(FlussError, match="duplicate map entry keys: 'zoe'"):
        admin.alter_cluster_configs([AlterConfig.append(key, "zoe:two")])
    with pytest.raises(FlussError, match="not allowed to be changed dynamically"):
        admin.alter_cluster_configs([AlterConfig.delete(key), AlterConfig.set("data.dir", "/x")])
    assert logs_in("one"), "all changes of a request, or none"
    admin.alter_cluster_configs([AlterConfig.subtract(key, "zoe:any")])
    assert not logs_in("one")
    assert key not in {each.key for each in admin.describe_cluster_configs()}


# --- servers --------------------------------------------------------------------------------------


def test_a_tag_is_set_once_and_taken_away(admin):
    server = admin.servers()[1].id
    admin.add_server_tag([server], "TEMPORARY_OFFLINE")
    admin.add_server_tag([server], "temporary_offline")
    with pytest.raises(FlussError, match="already exists"):
        admin.add_server_tag([server], "PERMANENT_OFFLINE")
    with pytest.raises(FlussError, match="not exists"):
        admin.remove_server_tag([server], "PERMANENT_OFFLINE")
    admin.remove_server_tag([server], "TEMPORARY_OFFLINE")
    admin.remove_server_tag([server, 99], "TEMPORARY_OFFLINE")
    with pytest.raises(FlussError) as unknown:
        admin.add_server_tag([99], "PERMANENT_OFFLINE")
    assert unknown.value.error_code == fluss.ErrorCode.SERVER_NOT_EXIST_EXCEPTION


def test_a_rebalance_empties_a_server_with_a_tag(admin):
    servers = [each.id for each in admin.servers()[1:]]
    emptied = servers[-1]
    admin.add_server_tag([emptied], "PERMANENT_OFFLINE")
    rebalance_id = admin.rebalance(["replica_distribution"])
    eventually(lambda: admin.list_rebalance_progress().status.is_final)
    progress = admin.list_rebalance_progress(rebalance_id)
    assert (progress.rebalance_id, progress.status) == (rebalance_id, RebalanceStatus.COMPLETED)
    if len(servers) == 1:
        assert progress.progress is None
        assert str(progress).endswith("nothing to move")
    else:
        assert progress.progress == 1.0
        moved = progress.progress_for_bucket_map.values()
        assert all(each.status is RebalanceStatus.COMPLETED for each in moved)
        assert any(emptied in each.original_replicas for each in moved)
        assert not any(emptied in each.new_replicas for each in moved)
        # Servers that do not lead a bucket may know its old replicas for a moment.
        eventually(
            lambda: (
                not any(
                    emptied in each
                    for each in admin.table("shop.visits").replicas()["replicas"].to_pylist()
                )
            )
        )
    admin.cancel_rebalance(rebalance_id)  # it is finished, so nothing happens
    with pytest.raises(FlussError) as other:
        admin.list_rebalance_progress("another")
    assert other.value.error_code == fluss.ErrorCode.NO_REBALANCE_IN_PROGRESS_EXCEPTION
    admin.remove_server_tag([emptied], "PERMANENT_OFFLINE")


def test_what_needs_a_newer_server_says_which(admin, guarded):
    _, is_1_0 = guarded
    table_id = admin.table("shop.stock").info.table_id
    if is_1_0:
        health = admin.get_cluster_health()
        assert (health.status, health.num_replicas) == ("GREEN", 5)
        assert admin.list_remote_log_manifests(table_id) == []
        assert admin.list_kv_snapshots(table_id).snapshot_ids_by_bucket == {}
        admin.alter_database("shop", set_properties={"owner": "ann"}, comment="all of it")
        info = admin.database_info("shop").database_descriptor
        assert (info.comment, dict(info.custom_properties)) == ("all of it", {"owner": "ann"})
        admin.alter_database("shop", reset_properties=["owner"], comment=None)
        info = admin.database_info("shop").database_descriptor
        assert (info.comment, dict(info.custom_properties)) == (None, {})
        with pytest.raises(DatabaseNotFoundError, match="no_shop"):
            admin.alter_database("no_shop", comment="x")
        admin.alter_database("no_shop", comment="x", ignore_if_not_exists=True)
        days = admin.create_table(
            "shop.days", {"n": "INT", "day": "STRING"}, partition_by="day", buckets=2
        )
        days.create_partition({"day": "1"})
        admin.alter_table("shop.days", buckets=4).create_partition({"day": "2"})
        counts = {each.partition_name: each.bucket_count for each in days.partitions()}
        assert counts == {"1": 2, "2": 4}
        admin.append("shop.days", {"n": [1, 2, 3], "day": ["1", "2", "2"]})
        assert admin.get_table_stats("shop.days").row_count == 3
        admin.drop_table("shop.days")
        with pytest.raises(FlussError, match="in no rack"):
            admin.add_server_tag_by_rack(["east"], "TEMPORARY_OFFLINE")
        return
    calls = [
        admin.get_cluster_health,
        lambda: admin.list_remote_log_manifests(table_id),
        lambda: admin.list_kv_snapshots(table_id),
        lambda: admin.alter_database("shop", comment="x"),
        lambda: admin.add_server_tag_by_rack(["east"], "TEMPORARY_OFFLINE"),
        lambda: admin.remove_server_tag_by_rack(["east"], "TEMPORARY_OFFLINE"),
        lambda: admin.alter_table("shop.stock", buckets=4),
    ]
    for call in calls:
        try:
            call()
        except UnsupportedVersionError as error:
            assert "Fluss 1.0" in error.hint  # noqa: PT017 - newer servers raise nothing
        else:
            pytest.skip("servers between 0.9.1 and 1.0 know some of these requests")
    assert admin.table("shop.stock").buckets == 2


# --- databases and tables -------------------------------------------------------------------------


def test_databases_and_tables_are_described(admin):
    summaries = {each.database_name: each for each in admin.list_database_summaries()}
    assert summaries["shop"].table_count == 2
    created_ms = admin.database_info("shop").created_time
    assert abs(summaries["shop"].created_time - created_ms) < 1_000
    assert admin.database_exists("shop")
    assert not admin.database_exists("no_shop")
    assert admin.get_table_stats("shop.stock").row_count == 2
    assert admin.get_table_stats("shop.visits").row_count == 3
    first = admin.get_table_schema("shop.visits")
    assert (first.schema_id, first.schema.column_names) == (1, ("page",))
    admin.alter_table("shop.visits", add_columns={"at": "TIMESTAMP(3)"})
    assert admin.get_table_schema("shop.visits").schema_id == 2
    assert admin.get_table_schema("shop.visits", 1) == first
    with pytest.raises(FlussError, match="no schema 3") as unknown:
        admin.get_table_schema("shop.visits", 3)
    assert unknown.value.hint == "Its schemas have the numbers 1 to 2."
    with pytest.raises(TableNotFoundError):
        admin.get_table_schema("shop.visit")


@pytest.mark.parametrize(
    "change",
    [{"drop_columns": "n"}, {"rename_columns": {"n": "m"}}, {"modify_columns": {"n": "BIGINT"}}],
)
def test_columns_that_cannot_change_yet_are_refused_with_a_remedy(admin, change):
    with pytest.raises(UnsupportedOperationError, match="do not drop, rename or modify") as refused:
        admin.alter_table("shop.stock", **change)
    assert "copy the rows" in refused.value.hint
    assert admin.table("shop.stock").fluss_schema.column_names == ("id", "n")


def test_a_bucket_count_is_changed_alone(admin):
    with pytest.raises(InvalidValueError, match="alone"):
        admin.alter_table("shop.stock", buckets=4, set_properties={"mine": "1"})


# --- snapshots and offsets of producers -----------------------------------------------------------


def test_snapshots_are_found_and_leased(admin):
    table_id = admin.table("shop.stock").info.table_id
    newest = admin.get_latest_kv_snapshots("shop.stock")
    assert (newest.table_id, newest.partition_id, newest.bucket_ids) == (table_id, None, [0, 1])
    assert newest.get_snapshot_id(0) is None
    with pytest.raises(UnsupportedOperationError, match="primary key"):
        admin.get_latest_kv_snapshots("shop.visits")
    bucket = TableBucket(table_id, 0)
    with pytest.raises(SnapshotNotFoundError):
        admin.get_kv_snapshot_metadata(bucket, 5)
    with admin.create_kv_snapshot_lease("job-1", 60_000) as lease:
        assert lease.acquire_snapshots({bucket: 5}) <= {bucket}
        lease.renew()
        lease.release_snapshots([bucket])
    for ask in (
        admin.get_latest_lake_snapshot,
        admin.get_readable_lake_snapshot,
        lambda name: admin.get_lake_snapshot(name, 3),
    ):
        with pytest.raises(SnapshotNotFoundError):
            ask("shop.stock")


def test_the_first_offsets_of_a_producer_stay(admin):
    bucket = TableBucket(admin.table("shop.visits").info.table_id, 0)
    assert admin.get_producer_offsets("job") is None
    assert admin.register_producer_offsets("job", {bucket: 7}) == "CREATED"
    assert admin.register_producer_offsets("job", {bucket: 8}) == "ALREADY_EXISTS"
    found = admin.get_producer_offsets("job")
    assert (found.producer_id, found.table_offsets) == ("job", {bucket.table_id: {bucket: 7}})
    assert found.expiration_time > time.time() * 1_000
    admin.delete_producer_offsets("job")
    admin.delete_producer_offsets("job")
    assert admin.get_producer_offsets("job") is None
    with pytest.raises(FlussError) as refused:
        admin.register_producer_offsets("a job", {})
    assert refused.value.error_code == fluss.ErrorCode.INVALID_PRODUCER_ID_EXCEPTION


# --- the awaited doors ----------------------------------------------------------------------------


@pytest.mark.parametrize("awaits_admin", [True, False], ids=["fluss", "aio"])
async def test_the_awaited_doors_have_the_same_calls(guarded, admin, awaits_admin):
    settings = {
        "bootstrap.servers": guarded[0],
        "security.protocol": "sasl",
        "security.sasl.username": "admin",
        "security.sasl.password": USERS["admin"],
    }
    door = fluss if awaits_admin else fluss.aio
    connection = await door.FlussConnection.create(door.Config(settings))
    opened = connection.get_admin()
    calls = await opened if awaits_admin else opened
    entry = AclBinding(Resource.cluster(), "bob", "ALTER")
    await calls.create_acls([entry])
    assert await calls.drop_acls([entry]) == [entry]
    await calls.alter_table("shop.stock", [TableChange.set("mine", "1")])
    assert (await calls.get_table_info("shop.stock")).custom_properties["mine"] == "1"
    await calls.alter_table("shop.stock", [TableChange.reset("mine")])
    await calls.alter_table("shop.no_stock", [TableChange.set("mine", "1")], True)
    with pytest.raises(TableNotFoundError):
        await calls.alter_table("shop.no_stock", [TableChange.set("mine", "1")])
    with pytest.raises(InvalidValueError, match="no change of a table"):
        await calls.alter_table("shop.stock", [DatabaseChange.update_comment("x")])
    lease = calls.create_kv_snapshot_lease("job-2", 60_000)
    await lease.renew()
    await lease.drop_lease()
    assert (await calls.get_table_stats("shop.stock")).row_count == 2
    if awaits_admin:
        connection.close()
    else:
        await connection.close()
