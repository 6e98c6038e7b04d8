"""The lake's table as rounds see it: its snapshots, its files, and access to the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot, ancestors_of

from fluss.lake.lake_format import LakePart
from fluss.model.tables.table_info import TableInfo
from fluss_lake.catalogs import open_table, user_properties
from fluss_lake.file_plan import IcebergContents, Place
from fluss_lake.iceberg_parts import entries_of
from fluss_lake.tiering.plan_round import LakeCommit


def newest_id(table: Table) -> int | None:
    """The id of a table's newest snapshot; None if it has none."""
    found = table.current_snapshot()
    return None if found is None else found.snapshot_id


def commits_of(table: Table) -> list[LakeCommit]:
    """The snapshots of the table's branch that the lake still has, the newest first."""
    return [_commit(snapshot) for snapshot in _ancestors(table)]


def _ancestors(table: Table) -> Iterator[Snapshot]:
    yield from ancestors_of(table.current_snapshot(), table.metadata)


def _commit(snapshot: Snapshot) -> LakeCommit:
    summary = snapshot.summary
    return LakeCommit(
        snapshot_id=snapshot.snapshot_id,
        sequence=snapshot.sequence_number or 0,
        properties={} if summary is None else dict(summary.additional_properties),
    )


def present_parts(table: Table, info: TableInfo) -> dict[Place, LakePart]:
    """The files of the newest snapshot, by partition and bucket."""
    newest = newest_id(table)
    if newest is None:
        return {}
    parts = IcebergContents(info, newest, entries_of(table, newest)).parts(None)
    return {(part.partition_name, part.bucket_id): part for part in parts}


def file_io(info: TableInfo, location: str, settings: Mapping[str, str]) -> FileIO:
    """Open the files of a table, in a process that does not commit.

    A catalog in a database is not asked: an executor may be unable to reach it. A REST catalog is
    asked, because it may issue the credentials for the files.
    """
    properties = user_properties(info, settings)
    if properties.get("type") == "rest":
        return open_table(info, settings).io
    return load_file_io(properties, location)
