"""What `fluss tier status` shows of each table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fluss.connection.connection import TableHandle
from fluss.connection.shared_connections import connection_for
from fluss.errors import FlussError
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss_lake.catalogs import open_table
from fluss_lake.tiering.lake_tables import CopiedTable, how_far, lake_tables
from fluss_lake.tiering.plan_round import COMMIT_USER, COMMIT_USER_KEY, WORKER_KEY
from fluss_lake.tiering.round_driver import check_has_lake
from fluss_lake.tiering.worker_notes import TableNote, read_notes


def status_of(
    config: Config, notes_folder: Path, tables: Iterable[TablePath] | None
) -> list[dict[str, Any]]:
    """One record for each table.

    Args:
        config: How to reach the cluster.
        notes_folder: The folder of the workers' notes.
        tables: The tables; None for all that have a lake.
    """
    connection = connection_for(config)
    notes = read_notes(notes_folder, str(config.bootstrap_servers), time.time_ns() / 1e9)

    async def look() -> list[tuple[TableHandle, CopiedTable]]:
        if tables is None:
            found = await lake_tables(connection)
        else:
            found = [await connection.table(each) for each in tables]
        return list(zip(found, await asyncio.gather(*map(how_far, found)), strict=True))

    looked_at = connection.engine.run(look())
    return [_record(table, how, notes.get(str(table.info.table_path))) for table, how in looked_at]


def _record(table: TableHandle, how: CopiedTable, note: TableNote | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "table": str(table.info.table_path),
        "lag": how.lag,
        "snapshot": None if how.known is None else how.known.snapshot_id,
        "committed_at": None,
        "by": None,
        "error": None,
        "hint": None,
    }
    error = how.error or _why_not_copied(table)
    if how.known is not None:
        try:
            record |= _commit(table, how.known.snapshot_id)
        except FlussError as raised:
            error = raised
    if note is not None and note.error:
        times = "" if note.failures == 1 else f" ({note.failures} times)"
        record |= {"error": f"{note.error}{times}", "hint": note.hint, "by": note.worker}
    elif error is not None:
        record |= {"error": error.sentence, "hint": error.hint}
    return record


def _why_not_copied(table: TableHandle) -> FlussError | None:
    try:
        check_has_lake(table)
    except FlussError as error:
        return error
    return None


def _commit(table: TableHandle, snapshot_id: int) -> dict[str, Any]:
    """When the snapshot that the cluster knows was made, and by which worker."""
    snapshot = open_table(table.info, table.connection.lake_settings()).snapshot_by_id(snapshot_id)
    if snapshot is None:
        return {"error": f"The lake does not have the snapshot {snapshot_id}."}
    summary = snapshot.summary
    properties = {} if summary is None else summary.additional_properties
    is_flink = properties.get(COMMIT_USER_KEY) == COMMIT_USER
    at = datetime.fromtimestamp(snapshot.timestamp_ms / 1_000, UTC)
    by = properties.get(WORKER_KEY) or ("Fluss's job in Flink" if is_flink else None)
    return {"committed_at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "by": by}
