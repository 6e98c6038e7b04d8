"""Authentication in pairs, and our server compared with a real one."""

import pytest

from fluss.errors import AuthenticationError, ConfigError, FlussError
from fluss.model.options.config import Config
from fluss.wire.frame import ResponseType, read_request, read_response
from fluss.wire.messages import AuthenticateRequest, AuthenticateResponse, read_error, read_message
from fluss.wire.sasl import (
    MECHANISMS,
    PLAIN,
    Credentials,
    Mechanism,
    PlaintextServer,
    SaslClient,
    SaslServer,
)
from tests.support.differential.golden_frames import golden_frames, talk

USER, PASSWORD = "reader", "very secret"  # those of tools/record_frames.py


@pytest.fixture
def server():
    return SaslServer({USER: PASSWORD, "other": "another secret"})


def client(username=USER, password=PASSWORD):
    return SaslClient(PLAIN, Credentials(username=username, password=password))


def request(token, protocol="PLAIN"):
    return AuthenticateRequest(protocol=protocol, token=token.encode())


# --- the client ---------------------------------------------------------------------------------


def test_client_sends_mechanism_and_token():
    sent = client().first_request()
    assert sent.protocol == "PLAIN"
    assert sent.token == b"\0reader\0very secret"


@pytest.mark.parametrize(
    "response",
    [AuthenticateResponse(challenge=b""), AuthenticateResponse()],
    ids=["empty challenge", "no challenge"],
)
def test_client_is_in_after_one_step(response):
    side = client()
    side.first_request()
    assert not side.is_complete
    assert side.next_request(response) is None
    assert side.is_complete


def test_client_refuses_a_second_step():
    side = client()
    side.first_request()
    with pytest.raises(AuthenticationError, match="challenge"):
        side.next_request(AuthenticateResponse(challenge=b"nonce"))
    assert not side.is_complete


def test_client_may_begin_again():
    side = client()
    first = side.first_request()
    side.next_request(AuthenticateResponse())
    assert side.first_request() == first
    assert not side.is_complete


@pytest.mark.parametrize(
    ("username", "password", "complaint"),
    [("", "b", "user name .* is empty"), ("a", "", "password .* is empty"),
     ("a\0", "b", "user name .* NUL"), ("a", "b\0", "password .* NUL")],
)  # fmt: skip
def test_client_refuses_what_plain_cannot_carry(username, password, complaint):
    with pytest.raises(ConfigError, match=complaint) as refusal:
        Credentials(username=username, password=password)
    assert "security.sasl.username" in refusal.value.hint


def test_a_password_is_never_shown():
    credentials = Credentials(username=USER, password=PASSWORD)
    side = SaslClient(PLAIN, credentials)
    guard = SaslServer({USER: PASSWORD})
    for shown in (credentials, side, guard):
        assert PASSWORD not in repr(shown)
        assert PASSWORD not in str(shown)
    for token in (f"x\0{USER}\0{PASSWORD}", f"{USER}\0{PASSWORD}", f"\0{USER}\0{PASSWORD}!"):
        with pytest.raises(AuthenticationError) as refusal:
            guard.respond(request(token))
        assert PASSWORD not in f"{refusal.value!r} {refusal.value} {refusal.value.facts}"


# --- both sides ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("username", "password"), [(USER, PASSWORD), ("Zoë", "пароль 密码")])
def test_server_accepts_the_user_that_client_names(username, password):
    guard = SaslServer({username: password})
    side = client(username, password)
    response = guard.respond(side.first_request())
    assert response.HasField("challenge")
    assert side.next_request(response) is None
    assert (guard.username, guard.is_complete) == (username, True)


def test_server_refuses_a_wrong_password_and_allows_another_attempt(server):
    for wrong in (client(password="guess"), client(username="stranger"), client(username="other")):
        with pytest.raises(AuthenticationError, match="wrong"):
            server.respond(wrong.first_request())
        assert not server.is_complete
    assert server.respond(client().first_request()).challenge == b""
    assert server.username == USER


def test_server_refuses_a_user_without_a_password():
    guard = SaslServer({USER: ""})
    for token in (f"\0{USER}\0", f"\0{USER}\0x"):
        with pytest.raises(AuthenticationError):
            guard.respond(request(token))


def test_server_answers_a_second_request_after_success_without_looking(server):
    server.respond(client().first_request())
    for again in (request(""), request(f"\0other\0{PASSWORD}")):
        assert not server.respond(again).HasField("challenge")
    assert server.username == USER


@pytest.mark.parametrize("token", [b"\xff\0a\0b", b"a", b"a\0b", b"\0a\0b\0c", b"", b"\0\0\0\0\0"])
def test_server_refuses_tokens_of_another_shape(server, token):
    with pytest.raises(AuthenticationError):
        server.respond(AuthenticateRequest(protocol="PLAIN", token=token))
    assert not server.is_complete


# --- the table of mechanisms --------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_may_be_chosen_and_is_documented(name):
    option = Config.OPTIONS["security.sasl.mechanism"]
    assert Config({option.key: name}).security_sasl_mechanism == name == name.upper()
    assert name in option.doc


class CountingClient:
    """Answers each challenge with the number after it; accepted at the third."""

    def __init__(self, credentials):
        self._name = credentials.username.encode()

    def first_token(self):
        return self._name + b" 0"

    def next_token(self, challenge):
        return self._name + b" %d" % (int(challenge) + 1) if challenge else None


class CountingServer:
    def __init__(self, passwords):
        self._passwords = passwords
        self.username = None

    def challenge(self, token):
        name, number = token.decode().split()
        if int(number) < 4:
            return b"%d" % (int(number) + 1)
        self.username = name
        return b""


def test_a_mechanism_of_several_steps_needs_an_entry_and_nothing_else(monkeypatch):
    entry = Mechanism(client=CountingClient, server=CountingServer)
    monkeypatch.setitem(MECHANISMS, "COUNT", entry)
    side = SaslClient("COUNT", Credentials(username=USER, password=PASSWORD))
    guard = SaslServer({USER: PASSWORD})
    asked, count = side.first_request(), 0
    while asked is not None:
        assert asked.protocol == "COUNT"
        asked, count = side.next_request(guard.respond(asked)), count + 1
    assert (count, side.is_complete, guard.username) == (3, True, USER)
    plain = client()
    guard = SaslServer({USER: PASSWORD})
    guard.respond(SaslClient("COUNT", Credentials(username="x", password="y")).first_request())
    assert plain.next_request(guard.respond(plain.first_request())) is None
    assert guard.username == USER, "a client may begin again with another mechanism"


# --- our server and a real one ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [case["name"] for case in golden_frames("talk") if case["name"].startswith("authentication")],
)
def test_server_answers_as_a_real_one_does(name, server):
    ours = PlaintextServer() if name == "authentication without need" else server
    for sent, got in talk(name):
        _, body = read_request(memoryview(sent)[4:])
        header, answer = read_response(memoryview(got)[4:])
        asked = read_message(AuthenticateRequest, body)
        if header.type is ResponseType.SUCCESS:
            assert ours.respond(asked) == read_message(AuthenticateResponse, answer)
        else:
            with pytest.raises(FlussError) as refusal:
                ours.respond(asked)
            assert refusal.value.error_code == read_error(answer).error_code
            assert type(refusal.value) is type(read_error(answer))


def test_client_gets_into_a_real_server():
    side = client()
    sent, got = talk("authentication: wrong, right, and once more")[1]
    assert read_message(AuthenticateRequest, sent[12:]) == side.first_request()
    assert side.next_request(read_message(AuthenticateResponse, got[9:])) is None
    assert side.is_complete
