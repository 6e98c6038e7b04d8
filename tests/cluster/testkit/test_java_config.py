"""The configuration of a profile: values, files, and refusals. Nothing is started."""

import pytest

from fluss.errors import ConfigError
from fluss_testkit.cluster_profiles import (
    FAST_SNAPSHOTS,
    PROFILES,
    REPLICATED,
    SINGLE,
    SMALL_SEGMENTS,
    Profile,
    find_profile,
    merge,
)
from fluss_testkit.java_config import configure, ports_needed, write_files
from fluss_testkit.workspace import open_workspace

USERS = {"admin": "secret", "alice": "wonder land!"}


def configured(profile, **changed):
    ports = range(20_000, 20_000 + ports_needed(profile))
    return configure(profile, ports, **{"users": USERS, "can_share": True, **changed})


def written(directory, profile):
    workspace = open_workspace(directory)
    try:
        return write_files(configured(profile), workspace)
    finally:
        workspace.leave()


def options_of(directory):
    lines = (directory / "server.yaml").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_a_single_server_shares_one_process_where_that_is_possible():
    assert not configured(SINGLE).separate
    assert configured(SINGLE, can_share=False).separate
    assert configured(Profile(separate=True)).separate


def test_every_server_gets_its_own_ports():
    config = configured(REPLICATED)
    servers = (config.coordinator, *config.tablet_servers)
    ports = [config.zookeeper_port, *(p for each in servers for p in (each.plain, each.sasl))]
    assert len(set(ports)) == len(ports) == 9
    assert config.coordinator.plain_address == "127.0.0.1:20000"


def test_later_profiles_win_and_options_add_up():
    merged = merge([REPLICATED, SMALL_SEGMENTS, FAST_SNAPSHOTS, Profile(heap_mb=300)])
    assert (merged.tablet_servers, merged.replication_factor, merged.heap_mb) == (3, 3, 300)
    assert merged.options == {**SMALL_SEGMENTS.options, **FAST_SNAPSHOTS.options}
    assert merged.separate is True


def test_a_profile_is_found_by_name_and_a_wrong_name_lists_the_right_ones():
    assert find_profile("replicated") is REPLICATED
    with pytest.raises(ConfigError) as caught:
        find_profile("replicate")
    assert all(name in caught.value.hint for name in PROFILES)


def test_each_server_is_configured_with_its_listeners_its_directory_and_the_users(tmp_path):
    files = written(tmp_path / "data", REPLICATED)
    options = [options_of(each) for each in (files.coordinator, *files.tablet_servers)]
    assert len({each["bind.listeners"] for each in options}) == 4
    assert [each.get("tablet-server.id") for each in options] == [None, "0", "1", "2"]
    for option in options:
        assert option["zookeeper.client.session-timeout"] == "6000ms"
        assert option["default.replication.factor"] == "3"
        assert 'user_admin="secret"' in option["security.sasl.plain.jaas.config"]
        assert 'user_alice="wonder land!"' in option["security.sasl.plain.jaas.config"]


def test_files_with_passwords_are_for_their_owner_alone(tmp_path):
    files = written(tmp_path / "data", SINGLE)
    assert (files.coordinator / "server.yaml").stat().st_mode & 0o077 == 0


def test_options_of_the_user_reach_every_server(tmp_path):
    files = written(tmp_path / "data", merge([SMALL_SEGMENTS, Profile(options={"a.b": "c d"})]))
    for directory in (files.coordinator, *files.tablet_servers):
        assert options_of(directory)["a.b"] == "c d"
        assert options_of(directory)["log.segment.file-size"] == "64kb"


def test_a_path_of_zookeeper_survives_the_properties_format(tmp_path):
    files = written(tmp_path / "dätä", SINGLE)
    assert f"dataDir={tmp_path}/d\\u00e4t\\u00e4/zookeeper" in files.zookeeper.read_text()


def test_a_directory_that_the_format_cannot_hold_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'#'"):
        written(tmp_path / "issue#1", SINGLE)


@pytest.mark.parametrize("key", ["bind.listeners", "data.dir", "zookeeper.address"])
def test_options_that_the_cluster_sets_itself_are_refused(key):
    with pytest.raises(ConfigError, match="set by the cluster itself"):
        configured(Profile(options={key: "x"}))


@pytest.mark.parametrize(
    ("key", "value"), [("k", "a # b"), ("k", ""), ("k", "a\nb: c"), ("k k", "v"), ("k:", "v")]
)
def test_options_that_fluss_would_misread_are_refused(key, value):
    with pytest.raises(ConfigError):
        configured(Profile(options={key: value}))


@pytest.mark.parametrize(
    ("user", "password"), [("a b", "x"), ("", "x"), ("a", ""), ("a", 'x"y'), ("a", "#"), ("a", "é")]
)
def test_users_that_fluss_would_misread_are_refused(user, password):
    with pytest.raises(ConfigError, match="cannot be configured"):
        configured(SINGLE, users={user: password})


@pytest.mark.parametrize(
    "profile",
    [
        Profile(tablet_servers=0),
        Profile(tablet_servers=10),
        Profile(replication_factor=2),
        Profile(zookeeper_session_ms=1_999),
        Profile(heap_mb=16),
    ],
)
def test_numbers_out_of_range_are_refused_with_the_range(profile):
    with pytest.raises(ConfigError, match="must be between"):
        configured(profile)
