"""The door for lakes: what a package offers so that the server creates tables in its format.

A package names an object with the methods of `LakeCatalogs` in the entry point group
`fluss.lake_catalogs`, under the name that `table.datalake.format` has. The server requires none of
these packages, and imports one when the lake is first used (decision 0020).
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
        """Create the table of a table of Fluss.

        Raises:
            FlussError: The lake cannot have such a table (-1, 15), has one of this name (54), or
                cannot be reached.
        """
        ...

    def discard_table(self, path: TablePath) -> None:
        """Remove a table that was created and never written to; do nothing about any other.

        Raises:
            FlussError: The catalog cannot be reached.
        """
        ...

    def alter_table(self, path: TablePath, changes: Mapping[str, str | None]) -> bool:
        """Set properties, and remove those that are None; return whether there is such a table.

        Raises:
            FlussError: A property cannot be changed, or the catalog cannot be reached.
        """
        ...


class LakeCatalogs(Protocol):
    """What a package offers for a format."""

    def settings(
        self, url: str, warehouse: str | None, folder: Path, options: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the settings of a catalog, in the words of Fluss's `datalake.{format}.*`.

        Args:
            url: Where the catalog is; empty for one in the folder.
            warehouse: Where the files of its tables are; None for the catalog's own choice.
            folder: A folder of the server's own.
            options: More settings.

        Raises:
            ConfigError: The catalog is not described.
        """
        ...

    def open(self, settings: Mapping[str, str]) -> LakeCatalog:
        """Open a catalog, and create it where that is possible.

        Raises:
            FlussError: It cannot be reached.
        """
        ...


def find_catalogs() -> EntryPoint:
    """Return what an installed package offers; its modules are not imported yet.

    Raises:
        MissingExtraError: No installed package offers the format.
    """
    for found in entry_points(group=GROUP, name=FORMAT):
        return found
    raise MissingExtraError(
        "A server with a lake needs a package that knows Iceberg, and none is installed.",
        hint=how_to_install(PACKAGE),
    )
