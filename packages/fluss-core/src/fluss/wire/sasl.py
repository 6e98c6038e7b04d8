"""Authentication exchanges, for both sides: SASL, and the listener that asks for nothing.

Before it is authenticated, a connection may carry API_VERSIONS and AUTHENTICATE only. The client
sends a token and answers challenges until the server accepts it; errors come as error frames and
leave the connection open for another attempt (Java: SaslServerAuthenticator, PlainSaslServer).
How often to try again, and when (code 51 asks for it), is decided elsewhere. Nothing here shows a
password.

A mechanism is two classes, one per side, and an entry in `MECHANISMS`; the option
`security.sasl.mechanism` lists the names that users may choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final, Protocol

from fluss.errors import AuthenticationError, ConfigError, ServerError
from fluss.wire import messages

PLAIN: Final = "PLAIN"
PLAINTEXT: Final = "PLAINTEXT"
_NUL: Final = "\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A user and a password.

    Raises:
        ConfigError: One of them is empty or holds a NUL, which PLAIN cannot carry.
    """

    username: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        for name, value in (("user name", self.username), ("password", self.password)):
            if not value or _NUL in value:
                what = "holds a NUL character" if value else "is empty"
                raise ConfigError(
                    f"The {name} for SASL PLAIN {what}.",
                    hint="Set both security.sasl.username and security.sasl.password.",
                )


class ClientMechanism(Protocol):
    """The tokens of a client."""

    def first_token(self) -> bytes:
        """The token that begins the exchange."""

    def next_token(self, challenge: bytes) -> bytes | None:
        """The answer to a challenge, empty ones included; None when the client is accepted.

        Raises:
            AuthenticationError: The challenge is none of this mechanism.
        """


class ServerMechanism(Protocol):
    """The challenges of a server."""

    @property
    def username(self) -> str | None:
        """Which user is accepted; None before."""

    def challenge(self, token: bytes) -> bytes:
        """The answer to a token; empty where it accepts the client.

        Raises:
            AuthenticationError: The client is not accepted, and may try again.
        """


class PlainClient:
    """PLAIN: one token with user and password."""

    __slots__ = ("_credentials",)

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def first_token(self) -> bytes:
        """User and password."""
        # No authorization id: servers take it for the user name, and accept nothing else.
        return f"{_NUL}{self._credentials.username}{_NUL}{self._credentials.password}".encode()

    def next_token(self, challenge: bytes) -> bytes | None:
        """None, because PLAIN has one step only.

        Raises:
            AuthenticationError: The server asks for a second step.
        """
        if challenge:
            raise AuthenticationError(
                "The server answers SASL PLAIN with a challenge, which PLAIN does not know.",
                hint="The server's mechanism may not be PLAIN.",
            )
        return None


