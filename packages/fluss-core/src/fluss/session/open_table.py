"""Opens the table that a user of an engine names, for adapters that write.

`fluss.scan.open_scan` opens it for reading.
"""

from __future__ import annotations

from fluss.connection.config_sources import Settings, completed
from fluss.connection.shared_connections import connection_for
from fluss.scan.table_source import TableName, source_of
from fluss.session.table import Table


def open_table(table: TableName, *, config: Settings = None) -> Table:
    """A table for an engine that writes, over a connection that is shared.

    Args:
        table: `"database.table"`, a URL with a table in it, a `Table` or a `TableSource`.
        config: How to reach the cluster; counts more than a URL.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    source = source_of(table, config=config)
    connection = connection_for(completed(source.config))
    return Table(connection.engine.run(connection.table(source.path)))
