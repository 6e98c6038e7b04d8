"""The catalog's notes about the lake: its settings, the tiered tables, and creations in progress.

The notes are settings of the cluster. Earlier versions also have the table that holds them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fluss.model.paths import TablePath
from fluss_server.data_layout import lake_directory, table_directory

if TYPE_CHECKING:
    from fluss_server.catalog.catalog import Catalog
    from fluss_server.catalog.catalog_entries import TableEntry
    from fluss_server.catalog.catalog_store import CatalogStore

_LAKE: Final = "lake"
_EPOCH: Final = "coordinator epoch"


class LakeNotes:
    """The notes about the lake of one server; only the event loop changes them.

    Args:
        catalog: The catalog.
        store: Its file.
    """

    def __init__(self, catalog: Catalog, store: CatalogStore) -> None:
        self._catalog = catalog
        self._store = store

    @property
    def settings(self) -> str | None:
        """The stored settings of the cluster's lake; None if it has none."""
        return self._catalog.setting(_LAKE)

    def put_settings(self, text: str) -> None:
        """Store the lake's settings; servers of earlier versions then refuse the catalog file."""
        with self._store.transaction():
            self._store.require_lake()
        self._catalog.put_setting(_LAKE, text)

    def record(self, table_id: int) -> Mapping[str, Any] | None:
        """Return a table's record; None if nothing was tiered. Any thread may call it."""
        text = self._catalog.setting(record_name(table_id))
        if text is None:
            return None
        found: Mapping[str, Any] = json.loads(text)
        return found

    def put_record(self, table: TableEntry, record: Mapping[str, Any]) -> None:
        """Store a table's record."""
        self._catalog.put_setting(record_name(table.table_id), json.dumps(record))
        self._catalog.describe_table(table)

    def begin_creation(self, path: TablePath) -> bool:
        """Note a creation in the lake; return whether an earlier one was interrupted.

        Creating or altering the table in this catalog removes the note.
        """
        if self._catalog.setting(creation_name(path)) is not None:
            return True
        self._catalog.put_setting(creation_name(path), "")
        return False

    def end_creation(self, path: TablePath) -> None:
        """Note that the lake refused to create a table."""
        with self._store.transaction():
            self._catalog.drop_setting(creation_name(path))

    def next_coordinator_epoch(self) -> int:
        """Return a number that increases with each start of a server with a lake."""
        return self._store.take_numbers(_EPOCH, 1)


def record_name(table_id: int) -> str:
    """Return the name of the setting that holds a table's record."""
    return f"lake {table_id}"


def creation_name(path: TablePath) -> str:
    """Return the name of the setting that marks a creation in the lake."""
    return f"lake creation {path}"


def directories_of(table: TableEntry) -> list[Path]:
    """Return the directories that are removed when a table is dropped."""
    found = [table_directory(table.path, table.table_id)]
    if table.info.options.datalake_format is not None:
        found.append(lake_directory(table.path, table.table_id))
    return found
