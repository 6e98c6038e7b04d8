"""Which layer of settings counts, that logins stay with their servers, and the profile file."""

import pickle
from contextvars import ContextVar

import pytest

import fluss
from fluss.connection import config_sources as config
from fluss.connection.config_sources import active_config, entered, explain, opened, resolve
from fluss.connection.profiles import find_profile
from fluss.errors import ConfigError

SERVERS = "bootstrap.servers"
USER, PASSWORD = "security.sasl.username", "security.sasl.password"
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _nothing_else_is_open(monkeypatch):
    # A test that failed before may have left its session open, and entered, too.
    monkeypatch.setattr(config, "_opened", [])
    monkeypatch.setattr(config, "_entered", ContextVar("fluss_sessions", default=()))


@pytest.fixture
def profile_file(tmp_path):
    def write(text, mode=0o600):
        path = tmp_path / "config.toml"
        path.write_text(text)
        path.chmod(mode)
        return {"FLUSS_CONFIG": str(path)}

    return write


PROFILES = f"""
default = "dev"

[profiles.dev]
bootstrap.servers = "dev:1"

[profiles.prod]
"bootstrap.servers" = "prod:1"
security.sasl.username = "me"
security.sasl.password = "{SECRET}"
writer.acks = "1"
"""


def servers(*given, **more):
    more.setdefault("environ", {"HOME": "/nowhere"})
    return resolve(*given, **more).config.bootstrap_servers


def test_the_first_layer_with_a_setting_counts(profile_file):
    environ = profile_file(PROFILES) | {"FLUSS_BOOTSTRAP_SERVERS": "env:1"}
    session = fluss.Config({SERVERS: "session:1"})
    url = "fluss://url:1"
    with entered(session):
        assert servers(url, environ=environ, bootstrap_servers="arg:1") == "arg:1"
        assert servers(url, environ=environ) == "url:1"
        assert servers(environ=environ) == "session:1"
    assert servers(environ=environ) == "env:1"
    del environ["FLUSS_BOOTSTRAP_SERVERS"]
    assert servers(environ=environ) == "dev:1"
    assert servers(environ=environ, profile="prod") == "prod:1"
    assert servers(environ=environ | {"FLUSS_PROFILE": "prod"}) == "prod:1"
    assert servers() == "127.0.0.1:9123"


def test_a_named_profile_counts_more_than_the_active_session_and_the_environment(profile_file):
    environ = profile_file(PROFILES) | {"FLUSS_BOOTSTRAP_SERVERS": "env:1"}
    assert servers(environ=environ, profile="prod") == "prod:1"
    with entered(fluss.Config({SERVERS: "session:1"})):
        assert servers(environ=environ, profile="prod") == "prod:1"
        assert servers("fluss://url:1", environ=environ, profile="prod") == "url:1"
    login = environ | {"FLUSS_SASL_USERNAME": "other", "FLUSS_SASL_PASSWORD": "theirs"}
    found = resolve(environ=login, profile="prod").config
    assert (found.security_sasl_username, found.security_sasl_password) == ("me", SECRET)


def test_the_active_session_is_the_innermost_with_else_the_last_opened():
    first, second, inner = (fluss.Config({SERVERS: f"{name}:1"}) for name in "abc")
    before = active_config()
    first_note, second_note = opened(first), opened(second)
    assert active_config() is second
    with entered(first), entered(inner):
        assert active_config() is inner
    second_note.forget()
    assert active_config() is first
    first_note.forget()
    assert active_config() is before


def test_an_ended_session_is_not_active_again_when_a_later_one_ends():
    first, second = (fluss.Config({SERVERS: f"{name}:1"}) for name in "ab")
    begun = [entered(each) for each in (first, second)]
    for each in begun:
        each.__enter__()
    begun[0].__exit__(None, None, None)
    assert active_config() is second
    begun[1].__exit__(None, None, None)
    assert active_config() is None


def test_a_user_means_sasl():
    config = resolve("fluss://me@h", environ={"FLUSS_SASL_PASSWORD": SECRET}).config
    assert (config.security_protocol, config.security_sasl_username) == ("sasl", "me")
    assert config.security_sasl_password == SECRET


