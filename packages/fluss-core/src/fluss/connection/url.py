"""Addresses of clusters, databases and tables, as one line of text.

    fluss://[user[:password]@]host[:port][,host2[:port]…][/database[.table]][?name=value&…]
    [user[:password]@]host:port[,host2:port…][/database[.table]][?name=value&…]
    embedded:./folder       an embedded server; without a folder, in a temporary one
    embedded:./folder?lake  the same with a lake; ?lake=sqlite:///lake.db for one elsewhere

After the question mark come options of a scan (`tail=100`, `partitions=dt=2026-01-01`) and
settings of the client (`writer.acks=all`). Names and values may be percent-encoded. A password is
better kept in the environment, a file, or a marker such as `${env:NAME}`; one in the URL is never
shown again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fluss.errors import ConfigError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.names import check_name
from fluss.model.options.config import Config
from fluss.model.options.scan_options import SCAN_OPTIONS
from fluss.model.options.secrets import Secret, is_marker
from fluss.model.servers import parse_addresses

SCHEME = "fluss"
EMBEDDED = "embedded"
LENGTH_MAX = 16 * 1024
DEFAULT_PORT = 9123

_SECRETS = re.compile(r"([?&][^=&]*(?:password|jaas|secret|token)[^=&]*=)[^&]*", re.IGNORECASE)
# Without a scheme the port is required: a word alone may be meant as a profile or a table.
_ADDRESS = re.compile(r"(?:[^\s/@]+@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]+(?=[,/?]|$)")
_GRAMMAR = "write host:9123, or fluss://user@host:9123,host2:9123/database.table?tail=100"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlussUrl:
    """The parts of a URL.

    Attributes:
        servers: The bootstrap servers, `host:port` each; empty for an embedded server.
        embedded: The folder of an embedded server, empty for a temporary one; None for a cluster.
        user: The user.
        password: The password; never shown.
        database: The database.
        table: The table in it.
        settings: Settings of the client, by key.
        options: Options of scans, by name.
    """

    servers: tuple[str, ...] = ()
    embedded: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    database: str | None = None
    table: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    def to_settings(self) -> dict[str, Any]:
        """The settings for connecting, by the keys of `Config`."""
        settings: dict[str, Any] = {
            key: Secret(value) if Config.OPTIONS[key].secret and not is_marker(value) else value
            for key, value in self.settings.items()
        }
        if self.servers:
            settings["bootstrap.servers"] = ",".join(self.servers)
        if self.user is not None:
            settings["security.sasl.username"] = self.user
        if self.password is not None:
            is_open = is_marker(self.password)
            settings["security.sasl.password"] = self.password if is_open else Secret(self.password)
        return settings

    def __str__(self) -> str:
        if self.embedded is not None:
            return f"{EMBEDDED}:{self.embedded}"
        user = "" if self.user is None else f"{self.user}@"
        table = "" if self.table is None else f".{self.table}"
        path = "" if self.database is None else f"/{self.database}{table}"
        return f"{SCHEME}://{user}{','.join(self.servers)}{path}"


def parse_url(text: str) -> FlussUrl:
    """Parse a URL.

    Raises:
        ConfigError: It is not a valid URL; the error never repeats a password.
    """
    if len(text) > LENGTH_MAX:
        raise ConfigError(f"A URL of {len(text)} characters is too long to be one.")
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() == EMBEDDED:
        return FlussUrl(embedded=rest)
    if _ADDRESS.match(text):
        return parse_url(f"{SCHEME}://{text}")
    if not rest.startswith("//") or scheme.lower() != SCHEME:
        hint = did_you_mean(scheme, [SCHEME, EMBEDDED]) if rest.startswith("//") else None
        raise ConfigError(f"{hidden(text)!r} is not a URL of Fluss.", hint=hint or _GRAMMAR)
    before, _, query = rest[2:].partition("?")
    # A password may hold a slash; a host never does.
    login, at, place = before.rpartition("@")
    hosts, _, path = place.partition("/")
    user, password = _login(login) if at else (None, None)
    database, table = _path(path)
    settings, options = _query(query)
    return FlussUrl(
        servers=_servers(hosts, text),
        user=user,
        password=password,
        database=database,
        table=table,
        settings=settings,
        options=options,
    )


def hidden(text: str) -> str:
    """Remove what may be a password from a text."""
    text = _SECRETS.sub(r"\1…", text)
    before, at, after = text.rpartition("@")
    if not at:
        return text
    scheme, slashes, login = before.partition("//")
    user = login.partition(":")[0]
    return f"{scheme}{slashes}{user}@{after}"


def _login(login: str) -> tuple[str, str | None]:
    user, colon, password = login.partition(":")
    if not user:
        raise ConfigError("The URL has a password and no user.", hint=_GRAMMAR)
    return unquote(user), unquote(password) if colon else None


def _servers(hosts: str, text: str) -> tuple[str, ...]:
    if not hosts:
        raise ConfigError(f"The URL {hidden(text)!r} names no server.", hint=_GRAMMAR)
    servers = []
    for part in hosts.split(","):
        host = unquote(part.strip())
        has_port = ":" in host.rpartition("]")[2]
        servers.append(host if has_port else f"{host}:{DEFAULT_PORT}")
    parse_addresses(",".join(servers))  # refuses a bad one
    return tuple(servers)


def _path(path: str) -> tuple[str | None, str | None]:
    names = unquote(path.strip("/"))
    if not names:
        return None, None
    database, dot, table = names.partition(".")
    if "/" in names or "." in table or (dot and not table):
        raise ConfigError(
            f"The URL's path {names!r} is neither a database nor a table.",
            hint="write /database or /database.table",
        )
    check_name("database name", database)
    if dot:
        check_name("table name", table)
    return database, table if dot else None


def _query(query: str) -> tuple[dict[str, str], dict[str, str]]:
    settings: dict[str, str] = {}
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        raw, equals, value = part.partition("=")
        name = unquote(raw)
        if not equals:
            raise ConfigError(f"The URL's option {name!r} has no value.", hint="write name=value")
        into = options if name in SCAN_OPTIONS else settings
        if into is settings:
            name = _setting(name)
        if name in into:
            raise ConfigError(f"The URL gives the option {name!r} twice.", key=name)
        into[name] = unquote(value)
    return settings, options


def _setting(name: str) -> str:
    try:
        return Config.option(name).key
    except ConfigError as error:
        hint = did_you_mean(name, SCAN_OPTIONS) or error.hint
        raise ConfigError(
            f"The URL has the unknown option {name!r}.", hint=hint, key=name
        ) from None
