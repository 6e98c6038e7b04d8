"""Authentication exchanges, for both sides: SASL PLAIN, and the listener that asks for nothing.

Before it is authenticated, a connection may carry API_VERSIONS and AUTHENTICATE only. The client
sends one token and is done when the server accepts it; errors come as error frames and leave the
connection open for another attempt (Java: SaslServerAuthenticator, PlainSaslServer). How often to
try again, and when (code 51 asks for it), is decided elsewhere. Nothing here shows a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest

from fluss.errors import AuthenticationError, ConfigError, ServerError
from fluss.wire import messages

PLAIN = "PLAIN"
PLAINTEXT = "PLAINTEXT"
_NUL = "\x00"


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


class PlainClient:
    """The side that wants in: send `first_request`, then what `next_request` returns, until None.

    An exchange that failed is started again with `first_request`.
    """

    __slots__ = ("_credentials", "is_complete")

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.is_complete = False

    def first_request(self) -> messages.AuthenticateRequest:
        """The request that begins the exchange."""
        self.is_complete = False
        # No authorization id: servers take it for the user name, and accept nothing else.
        token = f"{_NUL}{self._credentials.username}{_NUL}{self._credentials.password}"
        # The protocol is the mechanism, in upper case: "plain" is accepted and fails afterwards.
        return messages.AuthenticateRequest(protocol=PLAIN, token=token.encode())

    def next_request(
        self, response: messages.AuthenticateResponse
    ) -> messages.AuthenticateRequest | None:
        """What to send after a response: nothing, because PLAIN has one step only.

        Servers end with an empty challenge, or with none; both mean that the client is in.

        Raises:
            AuthenticationError: The server asks for a second step.
        """
        if response.challenge:
            raise AuthenticationError(
                "The server answers SASL PLAIN with a challenge, which PLAIN does not know.",
                hint="The server's mechanism may not be PLAIN.",
            )
        self.is_complete = True
        return None


class PlainServer:
    """The side that lets in: hand every AUTHENTICATE request to `respond`.

    Args:
        passwords: The password of each user.
    """

    __slots__ = ("_has_begun", "_passwords", "username")

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._has_begun = False
        self.username: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether somebody has been let in; `username` says who."""
        return self.username is not None

    def respond(self, request: messages.AuthenticateRequest) -> messages.AuthenticateResponse:
        """Answer a request; after success every further one succeeds without being looked at.

        Clients answer the empty challenge of a success with another AUTHENTICATE.

        Raises:
            AuthenticationError: The client stays outside, and may try again.
            ServerError: The mechanism is not written in upper case, as Fluss's own server has it.
        """
        if request.protocol.upper() != PLAIN:
            raise AuthenticationError(
                f"The listener authenticates with SASL {PLAIN}, the client with "
                f"{request.protocol!r}.",
                hint="Set the client's security.protocol to sasl, and its mechanism to PLAIN.",
            )
        if self.is_complete:
            return messages.AuthenticateResponse()
        if request.protocol != PLAIN and not self._has_begun:
            raise ServerError(f"The SASL mechanism {request.protocol!r} is not supported.")
        self._has_begun = True
        self.username = self._check(request.token)
        return messages.AuthenticateResponse(challenge=b"")

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


class PlaintextServer:
    """The listener that lets everybody in, for clients that authenticate nevertheless."""

    __slots__ = ()
    is_complete = True

    def respond(self, request: messages.AuthenticateRequest) -> messages.AuthenticateResponse:
        """Answer a request.

        Raises:
            AuthenticationError: The client expects a listener with authentication.
        """
        if request.protocol.upper() != PLAINTEXT:
            raise AuthenticationError(
                f"The listener does not authenticate ({PLAINTEXT}), the client wants "
                f"{request.protocol!r}.",
                hint="Set the client's security.protocol to PLAINTEXT, or use the listener with SASL.",
            )
        return messages.AuthenticateResponse()
