from __future__ import annotations

import pytest

from fluss.errors import ConfigError
from fluss.model.paths import TableBucket
from fluss.model.servers import (
    Address,
    LakeSnapshot,
    ServerNode,
    ServerType,
    parse_address,
    parse_addresses,
)
from tests.support.copies import pickled


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9123", Address("127.0.0.1", 9123)),
        (" host.example:1 ", Address("host.example", 1)),
        ("host", Address("host", 9123)),
        ("[::1]:65535", Address("::1", 65535)),
        ("[fe80::1]", Address("fe80::1", 9123)),
    ],
)
def test_an_address_is_read(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":9123",
        "host:",
        "host:x",
        "host:0",
        "host:65536",
        "host:123456789",
        "::1",
        "[::1",
        "[::1]x",
        "[]:1",
        "a b:1",
        "user@host:1",
        "fluss://host:1",
        "host:-1",
        "host:\u0661",
    ],
)
def test_something_else_is_refused(text):
    with pytest.raises(ConfigError):
        parse_address(text)


def test_addresses_are_written_so_that_they_can_be_read():
    for address in (Address("h", 1), Address("::1", 2)):
        assert parse_address(str(address)) == address


def test_several_addresses_stand_with_commas_and_each_once():
    assert parse_addresses("a:1, b:2,,a:1") == (Address("a", 1), Address("b", 2))
    with pytest.raises(ConfigError, match="no address"):
        parse_addresses(" , ")


def test_a_server_is_named_uniquely_in_its_cluster():
    coordinator = ServerNode(0, "h", 9123, ServerType.COORDINATOR)
    tablet = ServerNode(0, "h", 9124, ServerType.TABLET_SERVER, rack="r1")
    assert (coordinator.uid, tablet.uid) == ("cs-0", "ts-0")
    assert coordinator.server_type == "CoordinatorServer"
    assert tablet.server_type == "TabletServer"
    assert tablet.address == Address("h", 9124)
    assert repr(tablet) == "ServerNode(id=0, host='h', port=9124, server_type='TabletServer')"
    assert len({coordinator, tablet}) == 2


def test_a_lake_snapshot_knows_how_far_each_bucket_is():
    bucket = TableBucket(1, 0)
    snapshot = LakeSnapshot(5, {bucket: 42})
    assert snapshot.snapshot_id == 5
    assert snapshot.table_buckets_offset == {bucket: 42}
    assert snapshot.get_bucket_offset(TableBucket(1, 0)) == 42
    assert snapshot.get_bucket_offset(TableBucket(1, 1)) is None
    assert snapshot.get_table_buckets() == [bucket]
    assert repr(snapshot) == str(snapshot) == "LakeSnapshot(snapshot_id=5, buckets_count=1)"
    assert LakeSnapshot(5).table_buckets_offset == {}
    assert pickled(snapshot) == snapshot
    assert hash(snapshot) == hash(LakeSnapshot(5, {bucket: 42}))
