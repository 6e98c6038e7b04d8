"""Profiles of a cluster: how many servers and replicas, which server options.

A profile sets only some values, so several can be combined: small segments on three replicated
servers is `merge([SMALL_SEGMENTS, REPLICATED])`. `java_config` derives files and ports from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fluss.errors import ConfigError
from fluss_testkit.artifact import Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Settings of a cluster; None leaves a value to the other profiles or to the default.

    Attributes:
        tablet_servers: The number of tablet servers.
        replication_factor: The number of replicas of a bucket, unless the table sets it.
        zookeeper_session_ms: How long a dead server is considered alive.
        heap_mb: The heap limit of one JVM.
        separate: Whether each server has its own process, so that it can be killed alone.
        options: Options of the servers, as in Fluss's server.yaml.
        plugins: The jars of each plugin of the servers by the plugin's name.
    """

    tablet_servers: int | None = None
    replication_factor: int | None = None
    zookeeper_session_ms: int | None = None
    heap_mb: int | None = None
    separate: bool | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    plugins: Mapping[str, tuple[Artifact, ...]] = field(default_factory=dict)


SINGLE = Profile()
"""One tablet server; all roles share one JVM where a JDK is at hand."""

SMALL_SEGMENTS = Profile(
    options={
        "log.segment.file-size": "64kb",
        "log.index.file-size": "64kb",
        "remote.log.task-interval-duration": "1s",
    }
)
"""Logs roll every 64 KiB, and sealed segments move to remote storage within a second or two."""

FAST_SNAPSHOTS = Profile(options={"kv.snapshot.interval": "2s"})
"""Primary-key tables are snapshotted every two seconds."""

REPLICATED = Profile(
    tablet_servers=3,
    replication_factor=3,
    zookeeper_session_ms=6_000,
    heap_mb=512,
    separate=True,
)
"""Three tablet servers, one process each; a killed one is considered dead after 6 s, not 60."""

PROFILES: Mapping[str, Profile] = {
    "single": SINGLE,
    "small-segments": SMALL_SEGMENTS,
    "fast-snapshots": FAST_SNAPSHOTS,
    "replicated": REPLICATED,
}


def find_profile(name: str) -> Profile:
    """Return the profile of that name.

    Raises:
        ConfigError: There is no such profile.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise ConfigError(
            f"there is no profile {name!r}.", hint=f"choose from {', '.join(PROFILES)}.", value=name
        ) from None


def merge(profiles: Iterable[Profile]) -> Profile:
    """Combine profiles; a later one overrides the values of an earlier one."""
    merged = Profile()
    for profile in profiles:
        merged = Profile(
            tablet_servers=_later(merged.tablet_servers, profile.tablet_servers),
            replication_factor=_later(merged.replication_factor, profile.replication_factor),
            zookeeper_session_ms=_later(merged.zookeeper_session_ms, profile.zookeeper_session_ms),
            heap_mb=_later(merged.heap_mb, profile.heap_mb),
            separate=merged.separate if profile.separate is None else profile.separate,
            options={**merged.options, **profile.options},
            plugins={**merged.plugins, **profile.plugins},
        )
    return merged


def _later(earlier: int | None, later: int | None) -> int | None:
    return earlier if later is None else later
