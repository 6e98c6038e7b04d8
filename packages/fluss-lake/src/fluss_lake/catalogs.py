"""Opens the Iceberg catalog of a table, as the table's own properties describe it.

The cluster tells each client the settings of its catalog, without passwords. Those come from where
pyiceberg itself reads them for a catalog of this name: the environment (`PYICEBERG_CATALOG__...`)
and `.pyiceberg.yaml`. Java and Python name some things differently; this file alone translates.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

from fluss.errors import ConfigError, FlussError, TableNotFoundError, UnsupportedOperationError
from fluss.model.tables.table_info import TableInfo

PROPERTY_PREFIX: Final = "table.datalake.iceberg."
# Java's `IcebergCatalogUtils` uses this name unless the cluster sets another.
DEFAULT_NAME: Final = "fluss-iceberg-catalog"
_JDBC: Final = re.compile(r"^jdbc:(\w+):(.*)$")
# What pyiceberg calls differently.
_RENAMED: Final = {"client.region": "s3.region", "s3.path-style-access": ""}

_catalogs: dict[tuple[tuple[str, str], ...], Catalog] = {}
_lock = threading.Lock()


def open_table(table: TableInfo, settings: Mapping[str, str]) -> Table:
    """Load the Iceberg table of a Fluss table.

    Raises:
        TableNotFoundError: The catalog has no such table.
        FlussError: The catalog cannot be opened; the hint says what is missing.
    """
    catalog = _catalog_of(table, settings)
    path = table.table_path
    try:
        return catalog.load_table((path.database_name, path.table_name))
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise TableNotFoundError(
            f"The lake of {path} has no table of this name, although Fluss has a snapshot of it.",
            hint="Was it dropped there? lake='off' reads what Fluss itself holds.",
            table=str(path),
        ) from error
    except Exception as error:  # each catalog has errors of its own
        raise unreachable(table, error) from error


def unreachable(table: TableInfo, error: Exception) -> FlussError:
    """The error of a catalog or of files that cannot be reached."""
    why = " ".join(str(error).split())[:300] or type(error).__name__
    return FlussError(
        f"The lake of {table.table_path} cannot be read: {why}.",
        hint="The table's properties say where it is. What they leave out, such as a password, is read "
        f"from .pyiceberg.yaml or the environment, for the catalog {DEFAULT_NAME!r}. lake='off' reads "
        "what Fluss itself holds.",
        table=str(table.table_path),
    )


def catalog_properties(
    properties: Mapping[str, str], settings: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return the name of a table's catalog, and its properties as pyiceberg wants them.

    Args:
        properties: The table's properties.
        settings: What the user adds, or sets differently.

    Raises:
        ConfigError: The table does not say where its catalog is.
        UnsupportedOperationError: Python has no catalog of this type.
    """
    given = {
        key.removeprefix(PROPERTY_PREFIX): value
        for key, value in properties.items()
        if key.startswith(PROPERTY_PREFIX)
    } | dict(settings)
    name = given.pop("name", DEFAULT_NAME)
    kind = given.pop("type", "")
    match kind:
        case "jdbc" | "sql":
            return name, _renamed(given) | _sql_properties(given)
        case "rest":
            return name, _renamed(given) | {"type": "rest"}
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


def _sql_properties(given: Mapping[str, str]) -> dict[str, str]:
    uri = given.get("uri", "")
    matched = _JDBC.match(uri)
    return {
        "type": "sql",
        "uri": uri if matched is None else _url_of(matched.group(1), matched.group(2), given),
        # The servers have made its tables.
        "init_catalog_tables": "false",
    }


def _url_of(database: str, rest: str, given: Mapping[str, str]) -> str:
    """The URL of SQLAlchemy for a URL of JDBC."""
    if database == "sqlite":
        path = rest.partition("?")[0]
        return f"sqlite:///{path}"
    driver = {"postgresql": "postgresql+psycopg2"}.get(database, database)
    parts = urlsplit(f"{driver}:{rest}")
    user, password = given.get("jdbc.user", ""), given.get("jdbc.password", "")
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    at = f"{login}@" if login else ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{driver}://{at}{parts.netloc}{parts.path}{query}"


def _renamed(given: Mapping[str, str]) -> dict[str, str]:
    renamed = {_RENAMED.get(key, key): value for key, value in given.items()}
    renamed.pop("", None)
    if given.get("s3.path-style-access") == "true":
        renamed["s3.force-virtual-addressing"] = "false"
    return {key: value for key, value in renamed.items() if not key.startswith("jdbc.")}


def set_by_user(name: str) -> Mapping[str, Any] | None:
    """What the environment and `.pyiceberg.yaml` set for a catalog."""
    return Config().get_catalog_config(name)


def user_properties(table: TableInfo, settings: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table's catalog, with what the user sets for it; they have secrets."""
    return _named_properties(table, settings)[1]


def _named_properties(table: TableInfo, settings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    name, properties = catalog_properties(table.properties, settings)
    # Given to `load_catalog`, the cluster's properties would win over the user's own.
    properties |= {key: str(value) for key, value in (set_by_user(name) or {}).items()}
    return name, properties


def _catalog_of(table: TableInfo, settings: Mapping[str, str]) -> Catalog:
    name, properties = _named_properties(table, settings)
    key = (("name", name), *sorted(properties.items()))
    with _lock:
        found = _catalogs.get(key)
        if found is None:
            given: dict[str, Any] = properties
            try:
                found = _catalogs[key] = load_catalog(name, **given)
            except Exception as error:  # each catalog has errors of its own
                raise unreachable(table, error) from error
    return found
