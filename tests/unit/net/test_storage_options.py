"""Options of file systems, from tokens of clusters and from users."""

import json

import pytest

from fluss.errors import ProtocolError
from fluss.net.storage_options import range_arguments, storage_options

TOKEN = json.dumps(
    {"version": 1, "access_key_id": "id", "access_key_secret": "hidden", "security_token": "t"}
).encode()
FACTS = {
    "fs.s3a.endpoint": "http://minio:9000",
    "fs.s3a.region": "eu",
    "fs.s3a.path.style.access": "true",
}
CREDENTIALS = {"key": "id", "secret": "hidden", "token": "t"}


def made(scheme="s3", token=TOKEN, facts=FACTS, own=None, *, uses_token=True):
    return storage_options(scheme, token, facts, own or {}, uses_token=uses_token)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_s3_is_given_the_store_and_the_token_of_the_cluster(scheme):
    assert made(scheme) == {
        **CREDENTIALS,
        "endpoint_url": "http://minio:9000",
        "client_kwargs": {"region_name": "eu"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }


def test_without_facts_the_file_system_decides():
    assert made(facts={"fs.s3a.path.style.access": "false"}) == CREDENTIALS


@pytest.mark.parametrize("style", [{}, {"fs.s3a.path.style.access": "false"}])
def test_where_servers_name_buckets_in_the_host_so_does_s3fs(style):
    facts = {"fs.s3a.endpoint": "http://minio:9000", **style}
    assert made(facts=facts)["config_kwargs"] == {"s3": {"addressing_style": "virtual"}}
    own = {"config_kwargs": {"s3": {"addressing_style": "path"}}}
    assert made(facts=facts, own=own)["config_kwargs"] == own["config_kwargs"]
    assert "config_kwargs" not in made(facts=facts, own={"endpoint_url": "http://other:1"})


def test_oss_is_given_what_ossfs_calls_it():
    facts = {"fs.oss.endpoint": "oss-cn-hangzhou.aliyuncs.com", "fs.oss.region": "cn-hangzhou"}
    options = made("oss", facts=facts)
    assert options == {**CREDENTIALS, "endpoint": "https://oss-cn-hangzhou.aliyuncs.com"}


def test_stores_without_tokens_are_given_nothing():
    assert made("hdfs", token=b"", facts={}) == {}


def test_own_options_replace_those_of_the_cluster_one_by_one():
    own = {"endpoint_url": "http://localhost:1", "config_kwargs": {"read_timeout": 1}}
    options = made(own=own)
    assert options["endpoint_url"] == "http://localhost:1"
    assert options["config_kwargs"] == {"s3": {"addressing_style": "path"}, "read_timeout": 1}
    assert options["key"] == "id"


def test_the_token_is_left_out_where_it_is_not_used():
    assert not {"key", "secret", "token"} & made(uses_token=False).keys()


@pytest.mark.parametrize("token", [b"top-secret{", b"[]", b'"top-secret"'])
def test_a_token_that_cannot_be_read_is_not_shown(token):
    with pytest.raises(ProtocolError, match="no JSON object") as caught:
        made(token=token)
    assert "top-secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_ranges_end_before_their_end_but_for_oss():
    assert range_arguments("s3", 10, 5) == {"start": 10, "end": 15}
    arguments = range_arguments("oss", 10, 5)
    assert (arguments["start"], arguments["end"]) == (10, 14)
    assert arguments["headers"] == {"x-oss-range-behavior": "standard"}