def test_a_login_stays_with_the_servers_it_was_written_for():
    environ = {
        "FLUSS_BOOTSTRAP_SERVERS": "mine:1",
        "FLUSS_SASL_USERNAME": "me",
        "FLUSS_SASL_PASSWORD": SECRET,
    }
    same = resolve("fluss://mine:1", environ=environ)
    assert same.config.security_sasl_password == SECRET
    other = resolve("fluss://other:1", environ=environ)
    assert other.config.security_protocol == "PLAINTEXT"
    assert other.config.security_sasl_password == ""
    assert any("other servers" in each for each in other.ignored)


def test_a_password_stays_with_its_user():
    environ = {"FLUSS_SASL_USERNAME": "me", "FLUSS_SASL_PASSWORD": SECRET}
    found = resolve("fluss://you@h", environ=environ).config
    assert (found.security_sasl_username, found.security_sasl_password) == ("you", "")


def test_a_session_lends_its_login_only_to_its_own_servers():
    session = fluss.Config(
        {SERVERS: "mine:1", "security.protocol": "sasl", USER: "me", PASSWORD: SECRET}
    )
    with entered(session):
        assert resolve("fluss://mine:1", environ={}).config.security_sasl_password == SECRET
        assert resolve("fluss://other:1", environ={}).config.security_sasl_password == ""


# --- whose login (decision 0010) ------------------------------------------------------------------

ADMIN = {SERVERS: "mine:1", "security.protocol": "sasl", USER: "admin", PASSWORD: SECRET}


def login(given=None, **more):
    found = resolve(given, environ={"HOME": "/nowhere"}, **more).config
    return found.bootstrap_servers, found.security_sasl_username, found.security_sasl_password


def test_a_session_that_is_only_open_lends_its_login_to_what_takes_its_servers():
    opened(fluss.Config(ADMIN))
    assert login() == ("mine:1", "admin", SECRET)
    assert login("fluss://mine:1") == ("mine:1", "", "")
    assert login("fluss://mine:1/d.t") == ("mine:1", "", "")
    assert login({SERVERS: "mine:1"}) == ("mine:1", "", "")
    assert login(bootstrap_servers="mine:1") == ("mine:1", "", "")
    assert resolve("fluss://mine:1").config.security_protocol == "PLAINTEXT"
    shown = explain("fluss://mine:1", environ={})
    assert f"# not used: {USER} of the session opened last" in shown
    assert SECRET not in shown


def test_a_user_that_is_named_gets_the_password_of_his_open_session():
    opened(fluss.Config(ADMIN))
    assert login("fluss://admin@mine:1") == ("mine:1", "admin", SECRET)
    assert login("fluss://ali@mine:1") == ("mine:1", "ali", "")
    assert login("fluss://admin@other:1") == ("other:1", "admin", "")


def test_inside_with_a_session_lends_its_login_to_the_same_servers():
    with entered(fluss.Config(ADMIN)):
        assert login() == ("mine:1", "admin", SECRET)
        assert login("fluss://mine:1/d.t") == ("mine:1", "admin", SECRET)
        assert login("fluss://other:1") == ("other:1", "", "")
        with entered(fluss.Config({SERVERS: "mine:1"})):
            assert login("fluss://mine:1") == ("mine:1", "", "")
            assert login() == ("mine:1", "", "")


def test_another_session_that_is_open_lends_nothing():
    opened(fluss.Config(ADMIN))
    opened(fluss.Config({SERVERS: "mine:1"}))
    assert login() == ("mine:1", "", "")
    with entered(fluss.Config({SERVERS: "other:1"})):
        assert login("fluss://mine:1") == ("mine:1", "", "")


def test_settings_resolved_without_a_user_get_none_later():
    anonymous = resolve("fluss://mine:1", environ={}).config
    named = resolve("fluss://admin@mine:1", environ={"FLUSS_SASL_PASSWORD": SECRET}).config
    with entered(fluss.Config(ADMIN)):
        assert config.completed(anonymous).security_sasl_username == ""
        assert config.completed(pickle.loads(pickle.dumps(named))).security_sasl_password == SECRET  # noqa: S301


