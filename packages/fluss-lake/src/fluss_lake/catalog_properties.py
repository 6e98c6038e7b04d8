"""Translates the settings of a catalog into the properties of pyiceberg.

Three sources are merged; a later one overrides an earlier one. First the table's properties, which
the cluster sends to every client without passwords. Then pyiceberg's own settings for a catalog of
this name (`.pyiceberg.yaml`, `PYICEBERG_CATALOG__...`). Last the settings of the client
(`lake.password`, `FLUSS_LAKE_PASSWORD`). Some names differ between Java and Python; only this file
translates them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

from fluss.errors import ConfigError, MissingExtraError, UnsupportedOperationError
from fluss.install_hints import how_to_install

PROPERTY_PREFIX: Final = "table.datalake.iceberg."
# Java's `IcebergCatalogUtils` uses this name unless the cluster sets another.
DEFAULT_NAME: Final = "fluss-iceberg-catalog"
POSTGRESQL_EXTRA: Final = "fluss-lake[postgresql]"
_JDBC: Final = re.compile(r"^jdbc:(\w+):(.*)$")
# Properties with another name in pyiceberg.
_RENAMED: Final = {"client.region": "s3.region", "s3.path-style-access": ""}
# Settings of the client with another name in a catalog.
_SETTINGS: Final = {
    "user": "jdbc.user",
    "password": "jdbc.password",
    "client-secret": "credential",
}
_DRIVERS: Final = ("psycopg2", "psycopg")


def catalog_name(properties: Mapping[str, str]) -> str:
    """The name of a table's catalog."""
    return properties.get(f"{PROPERTY_PREFIX}name", DEFAULT_NAME)


def catalog_properties(
    properties: Mapping[str, str],
    settings: Mapping[str, str],
    of_pyiceberg: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Return the properties of a table's catalog for pyiceberg.

    Args:
        properties: The table's properties.
        settings: The user's settings of the Fluss client.
        of_pyiceberg: The user's settings of pyiceberg.

    Raises:
        ConfigError: The table does not name its catalog.
        UnsupportedOperationError: pyiceberg has no catalog of this type.
        MissingExtraError: The driver of the catalog's database is not installed.
    """
    given = {
        key.removeprefix(PROPERTY_PREFIX): value
        for key, value in properties.items()
        if key.startswith(PROPERTY_PREFIX)
    }
    given |= {key: str(value) for key, value in (of_pyiceberg or {}).items()}
    if "token" in settings:
        given.pop("credential", None)  # pyiceberg would ask for another token
    given |= {_SETTINGS.get(key, key): value for key, value in settings.items()}
    given.pop("name", None)
    kind = given.pop("type", "")
    match kind:
        case "jdbc" | "sql":
            return _renamed(given) | _sql_properties(given)
        case "rest":
            return _rest_properties(_renamed(given))
        case "":
            raise ConfigError(
                "The table does not say which catalog its lake has.",
                hint="the cluster's server.yaml sets datalake.iceberg.type, .uri and .warehouse",
            )
        case _:
            raise UnsupportedOperationError(
                f"A catalog of the type {kind!r} cannot be opened from Python.",
                hint="catalogs in a SQL database (jdbc) and REST catalogs can",
            )


def _rest_properties(given: Mapping[str, str]) -> dict[str, str]:
    if "credential" not in given or "uri" not in given:
        return {**given, "type": "rest"}
    # The path is that of the protocol; without it, pyiceberg warns that none is configured.
    tokens = f"{given['uri'].rstrip('/')}/v1/oauth/tokens"
    return {"oauth2-server-uri": tokens, **given, "type": "rest"}


def _sql_properties(given: Mapping[str, str]) -> dict[str, str]:
    uri = given.get("uri", "")
    if not uri:
        raise ConfigError(
            "The table does not say where the catalog of its lake is.",
            hint="the cluster's server.yaml sets datalake.iceberg.uri; lake.uri names another place",
        )
    matched = _JDBC.match(uri)
    url = uri if matched is None else _url_of_jdbc(matched.group(1), matched.group(2))
    return {
        "type": "sql",
        "uri": _with_login(url, given.get("jdbc.user", ""), given.get("jdbc.password", "")),
        # The servers have created the catalog's tables.
        "init_catalog_tables": "false",
    }


def _url_of_jdbc(database: str, rest: str) -> str:
    """The URL of SQLAlchemy for a URL of JDBC."""
    if database == "sqlite":
        return f"sqlite:///{rest.partition('?')[0]}"
    scheme = f"postgresql+{_driver()}" if database == "postgresql" else database
    return f"{scheme}:{rest}"


def _driver() -> str:
    """The driver of PostgreSQL that is installed."""
    for name in _DRIVERS:
        if find_spec(name) is not None:
            return name
    raise MissingExtraError(
        "The catalog of the lake is in PostgreSQL, and no driver for it is installed.",
        hint=how_to_install(POSTGRESQL_EXTRA),
    )


def _with_login(url: str, user: str, password: str) -> str:
    """Add user and password to a URL, if it has a host and no login yet."""
    parts = urlsplit(url)
    if not parts.netloc or not user or "@" in parts.netloc:
        return url
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))


def _renamed(given: Mapping[str, str]) -> dict[str, str]:
    renamed = {_RENAMED.get(key, key): value for key, value in given.items()}
    renamed.pop("", None)
    if given.get("s3.path-style-access") == "true":
        renamed["s3.force-virtual-addressing"] = "false"
    return {key: value for key, value in renamed.items() if not key.startswith("jdbc.")}
