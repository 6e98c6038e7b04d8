"""`ICEBERG`: the catalogs of this package for servers, by the entry point `fluss.lake_catalogs`.

A server creates and alters the tables of its lake with it, as Fluss's coordinator does. The
settings of the catalog have Java's names (`type`, `uri`, `warehouse`), because the server sends
them to all clients, Java clients included.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.utils.config import Config

from fluss.error_codes import ErrorCode
from fluss.errors import ConfigError, FlussError, error_from_code
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss_lake.catalog_properties import DEFAULT_NAME, catalog_properties
from fluss_lake.table_layout import (
    check_alterable,
    lake_property,
    order_of,
    properties_of,
    schema_of,
    spec_of,
)

CATALOG_FILE: Final = "catalog.sqlite"
WAREHOUSE: Final = "warehouse"
# Java's driver and Python's may open the file concurrently only with a write-ahead log.
_WRITE_AHEAD: Final = "journal_mode=WAL&busy_timeout=10000"
_BUSY_S: Final = 10
_COMMITS_MAX: Final = 10


class IcebergCatalogs:
    """Catalogs of Iceberg; see `fluss_server.lake.lake_catalog.LakeCatalogs`."""

    def settings(
        self, url: str, warehouse: str | None, folder: Path, options: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the settings of a catalog.

        Args:
            url: The URL of the catalog; empty for a SQLite file in the folder.
            warehouse: Where the files of its tables are; None for a folder beside a SQLite file.
            folder: A folder of the server.
            options: More settings, with Java's names.

        Raises:
            ConfigError: The URL is not the URL of a catalog, or the warehouse is missing.
        """
        text = url.removeprefix("jdbc:")
        scheme = text.partition(":")[0].partition("+")[0]
        match scheme:
            case "" | "sqlite":
                found = _in_sqlite(text, warehouse, folder)
            case "postgresql" | "mysql":
                found = _in_database(scheme, text, warehouse)
            case "http" | "https":
                found = {"type": "rest", "uri": url}
                if warehouse is not None:
                    found["warehouse"] = warehouse
            case _:
                raise ConfigError(
                    f"The lake {url.partition('@')[2] or url!r} is not a catalog of Iceberg.",
                    hint="name a database (sqlite:///lake.db, postgresql://user@host/name) or a "
                    "REST catalog (https://host)",
                    key="lake",
                )
        return {**found, **options}

    def open(self, settings: Mapping[str, str]) -> IcebergCatalog:
        """Open a catalog; create it if it is a new file or an empty database.

        Raises:
            FlussError: The catalog cannot be reached.
        """
        with _translated("opened"):
            name = settings.get("name", DEFAULT_NAME)
            own = Config().get_catalog_config(name)
            properties = catalog_properties({}, settings, own)
            if properties.get("uri", "").startswith("sqlite:"):
                properties["uri"] = _prepared(properties["uri"])
            if properties["type"] == "sql":
                properties["init_catalog_tables"] = "true"
            given: dict[str, Any] = {**properties, **(own or {})}
            return IcebergCatalog(load_catalog(name, **given))


