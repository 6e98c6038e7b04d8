"""A lake whose files are on S3: read and written with logins of the client's own."""

from __future__ import annotations

import pickle
import uuid

import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss_lake
import fluss_polars
from fluss.errors import AuthenticationError
from fluss_server import LocalCluster
from tests.cluster.lake.conftest import LAKE
from tests.support.objects.s3_gate import BUCKET, SERVER_KEY, SERVER_SECRET
from tests.support.servers.fix_cluster import IMPATIENT

SERVER_LOGIN = {"s3.access-key-id": SERVER_KEY, "s3.secret-access-key": SERVER_SECRET}
TIERED, SINCE = 600, 100


@pytest.fixture(scope="module")
def cluster(gate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake-on-s3")
    lake = {
        "url": f"sqlite:///{folder / 'catalog.db'}",
        "warehouse": f"s3://{BUCKET}/warehouse",
        "options": {"s3.endpoint": gate.endpoint, "client.region": "us-east-1", **SERVER_LOGIN},
    }
    with LocalCluster(folder / "data", durability="none", lake=lake) as running:
        yield running


@pytest.fixture(autouse=True)
def no_other_login(monkeypatch):
    """What the machine of the tests has for S3 is not taken."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def login(gate):
    """Settings with a login that the store has given away; the gate has counted nothing yet."""
    gate.reset()
    given = gate.new_credentials()
    return {
        "lake.s3.access-key-id": given["access_key_id"],
        "lake.s3.secret-access-key": given["access_key_secret"],
        "lake.s3.session-token": given["security_token"],
    }


@pytest.fixture
def connect(cluster):
    """A function that opens a session with settings for the lake."""
    opened = []

    def open_session(config=None):
        while opened:
            opened.pop().close()  # the next one would take over its settings
        url = f"fluss://{cluster.bootstrap_servers}/fluss"
        opened.append(fluss.connect(url, config=config or {}, **IMPATIENT))
        return opened[-1]

    yield open_session
    for each in opened:
        each.close()


def log_of(session):
    name = f"log_{uuid.uuid4().hex[:8]}"
    session.create_table(
        name, {"id": "BIGINT", "n": "INT"}, bucket_key=["id"], buckets=2, properties=LAKE
    )
    return session.table(name)


def rows(start, stop):
    return pa.table(
        {"id": pa.array(range(start, stop)), "n": [each % 5 for each in range(start, stop)]}
    )


def filled(session):
    """A log, most of which is copied into the lake."""
    table = log_of(session)
    table.append(rows(0, TIERED))
    tally = fluss_lake.tier(str(table.info.table_path), cluster=session, now=True)
    assert not tally.errors, tally.errors
    table.append(rows(TIERED, TIERED + SINCE))
    return table


def secrets(login):
    return [login["lake.s3.secret-access-key"], login["lake.s3.session-token"]]


def test_a_log_is_written_to_s3_and_read_from_there(connect, login, gate):
    session = connect(login)
    table = filled(session)
    assert not gate.gets or {each.access_key for each in gate.gets} == {
        login["lake.s3.access-key-id"]
    }
    gate.gets.clear()
    scan = table.scan()
    assert "lake: snapshot" in scan.explain()
    assert sorted(scan.to_arrow()["id"].to_pylist()) == list(range(TIERED + SINCE))
    assert table.scan(lake="only").count() == TIERED
    lazy = fluss_polars.scan_fluss(table).filter(pl.col("n") == 3).select(pl.len())
    assert lazy.collect().item() == (TIERED + SINCE) // 5
    read = [each for each in gate.gets if each.path.endswith(".parquet")]
    assert read, "rows came from elsewhere"
    assert {each.access_key for each in read} == {login["lake.s3.access-key-id"]}


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
def test_states_are_written_to_s3_and_read_from_there(connect, login, mode):
    session = connect(login)
    name = f"keys_{uuid.uuid4().hex[:8]}"
    session.create_table(
        name, {"id": "BIGINT", "n": "INT"}, primary_key=["id"], buckets=2, properties=LAKE
    )
    table, expected = session.table(name), {}
    for round_ in range(3):
        for id_ in range(round_ * 20, round_ * 20 + 60):
            expected[id_] = round_
        given = [id_ for id_, n in expected.items() if n == round_]
        table.upsert(pa.table({"id": given, "n": pa.array([round_] * len(given), pa.int32())}))
        gone = given[::7]
        table.delete([{"id": each} for each in gone])
        for each in gone:
            del expected[each]
        tally = fluss_lake.tier(
            str(table.info.table_path), cluster=session, now=True, write_mode=mode
        )
        assert not tally.errors, tally.errors
        only = table.scan(lake="only").to_arrow()
        assert dict(zip(only["id"].to_pylist(), only["n"].to_pylist(), strict=True)) == expected
    table.upsert([{"id": 0, "n": 9}])
    expected[0] = 9
    union = table.scan(lake="union").to_arrow()
    assert dict(zip(union["id"].to_pylist(), union["n"].to_pylist(), strict=True)) == expected


def test_a_login_is_in_no_split_and_in_no_explanation(connect, login):
    table = filled(connect(login))
    scan = table.scan()
    shown = [scan.explain(), repr(scan), repr(scan.splits()), str(table.info)]
    for secret in secrets(login):
        assert not any(secret in each for each in shown)
        assert secret.encode() not in pickle.dumps(scan.splits())


def test_a_refused_login_is_an_error_of_its_own(connect, login):
    name = filled(connect(login)).name
    wrong = {**login, "lake.s3.access-key-id": "UNKNOWN-KEY"}
    scan = connect(wrong).table(name).scan()
    with pytest.raises(AuthenticationError, match="refuses the login") as raised:
        scan.to_arrow()
    assert "lake.s3.access-key-id" in raised.value.hint
    assert not any(each in str(raised.value) for each in secrets(login))
    assert connect().table(name).scan(lake="off").count() == TIERED + SINCE


def test_an_expired_login_while_rows_are_read_is_an_error_of_its_own(connect, login, gate):
    scan = filled(connect(login)).scan()
    scan.splits()
    gate.expire()
    with pytest.raises(AuthenticationError, match="refuses the login"):
        scan.to_arrow()


def test_without_a_login_the_error_says_where_logins_are(connect, login):
    name = filled(connect(login)).name
    with pytest.raises(AuthenticationError) as raised:
        connect().table(name).scan().to_arrow()
    assert "FLUSS_LAKE_" in raised.value.hint


def test_tiering_with_a_refused_login_commits_nothing(connect, login):
    table = filled(connect(login))
    before = table.scan(lake="only").count()
    session = connect({**login, "lake.s3.access-key-id": "UNKNOWN-KEY"})
    tally = fluss_lake.tier(str(table.info.table_path), cluster=session, now=True)
    assert isinstance(next(iter(tally.errors.values())), AuthenticationError)
    assert connect(login).table(table.name).scan(lake="only").count() == before
