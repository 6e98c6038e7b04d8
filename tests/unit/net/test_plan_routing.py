from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.model.servers import Address
from fluss.net.plan_routing import ClusterView, Leader
from fluss.wire.messages import MetadataResponse
from tests.support.scripted.write_plan import metadata

EVENTS = TablePath("db", "events")
SERVERS = {0: ("one", 1), 1: ("two", 2)}


def facts(*, leaders, partition=None, **more):
    return metadata(
        PhysicalTablePath(EVENTS, partition), leaders=leaders, **{"servers": SERVERS, **more}
    )


def test_a_leader_is_known_after_it_was_learned_and_gone_after_it_was_forgotten():
    view = ClusterView()
    view.learn(facts(leaders={0: 1}))
    assert view.leader_of(TableBucket(7, 0)) == Leader(server_id=1, epoch=0)
    view.forget_leader(TableBucket(7, 0))
    assert view.leader_of(TableBucket(7, 0)) is None


def test_an_election_in_progress_means_no_leader():
    view = ClusterView()
    view.learn(facts(leaders={0: 1}))
    view.learn(facts(leaders={0: None}))
    assert view.leader_of(TableBucket(7, 0)) is None


def test_a_leader_that_left_the_cluster_does_not_count():
    view = ClusterView()
    view.learn(facts(leaders={0: 1}))
    view.learn(facts(leaders={0: 1}, servers={0: SERVERS[0]}))
    assert view.leader_of(TableBucket(7, 0)) is None


def test_a_table_created_again_forgets_its_former_buckets_and_partitions():
    view = ClusterView()
    leader = {0: 1}
    view.learn(facts(leaders=leader, partition="a", partition_id=5))
    assert view.partition_id(PhysicalTablePath(EVENTS, "a")) == 5
    view.learn(facts(table_id=8, leaders=leader, partition="b", partition_id=6))
    assert view.partition_id(PhysicalTablePath(EVENTS, "a")) is None
    assert view.leader_of(TableBucket(7, 0, partition_id=5)) is None
    assert view.leader_of(TableBucket(8, 0, partition_id=6)) is not None


def test_an_answer_without_servers_does_not_empty_the_cluster():
    view = ClusterView()
    view.learn(facts(leaders={}))
    view.learn(MetadataResponse())
    assert view.tablet_servers == {number: Address(*server) for number, server in SERVERS.items()}
    assert view.coordinator == Address("c", 9)
