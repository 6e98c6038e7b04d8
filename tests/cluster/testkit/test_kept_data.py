"""The contents of a kept directory after a graceful stop, and its refusals."""

import time

import pytest

from fluss.errors import ConfigError
from fluss_testkit.cluster_profiles import Profile
from fluss_testkit.java_cluster import JavaCluster
from tests.support.servers.raw_client import RawClient
from tests.support.servers.raw_table import append_nothing, create_log_table, end_offset

pytestmark = pytest.mark.slow  # a graceful stop takes 4 s


def append_retrying(client, table_id, appends):
    """Append, and retry while a new or restarted table refuses (errors 21, 12)."""
    offsets, give_up = [], time.monotonic() + 20
    while len(offsets) < appends:
        answer = append_nothing(client, table_id, to=0)
        assert answer.error_code in {0, 12, 21}, answer
        assert time.monotonic() < give_up
        if not answer.HasField("error_code"):
            offsets.append(answer.base_offset)
    return offsets


def test_tables_rows_addresses_and_passwords_come_back(start_cluster, tmp_path):
    with start_cluster(data_dir=tmp_path / "data") as before:
        addresses, users = (before.bootstrap_servers, before.sasl_bootstrap_servers), before.users
        with RawClient(before.bootstrap_servers) as client:
            table_id = create_log_table(client, "fluss", "kept")
            assert append_retrying(client, table_id, 3) == [0, 1, 2]
    with start_cluster(data_dir=tmp_path / "data") as after:
        assert (after.bootstrap_servers, after.sasl_bootstrap_servers) == addresses
        assert after.users == users
        with RawClient(after.bootstrap_servers) as client:
            (found,) = client.metadata(("fluss", "kept")).table_metadata
            assert found.table_id == table_id
            assert append_retrying(client, table_id, 1) == [3]
            assert end_offset(client, table_id, to=0) == 4


def test_data_of_three_servers_is_not_started_with_one(java, tmp_path):
    (tmp_path / "cluster.json").write_text('{"tablet_servers": 3}')
    with pytest.raises(ConfigError, match="is on 3 tablet servers, but 1 would start"):
        JavaCluster(Profile(tablet_servers=1), data_dir=tmp_path).start()
