"""The lake of a running server: its catalog, in a separate thread, and the plan for its workers.

The event loop never blocks on the catalog, which may be a database on another machine or a file
that a worker has locked. The catalog is opened when it is first used, so a server can serve its
logs while the catalog cannot be reached.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from fluss.error_codes import ErrorCode
from fluss.errors import ConfigError
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_entries import TableEntry
from fluss_server.data_layout import LAKE_FOLDER
from fluss_server.lake.lake_catalog import FORMAT, LakeCatalog, LakeCatalogs, find_catalogs
from fluss_server.lake.lake_settings import (
    settings_from_json,
    settings_of_tables,
    settings_to_json,
    without_secrets,
)
from fluss_server.lake.lake_snapshots import record_from_json
from fluss_server.lake.plan_tiering import TieringPlan
from fluss_server.server_config import ServerConfig
from fluss_server.server_errors import request_error

_LOG = logging.getLogger(__name__)
WAIT_S: Final = 60.0
# Stands for the data directory in the stored settings, because the directory may be moved.
_HERE: Final = "${directory}"

T = TypeVar("T")


class ServerLake:
    """The lake of one server; used on its event loop.

    Args:
        settings: The settings of its catalog, with the names of Fluss's `datalake.{format}.*`.
        coordinator_epoch: The number of this start of a server in the directory.
    """

    def __init__(self, settings: Mapping[str, str], *, coordinator_epoch: int) -> None:
        self._settings = dict(settings)
        self._catalog: LakeCatalog | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fluss-lake")
        self.coordinator_epoch = coordinator_epoch
        self.plan = TieringPlan()
        # Held while the catalogs of lake and server change, so that they stay consistent.
        self.ddl = asyncio.Lock()
        self.table_settings = settings_of_tables(FORMAT, settings)

    @property
    def format(self) -> str:
        """The format of the tables in the lake."""
        return FORMAT

    @property
    def place(self) -> str:
        """The location of its catalog, for messages."""
        return self._settings.get("uri", "").partition("?")[0].removeprefix("jdbc:")

    async def open(self) -> None:
        """Open the catalog.

        Raises:
            FlussError: The catalog cannot be reached, or no installed package has its format.
        """
        await self._run(lambda _: None)

    async def create_table(self, path: TablePath, table: TableDescriptor) -> None:
        """Create the lake's table of a Fluss table.

        Raises:
            FlussError: The lake refuses; the code is that of Fluss's coordinator.
        """
        await self._run(lambda catalog: catalog.create_table(path, table))

    async def discard_table(self, path: TablePath) -> None:
        """Remove a table whose creation was interrupted.

        Raises:
            FlussError: The catalog cannot be reached.
        """
        await self._run(lambda catalog: catalog.discard_table(path))

    async def alter_table(self, path: TablePath, changes: Mapping[str, str | None]) -> bool:
        """Set or remove properties of a table; return whether the lake has it.

        Raises:
            FlussError: The lake refuses, or cannot be reached.
        """
        return await self._run(lambda catalog: catalog.alter_table(path, changes))

    def watch(self, table: TableEntry, *, tiered_ms: int) -> None:
        """Add a table to the plan, or remove it, as its options require.

        Args:
            table: The table.
            tiered_ms: When the table was tiered last.
        """
        options = table.info.options
        if options.datalake_enabled:
            self.plan.put(
                table.table_id,
                table.path,
                freshness_ms=options.datalake_freshness_ms,
                tiered_ms=tiered_ms,
            )
        else:
            self.plan.remove(table.table_id)

    def close(self) -> None:
        """Stop the thread, without waiting for a call in progress."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[LakeCatalog], T]) -> T:
        running = asyncio.get_running_loop().run_in_executor(self._thread, self._call, work)
        try:
            return await asyncio.wait_for(running, WAIT_S)
        except TimeoutError:
            raise request_error(
                ErrorCode.REQUEST_TIME_OUT,
                f"The catalog of the lake ({self.place}) did not respond in {WAIT_S:.0f} s.",
            ) from None

    def _call(self, work: Callable[[LakeCatalog], T]) -> T:
        if self._catalog is None:
            offered: LakeCatalogs = find_catalogs().load()
            self._catalog = offered.open(self._settings)
        return work(self._catalog)


async def open_lake(config: ServerConfig, catalog: Catalog) -> ServerLake | None:
    """Return the lake of a server; None if it has none.

    The directory stores the settings of its lake: a later start without a lake uses them.

    Raises:
        MissingExtraError: A lake is requested, and no installed package has its format.
        ConfigError: The directory has tables in another lake.
        FlussError: A new lake cannot be opened.
    """
    kept = _kept_settings(config, catalog)
    location = config.lake
    if location is None and kept is None:
        return None
    if location is None or (location.is_open and kept is not None):
        settings = kept or {}
        if location is not None:
            find_catalogs()
    else:
        offered: LakeCatalogs = await asyncio.to_thread(find_catalogs().load)
        folder = config.directory / LAKE_FOLDER
        settings = offered.settings(location.url, location.warehouse, folder, location.options)
        _check_unchanged(config, catalog, settings, kept)
    lake = ServerLake(settings, coordinator_epoch=catalog.lake.next_coordinator_epoch())
    if kept != without_secrets(settings):
        try:
            await lake.open()
        except BaseException:
            lake.close()
            raise
        catalog.lake.put_settings(settings_to_json(_with_marks(settings, config)))
    for table in catalog.tables:
        record = record_from_json(catalog.lake.record(table.table_id))
        lake.watch(table, tiered_ms=record.tiered_ms or table.modified_ms)
    return lake


def _check_unchanged(
    config: ServerConfig,
    catalog: Catalog,
    settings: Mapping[str, str],
    kept: Mapping[str, str] | None,
) -> None:
    if kept is None or kept == without_secrets(settings):
        return
    tables = [str(each.path) for each in catalog.tables if each.info.options.datalake_enabled]
    if tables:
        raise ConfigError(
            f"{config.directory} has tables in another lake ({kept.get('uri', '')}): "
            f"{', '.join(tables[:3])}{' …' if len(tables) > 3 else ''}.",  # noqa: PLR2004 - some
            hint="Name that lake, or name none: the directory has its settings.",
            key="lake",
        )


def _kept_settings(config: ServerConfig, catalog: Catalog) -> dict[str, str] | None:
    text = catalog.lake.settings
    if text is None:
        return None
    here = config.directory.absolute()
    return {
        key: value.replace(f"file://{_HERE}", here.as_uri()).replace(_HERE, here.as_posix())
        for key, value in settings_from_json(text).items()
    }


def _with_marks(settings: Mapping[str, str], config: ServerConfig) -> dict[str, str]:
    here = config.directory.absolute()
    return {
        key: value.replace(here.as_uri(), f"file://{_HERE}").replace(here.as_posix(), _HERE)
        for key, value in settings.items()
    }
