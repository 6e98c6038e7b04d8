"""Who may pass a listener: everybody on the plain one, users with their passwords on the other.

The exchange itself is `fluss.wire.sasl`. Here stands what a connection may ask before it has
passed, and how often it may try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import AuthenticationError
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.sasl import PlaintextServer, SaslServer
from fluss_server.server_errors import refuse

_BEFORE_LOGIN: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.AUTHENTICATE})


class Gate:
    """One connection's way in.

    Args:
        passwords: The password of each user; None where everybody may pass.
    """

    __slots__ = ("_exchange", "failures")

    def __init__(self, passwords: Mapping[str, str] | None) -> None:
        self._exchange: SaslServer | PlaintextServer = (
            PlaintextServer() if passwords is None else SaslServer(passwords)
        )
        self.failures = 0

    @property
    def is_open(self) -> bool:
        """Whether the connection has passed."""
        return self._exchange.is_complete

    def check(self, api_key: int) -> None:
        """Refuse what may only be asked inside.

        Raises:
            AuthenticationError: The connection has not passed yet.
        """
        if not self._exchange.is_complete and api_key not in _BEFORE_LOGIN:
            raise refuse(
                ErrorCode.AUTHENTICATE_EXCEPTION,
                "The connection has not completed authentication yet. This may be caused by a "
                "missing or incorrect configuration of 'client.security.protocol' on the client "
                "side.",
            )

    def respond(self, request: pb.AuthenticateRequest) -> pb.AuthenticateResponse:
        """Answer an AUTHENTICATE request.

        Raises:
            AuthenticationError: User or password are wrong; the connection may try again.
        """
        try:
            return self._exchange.respond(request)
        except AuthenticationError:
            self.failures += 1
            raise
