"""Changes the bucket count of a table's new partitions, below the public names."""

from __future__ import annotations

import pytest

from fluss.model.paths import TablePath
from fluss.session import Session
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import write_table_path


def needs_rescaling(session: Session) -> None:
    """Skip the test on servers before 1.0, which cannot change the bucket count of a table."""
    cluster = session._connection.cluster

    async def version() -> int:
        return (await cluster._coordinator()).apis.version(ApiKey.ALTER_TABLE)

    if session._connection.engine.run(version()) < 1:
        pytest.skip("servers before 1.0 cannot change the bucket count of a table")


def rescale(session: Session, table: str, buckets: int) -> None:
    """Change the bucket count of the table's new partitions."""
    cluster = session._connection.cluster
    path = TablePath.parse(session.table(table).name)
    request = messages.AlterTableRequest(
        table_path=write_table_path(path), ignore_if_not_exists=False
    )
    request.modify_bucket_count.new_bucket_count = buckets
    ask = cluster.ask_coordinator(request, messages.AlterTableResponse, repeatable=False)
    session._connection.engine.run(ask)