class IcebergCatalog:
    """An open catalog. Its methods block; one thread at a time may call them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def create_table(self, path: TablePath, table: TableDescriptor) -> None:
        """Create the lake's table of a Fluss table, and its namespace if that is missing.

        Raises:
            FlussError: The lake does not support such a table, has a table of this name (54), or
                cannot be reached.
        """
        schema = schema_of(table)
        spec, order = spec_of(table, schema), order_of(schema)
        identifier = (path.database_name, path.table_name)
        with _translated("changed"):
            try:
                self._catalog.create_namespace_if_not_exists(path.database_name)
                self._catalog.create_table(
                    identifier,
                    schema,
                    partition_spec=spec,
                    sort_order=order,
                    properties=properties_of(table),
                )
            except TableAlreadyExistsError as error:
                raise error_from_code(
                    int(ErrorCode.LAKE_TABLE_ALREADY_EXIST),
                    f"Table {path} already exists.",
                    hint="The lake has a table of this name. Dropping a table leaves the lake's: drop "
                    "or rename that one in the lake, or choose another name.",
                ) from error

    def discard_table(self, path: TablePath) -> None:
        """Remove a table that has no snapshot; leave any other table alone.

        Raises:
            FlussError: The catalog cannot be reached.
        """
        identifier = (path.database_name, path.table_name)
        with _translated("changed"):
            try:
                found = self._catalog.load_table(identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return
            if found.current_snapshot() is None:
                self._catalog.drop_table(identifier)

    def alter_table(self, path: TablePath, changes: Mapping[str, str | None]) -> bool:
        """Set properties, and remove those that are None; return whether the table exists.

        Raises:
            FlussError: A property cannot be changed, or the catalog cannot be reached.
        """
        for key in changes:
            check_alterable(key)
        named = {lake_property(key): value for key, value in changes.items()}
        with _translated("changed"):
            for attempt in range(_COMMITS_MAX):
                try:
                    found = self._catalog.load_table((path.database_name, path.table_name))
                except (NoSuchTableError, NoSuchNamespaceError):
                    return False
                try:
                    with found.transaction() as change:
                        _change(change, named, found.properties)
                except CommitFailedException:
                    # Another program has committed meanwhile, such as a tiering worker.
                    if attempt == _COMMITS_MAX - 1:
                        raise
                else:
                    break
        return True


def _change(change: Any, named: Mapping[str, str | None], known: Mapping[str, str]) -> None:
    added = {key: value for key, value in named.items() if value is not None}
    removed = [key for key, value in named.items() if value is None and key in known]
    if added:
        change.set_properties(added)
    if removed:
        change.remove_properties(*removed)


@contextmanager
def _translated(done: str) -> Iterator[None]:
    """Turn the errors of catalogs, which differ by catalog, into a `FlussError`."""
    try:
        yield
    except FlussError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise error_from_code(
            int(ErrorCode.UNKNOWN_SERVER_ERROR),
            f"The catalog of the lake cannot be {done}: {why}.",
            hint=f"What the server's settings leave out, such as a password, is read from "
            f".pyiceberg.yaml or the environment, for the catalog {DEFAULT_NAME!r}.",
        ) from error


# --- settings -------------------------------------------------------------------------------------


def _in_sqlite(text: str, warehouse: str | None, folder: Path) -> dict[str, str]:
    named = text.removeprefix("sqlite:").removeprefix("///").partition("?")[0]
    file = Path(named).expanduser().absolute() if named else folder.absolute() / CATALOG_FILE
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{file.as_posix()}?{_WRITE_AHEAD}",
        "jdbc.schema-version": "V1",
        "warehouse": _location(warehouse or str(file.parent / WAREHOUSE)),
    }


def _in_database(scheme: str, text: str, warehouse: str | None) -> dict[str, str]:
    if warehouse is None:
        raise ConfigError(
            "The lake has no warehouse for the files of its tables.",
            hint="name a folder or s3://bucket/path as its warehouse",
            key="warehouse",
        )
    parts = urlsplit(text)
    login, _, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    query = f"?{parts.query}" if parts.query else ""
    settings = {
        "type": "jdbc",
        "uri": f"jdbc:{scheme}://{host}{parts.path}{query}",
        "jdbc.schema-version": "V1",
        "warehouse": _location(warehouse),
    }
    if user:
        settings["jdbc.user"] = unquote(user)
    if password:
        settings["jdbc.password"] = unquote(password)
    return settings


def _location(warehouse: str) -> str:
    """The URI of a warehouse that is given as a URI or as a folder."""
    if "://" in warehouse:
        return warehouse
    return Path(warehouse).expanduser().absolute().as_uri()


def _prepared(uri: str) -> str:
    """Create the file of a catalog with a write-ahead log; return its URL for SQLAlchemy."""
    path = Path(uri.removeprefix("sqlite:///").partition("?")[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=_BUSY_S)) as opened:
        opened.execute("PRAGMA journal_mode = WAL")
    return f"sqlite:///{path}?timeout={_BUSY_S}"


ICEBERG: Final = IcebergCatalogs()