class PlainServer:
    """PLAIN: the token is compared with the user's password.

    Args:
        passwords: The password of each user.
    """

    __slots__ = ("_passwords", "username")

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.username: str | None = None

    def challenge(self, token: bytes) -> bytes:
        """Accept a user with the right password.

        Raises:
            AuthenticationError: The user name or the password is wrong, or the token malformed.
        """
        self.username = self._check(token)
        return b""

    def _check(self, token: bytes) -> str:
        try:
            parts = token.decode().split(_NUL)
        except UnicodeDecodeError:
            raise AuthenticationError("The SASL PLAIN token is not UTF-8.") from None
        if len(parts) != 3:
            raise AuthenticationError(
                f"The SASL PLAIN token has {len(parts)} parts, not 3: authorization id, user, "
                f"password."
            )
        authorization_id, username, password = parts
        if not username or not password:
            missing = "password" if username else "user name"
            raise AuthenticationError(f"The SASL PLAIN token has no {missing}.")
        # An unknown user costs as much time as a wrong password, so that time tells nothing.
        expected = self._passwords.get(username, "")
        if not compare_digest(password.encode(), expected.encode()) or not expected:
            raise AuthenticationError("The user name or the password is wrong.")
        if authorization_id not in {"", username}:
            raise AuthenticationError("The authorization id is not the user name.")
        return username


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Both sides of a mechanism.

    Attributes:
        client: Makes the client of one connection.
        server: Makes the server of one connection, of the passwords of all users.
    """

    client: Callable[[Credentials], ClientMechanism]
    server: Callable[[Mapping[str, str]], ServerMechanism]


# By the protocol's names, which are in upper case: "plain" is accepted and fails afterwards.
MECHANISMS: Final[dict[str, Mechanism]] = {
    PLAIN: Mechanism(client=PlainClient, server=PlainServer),
}


class SaslClient:
    """The client of one connection: send `first_request`, then what `next_request` returns.

    An exchange that failed is started again with `first_request`.

    Args:
        mechanism: A name in `MECHANISMS`.
        credentials: The user.
    """

    __slots__ = ("_client", "_mechanism", "is_complete")

    def __init__(self, mechanism: str, credentials: Credentials) -> None:
        self._mechanism = mechanism
        self._client = MECHANISMS[mechanism].client(credentials)
        self.is_complete = False

    def first_request(self) -> messages.AuthenticateRequest:
        """The request that begins the exchange."""
        self.is_complete = False
        return self._request(self._client.first_token())

    def next_request(
        self, response: messages.AuthenticateResponse
    ) -> messages.AuthenticateRequest | None:
        """What to send after a response; None when the client is accepted.

        Servers end with an empty challenge, or with none.

        Raises:
            AuthenticationError: The response does not belong to the mechanism.
        """
        token = self._client.next_token(response.challenge)
        if token is not None:
            return self._request(token)
        self.is_complete = True
        return None

    def _request(self, token: bytes) -> messages.AuthenticateRequest:
        return messages.AuthenticateRequest(protocol=self._mechanism, token=token)


class SaslServer:
    """The server of one connection: hand every AUTHENTICATE request to `respond`.

    Args:
        passwords: The password of each user.
    """

    __slots__ = ("_name", "_passwords", "_server")

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._name = ""
        self._server: ServerMechanism | None = None

    @property
    def username(self) -> str | None:
        """The user that was accepted; None before."""
        return None if self._server is None else self._server.username

    @property
    def is_complete(self) -> bool:
        """Whether a user was accepted."""
        return self.username is not None

    def respond(self, request: messages.AuthenticateRequest) -> messages.AuthenticateResponse:
        """Answer a request; after success every further one succeeds without being looked at.

        Clients answer the empty challenge of a success with another AUTHENTICATE.

        Raises:
            AuthenticationError: The client is not accepted, and may try again.
            ServerError: The mechanism is not written in upper case, as Fluss's own server has it.
        """
        name = request.protocol.upper()
        if name not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise AuthenticationError(
                f"The listener authenticates with SASL {known}, the client with "
                f"{request.protocol!r}.",
                hint=f"Set the client's security.protocol to sasl, and its mechanism to {known}.",
            )
        if self.is_complete:
            return messages.AuthenticateResponse()
        if name not in {request.protocol, self._name}:
            raise ServerError(f"The SASL mechanism {request.protocol!r} is not supported.")
        if self._server is None or self._name != name:
            self._name, self._server = name, MECHANISMS[name].server(self._passwords)
        return messages.AuthenticateResponse(challenge=self._server.challenge(request.token))


class PlaintextServer:
    """The listener that accepts every client, for clients that authenticate nevertheless."""

    __slots__ = ()
    is_complete = True

    def respond(self, request: messages.AuthenticateRequest) -> messages.AuthenticateResponse:
        """Answer a request.

        Raises:
            AuthenticationError: The client expects a listener with authentication.
        """
        if request.protocol.upper() != PLAINTEXT:
            raise AuthenticationError(
                f"The listener does not authenticate ({PLAINTEXT}), the client expects "
                f"{request.protocol!r}.",
                hint="Set the client's security.protocol to PLAINTEXT, or use the listener with SASL.",
            )
        return messages.AuthenticateResponse()