@pytest.mark.parametrize("door", ["connect", "pandas", "polars", "duckdb", "fsspec"])
def test_every_door_asks_for_its_login_in_the_same_way(door, monkeypatch):
    import fluss_duckdb
    import fluss_polars
    from fluss.fsspec import FlussFileSystem
    from fluss.pandas import read_fluss

    def ask(url):
        doors = {
            "connect": lambda: fluss.connect(url),
            "pandas": lambda: read_fluss(f"{url}/d.t"),
            "polars": lambda: fluss_polars.read_fluss(f"{url}/d.t"),
            "duckdb": lambda: fluss_duckdb.connect(url=url),
            "fsspec": lambda: FlussFileSystem(url.removeprefix("fluss://")).ls("d"),
        }
        with pytest.raises(_AskedError):
            doors[door]()
        return asked.pop().security_sasl_username

    asked = []

    async def refuse_to_connect(engine, config):
        asked.append(config)
        raise _AskedError

    monkeypatch.setattr("fluss.connection.connection.ClientConnection.open", refuse_to_connect)
    opened(fluss.Config(ADMIN))
    assert ask("fluss://mine:1") == ""
    assert ask("fluss://admin@mine:1") == "admin"
    with entered(fluss.Config(ADMIN)):
        assert ask("fluss://mine:1") == "admin"


class _AskedError(Exception):
    """Whose login is asked for is known; no server is needed."""


def test_a_function_is_asked_for_the_password():
    found = resolve("fluss://me@h", environ={}, security_sasl_password=lambda: SECRET)
    assert found.config.security_sasl_password == SECRET
    with pytest.raises(ConfigError, match="no text"):
        resolve("fluss://me@h", environ={}, security_sasl_password=lambda: 5)


def test_explain_shows_the_source_of_each_setting_and_hides_passwords(profile_file):
    environ = profile_file(PROFILES)
    shown = explain("fluss://me@h:1?writer.acks=all", environ=environ, request_timeout_ms=5_000)
    assert f"{SERVERS} = h:1    # URL" in shown
    assert "request-timeout = 5000    # argument" in shown
    shown = explain(environ=environ, profile="prod")
    assert f"{USER} = me    # profile 'prod'" in shown
    assert "writer.acks = 1" in shown
    assert SECRET not in shown
    assert f"{PASSWORD} = ***" in shown
    assert SECRET not in repr(resolve(environ=environ, profile="prod"))
    assert "# default" in explain(environ={"HOME": "/nowhere"})


def test_written_settings_make_the_same_config_again():
    config = fluss.Config({PASSWORD: "$${env:X}", USER: "${env:Y}", "writer.acks": "1"})
    again = fluss.Config(config.written())
    assert again.written() == config.written()
    assert again.security_sasl_password == "${env:X}"
    assert SECRET.encode() not in pickle.dumps(fluss.Config({PASSWORD: SECRET}))


# --- the profile file -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_file_with_a_password_that_others_can_read_is_refused(profile_file, mode):
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        find_profile(profile_file(PROFILES, mode), "dev")
    assert SECRET not in str(caught.value)


def test_a_file_without_passwords_may_be_read_by_all(profile_file):
    text = PROFILES.replace(SECRET, "${env:FLUSS_SECRET}")
    found = find_profile(profile_file(text, 0o644), "prod")
    assert found is not None
    assert found.settings[PASSWORD] == "${env:FLUSS_SECRET}"


def test_without_a_file_there_is_no_profile(tmp_path):
    assert find_profile({"HOME": str(tmp_path)}) is None
    assert find_profile({"XDG_CONFIG_HOME": str(tmp_path)}) is None
    with pytest.raises(ConfigError, match="no configuration file"):
        find_profile({"HOME": str(tmp_path)}, "dev")
    with pytest.raises(ConfigError, match="no configuration file"):
        find_profile({"FLUSS_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROFILES.replace("default", "defualt") + "x = [", "not TOML"),
        ("profiles = 5", "no table"),
        ('default = "dve"\n[profiles.dev]\n', "did you mean 'dev'"),
        ('default = "a"\n[profiles.a]\nwriter.ackz = "1"', "did you mean 'writer.acks'"),
        ('default = "a"\n[profiles]\na = 5', "no profile 'a'"),
    ],
)
def test_a_mistake_in_the_file_is_reported(profile_file, text, expected):
    with pytest.raises(ConfigError) as caught:
        find_profile(profile_file(text))
    assert expected in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_file_without_a_default_gives_no_settings(profile_file):
    environ = profile_file('[profiles.dev]\nbootstrap.servers = "dev:1"')
    assert find_profile(environ) is None
    assert servers(environ=environ, profile="dev") == "dev:1"
