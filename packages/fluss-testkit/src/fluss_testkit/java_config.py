"""Writes the configuration files of Fluss and ZooKeeper from a profile.

It starts nothing; its only side effect is writing files. A server's configuration is a list of
`key: value` lines, which is less than YAML: there is no quoting, and a `#` always starts a comment.
Values that cannot be written that way are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fluss.errors import ConfigError
from fluss_testkit.cluster_profiles import Profile
from fluss_testkit.ports import HOST
from fluss_testkit.workspace import Workspace, write_file

PLAIN_LISTENER = "FLUSS"
SASL_LISTENER = "SASL"
PORTS_PER_SERVER = 2
TABLET_SERVERS_MAX = 9
ZOOKEEPER_TICK_MS = 1_000
ZOOKEEPER_SESSION_MIN_MS = 2 * ZOOKEEPER_TICK_MS  # ZooKeeper's own minimum
ZOOKEEPER_SESSION_MAX_MS = 120_000

# Users may not set these options; a wrong value would break the cluster or this package.
OWN_OPTIONS = frozenset(
    {
        "advertised.listeners",
        "bind.listeners",
        "coordinator.host",
        "coordinator.port",
        "data.dir",
        "internal.listener.name",
        "security.protocol.map",
        "security.sasl.enabled.mechanisms",
        "security.sasl.plain.jaas.config",
        "tablet-server.host",
        "tablet-server.id",
        "tablet-server.port",
        "zookeeper.address",
        "zookeeper.client.session-timeout",
    }
)
PLAIN_MODULE = "org.apache.fluss.security.auth.sasl.plain.PlainLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPorts:
    """The ports of one coordinator or tablet server."""

    plain: int
    sasl: int

    @property
    def plain_address(self) -> str:
        """The address without a login."""
        return f"{HOST}:{self.plain}"

    @property
    def sasl_address(self) -> str:
        """The address that requires a login."""
        return f"{HOST}:{self.sasl}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """The resolved configuration of a cluster."""

    coordinator: ServerPorts
    tablet_servers: tuple[ServerPorts, ...]
    zookeeper_port: int
    zookeeper_session_ms: int
    replication_factor: int
    heap_mb: int
    separate: bool
    users: Mapping[str, str]
    options: Mapping[str, str]


def ports_needed(profile: Profile) -> int:
    """Return how many ports `configure` needs."""
    return 1 + PORTS_PER_SERVER * (1 + _tablet_servers(profile))


def configure(
    profile: Profile, ports: Sequence[int], users: Mapping[str, str], *, can_share: bool
) -> ClusterConfig:
    """Fill in the defaults of a profile, and check its values.

    Args:
        profile: The merged profile.
        ports: As many as `ports_needed` returns; the first is the coordinator's plain one.
        users: Names and passwords for the SASL listener.
        can_share: Whether one JVM can host several servers.

    Raises:
        ConfigError: Values contradict each other, or cannot be written.
    """
    servers = _tablet_servers(profile)
    replicas = _within(profile.replication_factor, 1, (1, servers), "replication_factor")
    session = _within(
        profile.zookeeper_session_ms,
        30_000,
        (ZOOKEEPER_SESSION_MIN_MS, ZOOKEEPER_SESSION_MAX_MS),
        "zookeeper_session_ms",
    )
    for key, value in profile.options.items():
        _check_option(key, value)
    for user, password in users.items():
        _check_user(user, password)
    *pairs, zookeeper = ports
    listeners = [
        ServerPorts(plain=pairs[i], sasl=pairs[i + 1])
        for i in range(0, len(pairs), PORTS_PER_SERVER)
    ]
    return ClusterConfig(
        coordinator=listeners[0],
        tablet_servers=tuple(listeners[1:]),
        zookeeper_port=zookeeper,
        zookeeper_session_ms=session,
        replication_factor=replicas,
        heap_mb=_within(profile.heap_mb, 1024, (128, 65_536), "heap_mb"),
        separate=bool(profile.separate) or not can_share,
        users=dict(users),
        options=dict(profile.options),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFiles:
    """The written files: a properties file for ZooKeeper, a directory for each server."""

    zookeeper: Path
    coordinator: Path
    tablet_servers: tuple[Path, ...]
    logging: Path


def write_files(config: ClusterConfig, workspace: Workspace) -> ConfigFiles:
    """Write the configuration of every server into the workspace."""
    root = workspace.config
    zookeeper = root / "zookeeper.properties"
    write_file(zookeeper, _zookeeper_text(config, workspace))
    logging = root / "logging.properties"
    write_file(logging, LOGGING_TEXT)
    return ConfigFiles(
        zookeeper=zookeeper,
        logging=logging,
        coordinator=_write_server(
            root / "coordinator", _server_options(config, workspace, config.coordinator)
        ),
        tablet_servers=tuple(
            _write_server(
                root / f"tablet-{i}",
                {
                    **_server_options(config, workspace, ports),
                    "tablet-server.id": str(i),
                    "data.dir": str(workspace.root / f"tablet-{i}"),
                },
            )
            for i, ports in enumerate(config.tablet_servers)
        ),
    )


# The configuration is not logged, because it has passwords; ZooKeeper logs only warnings.
LOGGING_TEXT = """\
handlers=java.util.logging.ConsoleHandler
java.util.logging.ConsoleHandler.level=ALL
java.util.logging.SimpleFormatter.format=%1$tF %1$tT.%1$tL %4$s %3$s - %5$s%6$s%n
.level=INFO
org.apache.fluss.config.GlobalConfiguration.level=WARNING
org.apache.fluss.plugin.PluginConfig.level=SEVERE
org.apache.fluss.shaded.level=WARNING
"""


def _server_options(
    config: ClusterConfig, workspace: Workspace, ports: ServerPorts
) -> dict[str, str]:
    return {
        "remote.data.dir": (workspace.root / "remote").as_uri(),
        "default.replication.factor": str(config.replication_factor),
        **config.options,
        "zookeeper.address": f"{HOST}:{config.zookeeper_port}",
        "zookeeper.client.session-timeout": f"{config.zookeeper_session_ms}ms",
        "bind.listeners": (
            f"{PLAIN_LISTENER}://{ports.plain_address}, {SASL_LISTENER}://{ports.sasl_address}"
        ),
        "internal.listener.name": PLAIN_LISTENER,
        "security.protocol.map": f"{SASL_LISTENER}:sasl",
        "security.sasl.enabled.mechanisms": "PLAIN",
        "security.sasl.plain.jaas.config": _jaas(config.users),
    }


def _jaas(users: Mapping[str, str]) -> str:
    accounts = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return f"{PLAIN_MODULE} required {accounts};"


def _zookeeper_text(config: ClusterConfig, workspace: Workspace) -> str:
    properties = {
        "dataDir": str(workspace.root / "zookeeper"),
        "clientPort": str(config.zookeeper_port),
        "clientPortAddress": HOST,
        "tickTime": str(ZOOKEEPER_TICK_MS),
        "maxSessionTimeout": str(ZOOKEEPER_SESSION_MAX_MS),
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    """Escape a value for a Java properties file, which is Latin-1 with backslash escapes."""
    text = value.replace("\\", "\\\\")
    return "".join(each if each.isascii() else f"\\u{ord(each):04x}" for each in text)


def _write_server(directory: Path, options: Mapping[str, str]) -> Path:
    directory.mkdir(exist_ok=True)
    for key, value in options.items():
        _check_line(key, value)
    write_file(
        directory / "server.yaml", "".join(f"{key}: {value}\n" for key, value in options.items())
    )
    return directory


# --- checks -----------------------------------------------------------------------------------


def _tablet_servers(profile: Profile) -> int:
    return _within(profile.tablet_servers, 1, (1, TABLET_SERVERS_MAX), "tablet_servers")


def _within(value: int | None, default: int, bounds: tuple[int, int], name: str) -> int:
    if value is None:
        return default
    low, high = bounds
    if not low <= value <= high:
        raise ConfigError(
            f"{name} is {value}, but must be between {low} and {high}.",
            hint=f"choose a number between {low} and {high}.",
            key=name,
            value=value,
        )
    return value


def _check_option(key: str, value: str) -> None:
    if key in OWN_OPTIONS:
        raise ConfigError(
            f"the option {key!r} is set by the cluster itself.",
            hint="leave it out; ports, directories, users and the session have arguments.",
            key=key,
        )
    _check_line(key, value)


def _check_line(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.\-]+", key):
        raise ConfigError(f"{key!r} is not the name of a server option.", key=key)
    if not value.strip() or "#" in value or not value.isprintable():
        raise ConfigError(
            f"the value {value!r} of {key} cannot be written into Fluss's configuration: it is "
            "empty, or has a '#' or a control character.",
            hint="Fluss reads 'key: value' lines, in which '#' starts a comment; avoid it.",
            key=key,
            value=value,
        )


def _check_user(user: str, password: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.\-]+", user):
        raise ConfigError(
            f"the user name {user!r} cannot be configured.",
            hint="use letters, digits, '_', '.' and '-'.",
            value=user,
        )
    if not password or not password.isascii() or not password.isprintable():
        bad = True
    else:
        bad = bool(set('"#\\') & set(password))
    if bad:
        raise ConfigError(
            f"the password of {user!r} cannot be configured.",
            hint="use printable ASCII characters other than '\"', '#' and '\\'.",
            value=user,
        )
