"""Tables for engines that write: what a user names, opened as a `Table`.

What is read is opened by `fluss.scan.open_scan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluss.connection.config_sources import Settings, completed
from fluss.connection.shared_connections import connection_for
from fluss.scan import table_source
from fluss.scan.table_source import TableName
from fluss.session.table import Table


class TableSource(table_source.TableSource):
    """A source that can be opened as a `Table`."""

    __slots__ = ()

    def open(self) -> Table:
        """The table, as it is now.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        return open_table(self)


def source_of(
    table: TableName, options: Mapping[str, Any] | None = None, *, config: Settings = None
) -> TableSource:
    """The table that a user of an engine names; see `fluss.scan.source_of`."""
    found = table_source.source_of(table, options, config=config)
    return TableSource(path=found.path, config=found.config, options=found.options)


def open_table(table: TableName, *, config: Settings = None) -> Table:
    """A table for an engine that writes, over a connection that is shared.

    Args:
        table: `"database.table"`, a URL with a table in it, a `Table` or a `TableSource`.
        config: How to reach the cluster; counts more than a URL.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    source = table_source.source_of(table, config=config)
    connection = connection_for(completed(source.config))
    return Table(connection.engine.run(connection.table(source.path)))
