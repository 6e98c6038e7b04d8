"""What the catalog keeps of the lake: where it is, what has been tiered, which creations run.

All of it are settings of the cluster, which are rows of a table that earlier versions know, too.
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
    """The notes about the lake of one server; the event loop alone changes them.

    Args:
        catalog: The catalog.
        store: Its file.
    """

    def __init__(self, catalog: Catalog, store: CatalogStore) -> None:
        self._catalog = catalog
        self._store = store

    @property
    def settings(self) -> str | None:
        """What is kept of the lake of the cluster; None where it has none."""
        return self._catalog.setting(_LAKE)

    def put_settings(self, text: str) -> None:
        """Keep the lake of the cluster; servers of earlier versions refuse the file from now on."""
        with self._store.transaction():
            self._store.require_lake()
        self._catalog.put_setting(_LAKE, text)

    def record(self, table_id: int) -> Mapping[str, Any] | None:
        """Return what has been tiered of a table; None for nothing. Any thread may call it."""
        text = self._catalog.setting(record_name(table_id))
        if text is None:
            return None
        found: Mapping[str, Any] = json.loads(text)
        return found

    def put_record(self, table: TableEntry, record: Mapping[str, Any]) -> None:
        """Store what has been tiered of a table."""
        self._catalog.put_setting(record_name(table.table_id), json.dumps(record))
        self._catalog.describe_table(table)

    def begin_creation(self, path: TablePath) -> bool:
        """Note that a table is created in the lake; return whether a former creation did not end.

        Creating the table here, or changing it, ends the note.
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
        """Return a number that grows with each start of a server with a lake."""
        return self._store.take_numbers(_EPOCH, 1)


def record_name(table_id: int) -> str:
    """Return the name of the setting with what has been tiered of a table."""
    return f"lake {table_id}"


def creation_name(path: TablePath) -> str:
    """Return the name of the setting that marks a creation in the lake."""
    return f"lake creation {path}"


def directories_of(table: TableEntry) -> list[Path]:
    """Return the directories that go when a table is dropped."""
    found = [table_directory(table.path, table.table_id)]
    if table.info.options.datalake_format is not None:
        found.append(lake_directory(table.path, table.table_id))
    return found
