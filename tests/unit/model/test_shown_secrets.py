"""A password stands in nothing that is shown: texts, JSON, dictionaries, errors and contexts."""

import copy
import json
import pickle
import traceback

import fsspec
import pytest

import fluss
from fluss.connection.config_sources import resolve
from fluss.connection.url import parse_url
from fluss.errors import ConfigError
from fluss.fsspec import FlussFileSystem
from fluss.model.options.secrets import Secret
from fluss.scan import source_of

SECRET = "hunter2-and-more"
PASSWORD = "security.sasl.password"
URL = f"fluss://me:{SECRET}@127.0.0.1:1/d.t"


def everything_of(error):
    """All that an error and those before it say, hidden contexts included."""
    texts = []
    while error is not None:
        texts += [repr(error), str(error), *map(str, getattr(error, "__notes__", ()))]
        texts += [repr(vars(error)), *map(repr, error.args)]
        texts += traceback.format_exception(error, chain=False)
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: FlussFileSystem(f"me:{SECRET}@127.0.0.1:1"), id="servers"),
        pytest.param(
            lambda: FlussFileSystem(servers=f"me:{SECRET}@127.0.0.1:1"), id="servers by name"
        ),
        pytest.param(
            lambda: FlussFileSystem("127.0.0.1:1", config={PASSWORD: SECRET, "writer.acks": "1"}),
            id="settings",
        ),
        pytest.param(lambda: FlussFileSystem(config=fluss.Config({PASSWORD: SECRET})), id="config"),
        pytest.param(
            lambda: FlussFileSystem(config=f"fluss://me:{SECRET}@127.0.0.1:1"), id="URL as config"
        ),
        pytest.param(
            lambda: FlussFileSystem(config=f"fluss://127.0.0.1:1?{PASSWORD}={SECRET}"),
            id="setting in a URL",
        ),
        pytest.param(
            lambda: fsspec.url_to_fs(f"fluss://me:{SECRET}@127.0.0.1:1/d")[0], id="url_to_fs"
        ),
        pytest.param(
            lambda: fsspec.filesystem(
                "dir", path="d", fs=FlussFileSystem(f"me:{SECRET}@127.0.0.1:1")
            ),
            id="directory",
        ),
    ],
)
def test_a_file_system_shows_no_password(make):
    files = make()
    shown = [files.to_json(), repr(files), str(files.to_dict()), str(files.storage_options)]
    shown += [repr(vars(files)), files.unstrip_protocol("d/t"), str(files.storage_args)]
    assert not [text for text in shown if SECRET in text]
    assert SECRET.encode() not in pickle.dumps(files)
    again = type(files).from_json(files.to_json())
    assert SECRET not in again.to_json()


def test_a_file_system_from_json_is_for_the_same_servers_and_user():
    files = FlussFileSystem(f"me:{SECRET}@127.0.0.1:1", config={"writer.acks": "1"})
    again = FlussFileSystem.from_json(files.to_json())
    assert again.fsid == files.fsid == "fluss://me@127.0.0.1:1"
    assert json.loads(again.to_json()) == json.loads(files.to_json())


def test_written_settings_hide_secrets_until_they_are_used():
    config = fluss.Config({PASSWORD: SECRET, "writer.acks": "1"})
    written = config.written()
    assert SECRET not in f"{written} {written[PASSWORD]} {written[PASSWORD]:>30}"
    with pytest.raises(TypeError):
        json.dumps(written)
    assert written[PASSWORD].reveal() == SECRET
    assert written["writer.acks"] == "1"
    assert fluss.Config(written).security_sasl_password == SECRET
    assert resolve(written, environ={}).config.security_sasl_password == SECRET
    assert fluss.Config({PASSWORD: Secret(SECRET)}).security_sasl_password == SECRET
    assert fluss.Config({PASSWORD: "${env:X}"}).written()[PASSWORD] == "${env:X}"
    assert copy.deepcopy(Secret(SECRET)) == Secret(SECRET)
    assert {Secret(SECRET): 1}[Secret(SECRET)] == 1
    assert Secret(SECRET) != SECRET


def test_urls_and_sources_show_no_password():
    url = parse_url(f"{URL}?{PASSWORD}={SECRET}")
    source = source_of(URL)
    for shown in (url, url.to_settings(), source, source.config, source.config.written()):
        assert SECRET not in repr(shown)


@pytest.mark.parametrize(
    "fail",
    [
        pytest.param(lambda: fluss.Config({PASSWORD: SECRET.encode()}), id="bytes"),
        pytest.param(lambda: fluss.Config({PASSWORD: [SECRET]}), id="list"),
        pytest.param(
            lambda: setattr(fluss.Config(), "security_sasl_password", SECRET.encode()),
            id="assigned",
        ),
        pytest.param(
            lambda: fluss.connect("fluss://127.0.0.1:1", user="me", password=SECRET.encode()),
            id="connect",
        ),
        pytest.param(
            lambda: fluss.connect("fluss://127.0.0.1:1", user="me", password=SECRET.encode),
            id="function",
        ),
        pytest.param(
            lambda: resolve("fluss://127.0.0.1:1", security_sasl_password=SECRET.encode()),
            id="resolve",
        ),
        pytest.param(lambda: resolve({PASSWORD: SECRET, "writer.ackz": 1}), id="unknown option"),
        pytest.param(lambda: resolve(f"{URL}?writer.acks=7"), id="bad option"),
        pytest.param(
            lambda: resolve(f"{URL}?writer.ackz={SECRET}&token={SECRET}"), id="unknown in URL"
        ),
        pytest.param(lambda: resolve(f"flus://me:{SECRET}@h/d.t"), id="scheme"),
        pytest.param(lambda: resolve(f"fluss://:{SECRET}@h/d.t"), id="no user"),
        pytest.param(lambda: resolve(f"fluss://me:{SECRET}@h:port/d.t"), id="port"),
        pytest.param(lambda: resolve(f"fluss://me:{SECRET}@h/a.b.c"), id="path"),
        pytest.param(lambda: resolve(f"fluss://me:{SECRET}@/d.t"), id="no host"),
        pytest.param(
            lambda: resolve(f"fluss://127.0.0.1?{PASSWORD}={SECRET}&{PASSWORD}={SECRET}"),
            id="twice",
        ),
        pytest.param(lambda: source_of(f"fluss://me:{SECRET}@h/d"), id="no table"),
        pytest.param(lambda: source_of(URL, {"tail": "x"}), id="scan option"),
        pytest.param(lambda: fluss.connect(URL, connect_timeout_ms=1_000), id="no server"),
    ],
)
def test_an_error_and_what_is_behind_it_hold_no_password(fail):
    with pytest.raises(fluss.FlussError) as refused:
        fail()
    assert SECRET not in everything_of(refused.value)


def test_an_option_that_is_no_secret_still_says_what_is_wrong():
    with pytest.raises(ConfigError, match="'7'"):
        fluss.Config({"writer.acks": "7"})
