"""The listener that requires a login, on the shared cluster."""

import pytest

from fluss.wire import messages as pb
from tests.support.servers.raw_client import COORDINATOR, RawClient, RefusedError

AUTHENTICATE = 46


def test_the_right_password_opens_the_cluster(cluster, database):
    with RawClient(cluster.sasl_bootstrap, user=cluster.user, password=cluster.password) as client:
        listed = client.call(pb.ListDatabasesRequest(), to=COORDINATOR).database_name
        assert database in listed


@pytest.mark.parametrize("credentials", [("", ""), ("user", ""), ("stranger", "password")])
def test_a_wrong_user_or_password_is_refused(cluster, credentials):
    user, password = (getattr(cluster, each, each) for each in credentials)
    with (
        RawClient(cluster.sasl_bootstrap, user=user, password=password) as client,
        pytest.raises(RefusedError) as caught,
    ):
        client.connection()
    assert caught.value.code == AUTHENTICATE


def test_nothing_is_served_before_the_login(cluster):
    with RawClient(cluster.sasl_bootstrap) as client:
        with pytest.raises(RefusedError) as caught:
            client.call(pb.ListDatabasesRequest())
        assert caught.value.code == AUTHENTICATE
        client.connection().log_in(cluster.user, cluster.password)
        assert client.call(pb.ListDatabasesRequest()).database_name


def test_metadata_after_a_login_has_the_addresses_that_require_one(cluster):
    with (
        RawClient(cluster.bootstrap) as plain,
        RawClient(cluster.sasl_bootstrap, user=cluster.user, password=cluster.password) as sasl,
    ):
        seen = [client.metadata().coordinator_server.port for client in (plain, sasl)]
    assert seen == [
        int(each.rsplit(":", 1)[1]) for each in (cluster.bootstrap, cluster.sasl_bootstrap)
    ]
