"""The interface of packages that create tables of a lake for the server.

A package registers an object with the methods of `LakeCatalogs` in the entry point group
`fluss.lake_catalogs`, under the value of `table.datalake.format`. The server requires none of these
packages, and imports one when the lake is first used (decision 0020).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Protocol

from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor

GROUP: Final = "fluss.lake_catalogs"
FORMAT: Final = "iceberg"
PACKAGE: Final = "fluss-lake"


class LakeCatalog(Protocol):
    """An open catalog. Its methods block; one thread at a time calls them."""

    def create_table(self, path: TablePath, table: TableDescriptor) -> None:
        """Create the lake's table of a Fluss table.

        Raises:
            FlussError: The lake does not support such a table (-1, 15), has a table of this name
                (54), or cannot be reached.
        """
        ...

    def discard_table(self, path: TablePath) -> None:
        """Remove a table that has no snapshot; leave any other table alone.

        Raises:
            FlussError: The catalog cannot be reached.
        """
        ...

    def alter_table(self, path: TablePath, changes: Mapping[str, str | None]) -> bool:
        """Set properties, and remove those that are None; return whether the table exists.

        Raises:
            FlussError: A property cannot be changed, or the catalog cannot be reached.
        """
        ...


class LakeCatalogs(Protocol):
    """The catalogs of one format."""

    def settings(
        self, url: str, warehouse: str | None, folder: Path, options: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the settings of a catalog, with the names of Fluss's `datalake.{format}.*`.

        Args:
            url: The URL of the catalog; empty for one in the folder.
            warehouse: Where the files of its tables are; None for the catalog's default.
            folder: A folder of the server.
            options: More settings.

        Raises:
            ConfigError: The arguments do not describe a catalog.
        """
        ...

    def open(self, settings: Mapping[str, str]) -> LakeCatalog:
        """Open a catalog; create it if that is possible.

        Raises:
            FlussError: The catalog cannot be reached.
        """
        ...


def find_catalogs() -> EntryPoint:
    """Return the entry point of an installed package, without importing its modules.

    Raises:
        MissingExtraError: No installed package offers the format.
    """
    for found in entry_points(group=GROUP, name=FORMAT):
        return found
    raise MissingExtraError(
        "A server with a lake needs a package for Iceberg, and none is installed.",
        hint=how_to_install(PACKAGE),
    )
