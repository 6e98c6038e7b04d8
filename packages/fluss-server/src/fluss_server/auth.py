"""Authentication of one connection: none on the plain port, SASL/PLAIN on the other one.

The exchange itself is `fluss.wire.sasl`. This file decides what a connection may request before
it is authenticated, and counts its failed attempts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import AuthenticationError
from fluss.model.cluster.acls import FlussPrincipal
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.sasl import PlaintextServer, SaslServer
from fluss_server.server_errors import request_error

_BEFORE_LOGIN: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.AUTHENTICATE})


class ConnectionAuth:
    """The authentication state of one connection.

    Args:
        passwords: The password of each user; None where no login is needed.
    """

    __slots__ = ("_exchange", "failures")

    def __init__(self, passwords: Mapping[str, str] | None) -> None:
        self._exchange: SaslServer | PlaintextServer = (
            PlaintextServer() if passwords is None else SaslServer(passwords)
        )
        self.failures = 0

    @property
    def principal(self) -> FlussPrincipal:
        """The user; where no login is needed, or none has happened, the anonymous one."""
        name = self._exchange.username if isinstance(self._exchange, SaslServer) else None
        return FlussPrincipal.anonymous() if name is None else FlussPrincipal(name)

    @property
    def is_complete(self) -> bool:
        """Whether the connection is authenticated."""
        return self._exchange.is_complete

    def check(self, api_key: int) -> None:
        """Refuse an API key that requires a login.

        Raises:
            AuthenticationError: The connection is not authenticated yet.
        """
        if not self._exchange.is_complete and api_key not in _BEFORE_LOGIN:
            raise request_error(
                ErrorCode.AUTHENTICATE_EXCEPTION,
                "The connection has not completed authentication yet. This may be caused by a "
                "missing or incorrect configuration of 'client.security.protocol' on the client "
                "side.",
            )

    def respond(self, request: pb.AuthenticateRequest) -> pb.AuthenticateResponse:
        """Answer an AUTHENTICATE request.

        Raises:
            AuthenticationError: The user or the password is wrong; the client may try again.
        """
        try:
            return self._exchange.respond(request)
        except AuthenticationError:
            self.failures += 1
            raise
