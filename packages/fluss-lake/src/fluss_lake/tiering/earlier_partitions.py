"""Partitions that were dropped and created again, while the lake has rows of the earlier one.

A lake knows partitions by name, so the rows of both are in one place, with the same offsets. Rows
of a log are added there, as Fluss's own job does: nothing is lost, and scans read them as those of
two partitions. Rows by key may not be added: a key may be in both, and readers would give two rows
of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from fluss.model.tables.table_info import TableInfo
from fluss.net.leader_requests import Places
from fluss_lake.file_plan import IcebergContents
from fluss_lake.iceberg_parts import entries_of
from fluss_lake.tiering.lake_table import newest_id
from fluss_lake.tiering.plan_round import (
    Known,
    PlannedRange,
    check_not_created_again,
    created_again,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Partitions whose rows a round replaces.

    Attributes:
        names: Their names.
        files: The paths of their files, deletes included.
    """

    names: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()


def earlier_partitions(
    lake: Table,
    info: TableInfo,
    known: Known | None,
    places: Places,
    ranges: Sequence[PlannedRange],
    *,
    may_replace: bool,
) -> Earlier:
    """Find the earlier partitions whose rows a round replaces.

    Args:
        lake: The lake's table.
        info: The table.
        known: The snapshot that the cluster knows.
        places: The buckets of the table.
        ranges: What the round copies.
        may_replace: Whether they may be replaced.

    Raises:
        LakeMismatchError: There are some, and they may not be replaced.
    """
    newest = newest_id(lake)
    if newest is None or not info.is_partitioned() or not info.has_primary_key():
        return Earlier()
    copied = {bucket.partition_id for bucket in ({} if known is None else known.ends)}
    new = {
        each.bucket: places[each.bucket].partition_name
        for each in ranges
        if each.stop and each.bucket.partition_id not in copied
    }
    if not new:
        return Earlier()
    contents = IcebergContents(info, newest, entries_of(lake, newest))
    names = created_again(known, new, contents.partition_names)
    if not may_replace:
        check_not_created_again(str(info.table_path), names)
    return Earlier(names=names, files=_files_of(contents, names))


def _files_of(contents: IcebergContents, names: frozenset[str]) -> frozenset[str]:
    parts = (part for part in contents.parts(None) if part.partition_name in names)
    rows = {file.path for part in parts for file in part.files}
    deletes = {
        file.path
        for (name, _), files in contents.deletes.items()
        if name in names
        for file in files
    }
    return frozenset(rows | deletes)
