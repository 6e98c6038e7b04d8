"""Finds what the lake of a table has, for a scan: a snapshot, where it ends, and its files.

It is the snapshot that the cluster knows, and not the newest of the lake: only of this one does the
cluster say up to which offset of each bucket its rows go. From there on the log has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from fluss.admin.admin import admin_of
from fluss.connection.connection import TableHandle
from fluss.errors import SnapshotNotFoundError, UnsupportedOperationError
from fluss.install_hints import how_to_install
from fluss.lake.formats_not_read import what_it_needs
from fluss.lake.lake_format import (
    EXTRA,
    LakeContents,
    LakePart,
    find_format,
    the_format,
    without_lake,
)
from fluss.model.options.scan_options import LakeUse, Mode
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.partitions import PartitionInfo, parse_partition_name
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import TimeFamily
from fluss.net.operation_deadline import note_waiting

# Numbers from here downwards are of dropped partitions whose own is not known.
UNKNOWN_NUMBER: Final = -2

Place = tuple[str | None, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinnedLake:
    """A snapshot of the lake of a table.

    Attributes:
        reason: Why it is read, or is not, for people.
        use: Which rows are read.
        parts: Its files, by partition and bucket.
        ends: One past the last offset that it has, by partition and bucket.
        dropped: The partitions that Fluss no longer has, and the lake has. One may have the name of
            a partition that was created since then.
        snapshot_id: Its id.
    """

    reason: str = ""
    use: LakeUse = LakeUse.OFF
    snapshot_id: int = -1
    contents: LakeContents | None = None
    ends: Mapping[Place, int] = field(default_factory=dict)
    dropped: tuple[PartitionInfo, ...] = ()

    def is_dropped(self, partition_id: int | None) -> bool:
        """Whether only the lake has a partition."""
        return any(each.partition_id == partition_id for each in self.dropped)

    def has_files_of(self, partition_name: str | None, partition_id: int | None) -> bool:
        """Whether the lake's files of a name are read as those of this partition.

        Of two partitions of one name, they are read as those of the one that was dropped.
        """
        names = {each.partition_name for each in self.dropped}
        return self.is_dropped(partition_id) or partition_name not in names

    @property
    def is_cut(self) -> bool:
        """Whether buckets that cannot fulfil the filter may be missing from its files."""
        return self.contents is not None and self.contents.is_cut

    def parts(self, predicate: Predicate | None) -> dict[Place, LakePart]:
        """The files by partition and bucket."""
        if self.contents is None:
            return {}
        parts = self.contents.parts(predicate)
        return {(each.partition_name, each.bucket_id): each for each in parts}


async def pin_lake(
    table: TableHandle,
    use: LakeUse | None,
    mode: Mode,
    listed: Sequence[PartitionInfo] | None,
    *,
    predicate: Predicate | None = None,
) -> PinnedLake:
    """Choose the snapshot that a scan reads, and find its files.

    Args:
        table: The table.
        use: What the options request; None for the default.
        mode: The kind of rows that the scan gives.
        listed: The partitions that Fluss has; None where the table has none.
        predicate: A condition on partition keys; what cannot fulfil it may be left out.

    Raises:
        UnsupportedOperationError: The table has no such rows in its lake.
        MissingExtraError: The lake is requested, and no installed package reads its format.
        FlussError: The catalog cannot be reached.
    """
    info = table.info
    reason = _why_not(info, use, mode)
    if reason is not None:
        return PinnedLake(reason=reason)
    name = str(info.options.datalake_format)
    if use is None and find_format(name) is None:
        return PinnedLake(reason=_not_offered(name, info))
    offered = the_format(name, info)
    try:
        snapshot = await admin_of(table.connection).get_latest_lake_snapshot(info.table_path)
    except SnapshotNotFoundError:
        return PinnedLake(reason="lake: it has no snapshot yet")
    settings = table.connection.lake_settings()
    # Otherwise a catalog that does not answer would be reported as a server of Fluss.
    note_waiting(f"the lake of {info.table_path}")
    work = partial(offered.open, info, snapshot.snapshot_id, settings, predicate=predicate)
    contents = await anyio.to_thread.run_sync(work)
    by_id: dict[int | None, dict[int, int]] = {}
    for bucket, end in snapshot.table_buckets_offset.items():
        by_id.setdefault(bucket.partition_id, {})[bucket.bucket_id] = end
    known: dict[int | None, str | None] = {None: None}
    known |= {each.partition_id: each.partition_name for each in listed or ()}
    unknown = {each: ends for each, ends in by_id.items() if each not in known}
    again = _created_again(info, contents, listed or (), by_id)
    names = frozenset(known.values()) - again
    dropped = _dropped_partitions(info, contents, names, unknown)
    known |= {
        each.partition_id: each.partition_name
        for each in dropped
        if each.partition_name not in again
    }
    left_out = f"; left out: {contents.left_out}" if contents.left_out else ""
    return PinnedLake(
        reason=f"lake: snapshot {snapshot.snapshot_id}, pinned at plan time{left_out}",
        use=use or LakeUse.UNION,
        snapshot_id=snapshot.snapshot_id,
        contents=contents,
        ends={
            (known[partition_id], bucket_id): end
            for partition_id, ends in by_id.items()
            if partition_id in known
            for bucket_id, end in ends.items()
        },
        dropped=dropped,
    )


def _created_again(
    table: TableInfo,
    contents: LakeContents,
    listed: Sequence[PartitionInfo],
    by_id: Mapping[int | None, Mapping[int, int]],
) -> frozenset[str | None]:
    """The names of partitions of a log that the lake also has rows of an earlier partition of.

    Fluss's tiering keeps the rows of a dropped partition, and adds those of the next one of that
    name to the same place, with the same offsets. Their files are then read as those of a partition
    that was dropped, which has no log; the log of the present one continues where its lake ends.

    Raises:
        UnsupportedOperationError: The lake has such rows of a primary-key table: of two rows of one
            key nothing says which one is the present one.
    """
    ids = {each.partition_name: each.partition_id for each in listed}
    found = set()
    for part in contents.parts(None):
        ends = by_id.get(ids.get(part.partition_name or "", UNKNOWN_NUMBER))
        if part.partition_name not in ids or not _has_more(table, part, ends):
            continue
        if not table.has_primary_key():
            found.add(part.partition_name)
        elif ends is not None:
            raise _mixed(table, part, ends)
    return frozenset(found)


def _has_more(table: TableInfo, part: LakePart, ends: Mapping[int, int] | None) -> bool:
    """Whether a part has other rows than those below the end that the cluster knows."""
    if ends is None or part.end > ends.get(part.bucket_id, 0):
        return True
    return not table.has_primary_key() and part.rows_max > part.end - part.first_offset


def _mixed(table: TableInfo, part: LakePart, ends: Mapping[int, int]) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"The lake of {table.table_path} has rows of bucket {part.bucket_id} of the partition "
        f"{part.partition_name!r} up to offset {part.end}, and the cluster says that it ends at "
        f"{ends.get(part.bucket_id, 0)}: the partition was dropped and created again, and the lake has "
        "the rows of both.",
        hint=without_lake("Delete the rows of the earlier one from the lake's table."),
        table=str(table.table_path),
        partition=part.partition_name,
    )


def _dropped_partitions(
    table: TableInfo,
    contents: LakeContents,
    listed: frozenset[str | None],
    unknown: Mapping[int | None, Mapping[int, int]],
) -> tuple[PartitionInfo, ...]:
    """The partitions that only the lake has, with the numbers that they had.

    The cluster knows them by number, and the lake by name. The ends of their buckets say which is
    which; a partition whose number is unclear gets one that no partition has.
    """
    ends: dict[str, dict[int, int]] = {}
    for part in contents.parts(None):
        if part.partition_name is not None and part.partition_name not in listed:
            ends.setdefault(part.partition_name, {})[part.bucket_id] = part.end
    found = []
    for place, (name, ends_there) in enumerate(sorted(ends.items())):
        same = [each for each, ends_here in unknown.items() if ends_here == ends_there]
        is_alone = len(same) == 1 and list(ends.values()).count(ends_there) == 1
        number = same[0] if is_alone else None
        found.append(
            PartitionInfo(
                UNKNOWN_NUMBER - place if number is None else number,
                name,
                partition_spec=parse_partition_name(name, table.partition_keys),
                # It has at least the buckets of which there are rows.
                bucket_count=max(table.num_buckets, max(ends_there) + 1),
            )
        )
    return tuple(found)


def _not_offered(name: str, table: TableInfo) -> str:
    what = what_it_needs(name, table.properties) or f"install fluss-lake ({how_to_install(EXTRA)})"
    return (
        f"lake: not read, because no installed package reads {name}; rows that the log no longer "
        f"has are missing. {what}"
    )


def may_read_files(table: TableInfo, use: LakeUse | None, mode: Mode) -> bool:
    """Whether a scan of a log may read files of its lake; its plan says whether it does."""
    if mode is not Mode.LOG or use is LakeUse.OFF or not table.options.datalake_enabled:
        return False
    return find_format(str(table.options.datalake_format)) is not None


def fine_keys(table: TableInfo) -> list[str]:
    """The columns of the primary key with times finer than a microsecond.

    Lakes store microseconds: two keys may be one there, and neither is found by its exact value.
    """
    kinds = ((name, table.schema.column(name).data_type) for name in table.primary_keys)
    return [name for name, kind in kinds if isinstance(kind, TimeFamily) and kind.unit == "ns"]


def _why_not(table: TableInfo, use: LakeUse | None, mode: Mode) -> str | None:
    """Why the lake is not read; None where it is."""
    if use is LakeUse.OFF:
        return "lake: not read, as requested"
    why = ""
    if not table.options.datalake_enabled:
        why = f"{table.table_path} is not copied into a lake"
    elif mode is Mode.BINLOG or (mode is Mode.CHANGELOG and table.has_primary_key()):
        why = "a lake has the rows of a primary-key table, and not its changes"
    elif mode is Mode.STATE and use is not LakeUse.ONLY and table.options.has_row_ttl:
        why = "rows of it expire (table.kv.ttl), which its lake does not know"
    elif table.has_primary_key() and (fine := fine_keys(table)):
        why = f"its keys have nanoseconds ({', '.join(fine)}), which a lake does not keep"
    if why and use is not None:
        raise UnsupportedOperationError(
            f"lake={str(use)!r} is not possible: {why}.",
            hint="leave lake out, and $lake of the table's name",
            table=str(table.table_path),
        )
    return "" if why else None
