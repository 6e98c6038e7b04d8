"""What a client says of lakes: found in every source, given to formats, and shown nowhere."""

import pickle

import pytest

from fluss.connection.config_sources import resolve
from fluss.connection.config_to_settings import lake_settings
from fluss.errors import ConfigError
from fluss.model.options.config import Config

SECRET = "s3cr3t-of-the-lake"
SECRETS = ("lake.password", "lake.token", "lake.client-secret", "lake.s3.secret-access-key",
           "lake.s3.session-token")  # fmt: skip


def pickled(config):
    return pickle.loads(pickle.dumps(config))  # noqa: S301 - our own


@pytest.fixture(autouse=True)
def no_profile(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FLUSS_CONFIG", raising=False)


def test_names_are_those_that_formats_know():
    config = Config(
        {
            "lake.user": "me",
            "lake.s3.endpoint": "http://store",
            "lake.properties": "s3.signer=none, header.x=1",
        }
    )
    assert lake_settings(config) == {
        "user": "me",
        "s3.endpoint": "http://store",
        "s3.signer": "none",
        "header.x": "1",
    }
    assert lake_settings(Config()) == {}


def test_the_environment_has_a_variable_for_each():
    environ = {"FLUSS_LAKE_PASSWORD": SECRET, "FLUSS_LAKE_S3_SECRET_ACCESS_KEY": SECRET}
    found = resolve("fluss://host:1", environ=environ, with_active=False)
    assert lake_settings(found.config) == {"password": SECRET, "s3.secret-access-key": SECRET}
    assert SECRET not in str(found)


def test_a_marker_is_resolved_where_it_is_used(monkeypatch):
    config = Config({"lake.password": "${env:LAKE_TEST_PASSWORD}"})
    monkeypatch.setenv("LAKE_TEST_PASSWORD", SECRET)
    assert lake_settings(pickled(config)) == {"password": SECRET}
    assert SECRET not in repr(config)


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_is_not_shown_and_not_pickled(key):
    config = Config({key: SECRET})
    assert SECRET not in repr(config)
    assert SECRET.encode() not in pickle.dumps(config)


def test_a_url_with_a_secret_does_not_show_it():
    found = resolve(f"fluss://host:1?lake.password={SECRET}", environ={}, with_active=False)
    assert lake_settings(found.config) == {"password": SECRET}
    assert SECRET not in str(found)


def test_logins_of_a_lake_are_not_lent_to_other_servers():
    environ = {"FLUSS_BOOTSTRAP_SERVERS": "theirs:1", "FLUSS_LAKE_PASSWORD": SECRET}
    found = resolve("fluss://ours:1", environ=environ, with_active=False)
    assert lake_settings(found.config) == {}
    assert "lake.password of the environment, which is for other servers" in str(found)


@pytest.mark.parametrize(
    "settings",
    [
        {"lake.uri": f"postgresql://me:{SECRET}@host/lake"},
        {"lake.properties": f"s3.secret-access-key={SECRET}"},
        {"lake.properties": {"token": SECRET}},
    ],
    ids=["an address with a password", "a secret among properties", "a token among properties"],
)
def test_a_secret_where_it_would_be_shown_is_refused(settings):
    with pytest.raises(ConfigError) as refused:
        Config(settings)
    assert SECRET not in str(refused.value)
