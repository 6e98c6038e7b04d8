"""Servers, their addresses, and lake snapshots, as the cluster reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from fluss.errors import ConfigError
from fluss.model.paths import TableBucket

PORT_DEFAULT = 9123
PORT_MAX = 65_535


class Address(NamedTuple):
    """The address at which a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address that `host:port`, `[ipv6]:port` or `host` names.

    Raises:
        ConfigError: When it names none.
    """
    trimmed = text.strip()
    if trimmed.startswith("["):
        host, bracket, rest = trimmed[1:].partition("]")
        port_text = rest.removeprefix(":")
        sound = bool(bracket) and (rest == "" or rest.startswith(":"))
    else:
        host, colon, port_text = trimmed.partition(":")
        # More than one colon is an IPv6 address without brackets.
        sound = ":" not in port_text and bool(port_text) == bool(colon)
    digits = port_text or str(PORT_DEFAULT)
    sound = sound and digits.isascii() and digits.isdigit() and len(digits) <= len(str(PORT_MAX))
    if not sound or not host or any(each.isspace() for each in host) or "/" in host or "@" in host:
        raise ConfigError(
            f"{text!r} is not the address of a server.",
            hint="write host:port, for example '127.0.0.1:9123' or '[::1]:9123'",
        )
    port = int(digits)
    if not 1 <= port <= PORT_MAX:
        raise ConfigError(f"The port in {text!r} is not between 1 and {PORT_MAX}.")
    return Address(host, port)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses in a list with commas.

    Raises:
        ConfigError: When it names none, or something in it is no address.
    """
    parts = [each for each in text.split(",") if each.strip()]
    if not parts:
        raise ConfigError(
            "There is no address to connect to.", hint="set bootstrap.servers to host:port"
        )
    return tuple(dict.fromkeys(parse_address(each) for each in parts))


class ServerType(StrEnum):
    """The role of a server."""

    COORDINATOR = "CoordinatorServer"
    TABLET_SERVER = "TabletServer"


@dataclass(frozen=True, slots=True, repr=False)
class ServerNode:
    """A server of the cluster. Coordinators and tablet servers have numbers of their own."""

    id: int
    host: str
    port: int
    server_type: ServerType
    rack: str | None = field(default=None, kw_only=True)

    @property
    def uid(self) -> str:
        """`cs-0` for a coordinator, `ts-1` for a tablet server: unique in the cluster."""
        prefix = "cs" if self.server_type is ServerType.COORDINATOR else "ts"
        return f"{prefix}-{self.id}"

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(self.host, self.port)

    def __repr__(self) -> str:
        return (
            f"ServerNode(id={self.id}, host={self.host!r}, port={self.port}, "
            f"server_type={self.server_type.value!r})"
        )


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LakeSnapshot:
    """A snapshot of a table in a lake: the offset up to which each bucket has been copied.

    Args:
        snapshot_id: The number of the snapshot in the lake.
        table_buckets_offset: The end of what the snapshot holds, for each bucket.
    """

    snapshot_id: int
    table_buckets_offset: dict[TableBucket, int] = field(hash=False)

    def __init__(
        self, snapshot_id: int, table_buckets_offset: Mapping[TableBucket, int] | None = None
    ) -> None:
        object.__setattr__(self, "snapshot_id", snapshot_id)
        object.__setattr__(self, "table_buckets_offset", dict(table_buckets_offset or {}))

    def get_bucket_offset(self, bucket: TableBucket) -> int | None:
        """Return the end of what the snapshot holds of a bucket, or None."""
        return self.table_buckets_offset.get(bucket)

    def get_table_buckets(self) -> list[TableBucket]:
        """Return the buckets of which the snapshot holds something."""
        return list(self.table_buckets_offset)

    def __repr__(self) -> str:
        return (
            f"LakeSnapshot(snapshot_id={self.snapshot_id}, "
            f"buckets_count={len(self.table_buckets_offset)})"
        )
