"""Loads the table of a lake from its catalog. Catalogs are cached by their settings and login."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

from fluss.errors import FlussError, TableNotFoundError
from fluss.lake.lake_format import without_lake
from fluss.model.options.secrets import Secret
from fluss.model.tables.table_info import TableInfo
from fluss_lake.catalog_properties import catalog_name, catalog_properties
from fluss_lake.read_errors import secrets_of, unreachable

CATALOGS_MAX: Final = 16

_catalogs: OrderedDict[tuple[str, Secret], Catalog] = OrderedDict()
_lock = threading.Lock()


def open_table(table: TableInfo, settings: Mapping[str, str]) -> Table:
    """Load the Iceberg table of a Fluss table.

    Args:
        table: The Fluss table.
        settings: The user's settings for lakes (`lake.*`).

    Raises:
        TableNotFoundError: The catalog has no such table.
        AuthenticationError: The catalog refuses the login.
        FlussError: The catalog cannot be opened; the hint says what is missing.
    """
    name, properties = catalog_name(table.properties), user_properties(table, settings)
    path = table.table_path
    try:
        catalog = _catalog(name, properties)
        return catalog.load_table((path.database_name, path.table_name))
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise TableNotFoundError(
            f"The catalog of the lake has no table {path}, although Fluss expects one there.",
            hint=without_lake(
                "It may have been dropped there, or the settings name another catalog (lake.uri)."
            ),
            table=str(path),
        ) from error
    except FlussError:
        raise
    except Exception as error:  # noqa: BLE001 - each catalog has errors of its own
        # Without its cause: a traceback shows causes, and their texts may quote a login.
        raise unreachable(table, error, secrets_of(properties.items())) from None


def user_properties(table: TableInfo, settings: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table's catalog, with the user's settings; they may hold secrets.

    Raises:
        ConfigError: The table's properties do not name its catalog.
    """
    of_pyiceberg = Config().get_catalog_config(catalog_name(table.properties))
    return catalog_properties(table.properties, settings, of_pyiceberg)


def _catalog(name: str, properties: dict[str, str]) -> Catalog:
    key = (name, Secret(repr(sorted(properties.items()))))
    with _lock:
        found = _catalogs.get(key)
        if found is None:
            given: dict[str, Any] = properties
            found = _catalogs[key] = load_catalog(name, **given)
        _catalogs.move_to_end(key)
        while len(_catalogs) > CATALOGS_MAX:
            _catalogs.popitem(last=False)
    return found
