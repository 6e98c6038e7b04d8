"""The configuration of a server, checked, and its limits, which have defaults.

Every limit on the resources that a client may use has its name here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fluss.errors import ConfigError
from fluss.model.cluster.acls import FlussPrincipal
from fluss.model.did_you_mean import did_you_mean
from fluss.wire.frame import FRAME_BYTES_MAX
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.log import SEGMENT_BYTES

LOOPBACK: Final = "127.0.0.1"
KV_SNAPSHOT_INTERVAL_MS: Final = 600_000
KV_SNAPSHOTS_RETAINED: Final = 2


class Durability(StrEnum):
    """What an acknowledgement promises."""

    PROCESS = "process"
    DISK = "disk"
    NONE = "none"

    @property
    def sentence(self) -> str:
        """The meaning of the mode in one sentence."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Durability.PROCESS: "acknowledged rows survive kill -9; a power cut may take the last second",
    Durability.DISK: "acknowledged rows are on the disk and survive a power cut",
    Durability.NONE: "nothing is synced: rows survive kill -9, but not a power cut",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection, and of all connections.

    Args:
        frame_bytes_max: The size of a request.
        connections_max: The number of connections.
        requests_in_flight_max: The number of requests of one connection that run concurrently.
        request_queue_bytes_max: How much of one connection is read ahead of the running requests.
        write_buffer_bytes: How many bytes of responses a slow client may leave unread before the
            server starts no more of its requests.
        idle_s: The idle time after which a connection is closed.
        frame_s: How long a request may remain incomplete.
        frame_bytes_per_s: A large request gets another second for each of these bytes.
        login_s: The time limit of the login.
        logins_failed_max: How many wrong passwords a connection may try.
        login_frame_bytes_max: The size of a request before the login.
        logins_pending_max: How many connections may be without a login; a newer one replaces the
            oldest of them.
        fetch_wait_ms_max: How long a fetch may wait for rows.
        response_bytes_max: How many bytes of rows a response may carry.
    """

    frame_bytes_max: int = FRAME_BYTES_MAX
    connections_max: int = 4_000
    requests_in_flight_max: int = 1_000
    request_queue_bytes_max: int = 64 << 20
    write_buffer_bytes: int = 8 << 20
    idle_s: float = 600.0
    frame_s: float = 30.0
    frame_bytes_per_s: int = 64 << 10
    login_s: float = 60.0
    logins_failed_max: int = 10
    login_frame_bytes_max: int = 16 << 10
    logins_pending_max: int = 256
    fetch_wait_ms_max: int = 300_000
    response_bytes_max: int = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The configuration of a server.

    Args:
        directory: The directory of the data.
        port: The port without logins, on loopback only; 0 for a free one.
        sasl_port: The port that requires a login; None for no such port.
        sasl_host: The address of that port.
        users: The password of each user.
        super_users: Users who may do everything. Where there are some, other users may do what
            access control entries allow; where there are none, every user may do everything.
        durability: What an acknowledgement promises.
        segment_bytes: The size of a log segment.
        retention_bytes: The size limit of each bucket's log, in whole segments.
        kv_snapshot_interval_ms: The interval of KV snapshots of primary-key tables, 0 for none. By
            default 10 minutes, and none where other machines may connect, because clients read the
            files of a snapshot themselves.
        kv_snapshots_retained: How many KV snapshots of each bucket are kept.
        lake: The lake that tables can be tiered into; None for the one that the directory has.
        limits: The limits of clients.
        repair: Whether a damaged directory is repaired first, which gives up lost rows.

    Raises:
        ConfigError: The settings contradict each other.
    """

    directory: Path
    port: int = 0
    sasl_port: int | None = None
    sasl_host: str = LOOPBACK
    users: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    super_users: Sequence[str] = ()
    durability: Durability = Durability.PROCESS
    segment_bytes: int = SEGMENT_BYTES
    retention_bytes: int | None = None
    kv_snapshot_interval_ms: int | None = None
    kv_snapshots_retained: int = KV_SNAPSHOTS_RETAINED
    lake: LakeLocation | None = None
    limits: Limits = field(default_factory=Limits)
    repair: bool = False

    def __post_init__(self) -> None:
        for name, port in (("port", self.port), ("sasl_port", self.sasl_port)):
            if port is not None and not 0 <= port <= 65_535:  # noqa: PLR2004 - TCP's own limit
                raise ConfigError(f"{name} is {port}; ports go from 0 to 65535.", key=name)
        if self.sasl_port is not None and not self.users:
            raise ConfigError(
                "A port that requires a login needs at least one user.",
                hint="Name a user and the variable with the password: --user alice:ALICE_PASSWORD",
                key="users",
            )
        if self.sasl_port is None and self.users:
            raise ConfigError(
                "Users are named, but no port requires a login.",
                hint="Add --sasl-port 9124, or --sasl-port 0 for a free one.",
                key="sasl_port",
            )
        if self.kv_snapshots_retained < 1:
            raise ConfigError(
                f"kv_snapshots_retained is {self.kv_snapshots_retained}; one snapshot of each bucket "
                "is kept at least.",
                key="kv_snapshots_retained",
            )
        for name in self.super_users:
            self._check_super_user(FlussPrincipal.of(name))
        if self.sasl_port is None and not is_loopback(self.sasl_host):
            raise ConfigError(
                f"Without passwords the server listens on this machine only, not on {self.sasl_host}.",
                hint="Add --sasl-port and --user for the port that others may reach.",
                key="sasl_host",
            )

    def _check_super_user(self, user: FlussPrincipal) -> None:
        if user != FlussPrincipal.anonymous() and user.name not in self.users:
            raise ConfigError(
                f"The super user {user.name!r} is not among the users.",
                hint=did_you_mean(user.name, self.users)
                or f"Name the user, too: --user {user.name}:VARIABLE",
                key="super_users",
            )

    @property
    def snapshot_interval_ms(self) -> int:
        """The interval of KV snapshots; 0 for none."""
        if self.kv_snapshot_interval_ms is not None:
            return self.kv_snapshot_interval_ms
        is_for_others = self.sasl_port is not None and not is_loopback(self.sasl_host)
        return 0 if is_for_others else KV_SNAPSHOT_INTERVAL_MS

    @property
    def is_durable(self) -> bool:
        """Whether files are synced at all."""
        return self.durability is not Durability.NONE


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
