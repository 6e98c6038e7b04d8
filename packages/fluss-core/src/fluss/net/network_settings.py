"""The settings of a connection: addresses, limits, deadlines, credentials; frozen once made.

The user's `Config` (texts, aliases, defaults) becomes one of these when a connection is opened, so
that this room parses and looks up nothing. Secrets are kept out of every repr.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fluss.model.servers import Address
from fluss.net.plan_retry import RetryPolicy
from fluss.wire.sasl import PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user, and where the password comes from: read again for every connection.

    Attributes:
        username: The user.
        password: Reads the password.
        mechanism: How the user is authenticated; a name in `wire.sasl.MECHANISMS`.
    """

    username: str
    password: Callable[[], str] = field(repr=False)
    mechanism: str = PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach the servers and how long to wait for them.

    Attributes:
        bootstrap: The servers to ask first, of any role.
        address_map: Advertised addresses, and the addresses that reach them from here.
        login: None on a plaintext listener.
        connect_timeout_ms: For one TCP connection with its handshake.
        request_timeout_ms: From sending a request until its answer.
        retry_timeout_ms: How long a call keeps trying while errors are retriable. Longer than the
            60 s for which a cluster may still name a dead leader.
        retry_policy: The pauses between tries.
        frame_bytes_max: The largest answer that is accepted.
    """

    bootstrap: tuple[Address, ...]
    address_map: Mapping[Address, Address] = field(default_factory=dict)
    login: Login | None = None
    connect_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    retry_timeout_ms: int = 120_000
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    frame_bytes_max: int = 512 * 1024 * 1024
