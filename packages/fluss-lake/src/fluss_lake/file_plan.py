"""Plans which files of a snapshot a scan reads in each bucket, and which deletes apply to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fluss.errors import CorruptDataError, UnsupportedOperationError
from fluss.lake.lake_format import LakePart, without_lake
from fluss.model.predicates.binding import BoundPredicate, bind, column_types
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss_lake.iceberg_parts import DATA, Bounds, Entry
from fluss_lake.pruning import may_match

FORMAT: Final = "iceberg"
# The system columns, which Fluss adds to every table in a lake.
BUCKET: Final = "__bucket"
OFFSET: Final = "__offset"
TIMESTAMP: Final = "__timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A file of deletes.

    Attributes:
        path: The path of the file.
        sequence: The sequence number of the commit that added the file.
        equality_ids: The ids of the key columns; empty for a file of position deletes.
    """

    path: str
    sequence: int
    equality_ids: tuple[int, ...]

    def may_delete_from(self, sequence: int) -> bool:
        """Whether the deletes apply to a data file with this sequence number.

        Equality deletes apply to data files of earlier commits. Position deletes apply also to
        data files of the same commit.
        """
        return sequence < self.sequence + (not self.equality_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file of rows.

    Attributes:
        path: The path of the file.
        rows: How many rows the file has.
        size_bytes: The size of the file.
        sequence: The sequence number of the commit that added the file.
        offsets: The first and the last offset of the rows.
        deletes: The delete files that may apply to the rows.
    """

    path: str
    rows: int
    size_bytes: int
    sequence: int
    offsets: tuple[int, int]
    deletes: tuple[DeleteFile, ...]


Place = tuple[str | None, int]


class IcebergContents:
    """The files of one snapshot; see `LakeContents`.

    Args:
        table: The Fluss table.
        snapshot_id: The id of the snapshot.
        entries: The live files of the snapshot.
        manifests: How many manifests the snapshot has.
        manifests_left_out: How many manifests were not read, because none of their partitions
            matches the filter.

    Raises:
        UnsupportedOperationError: A file is not a Parquet file, or is a deletion vector.
        CorruptDataError: The metadata of a file has no bucket or no bounds of its offsets.
    """

    def __init__(
        self,
        table: TableInfo,
        snapshot_id: int,
        entries: Iterable[Entry],
        *,
        manifests: int = 0,
        manifests_left_out: int = 0,
    ) -> None:
        self._table, self._snapshot_id = table, snapshot_id
        self._manifests, self._manifests_left_out = manifests, manifests_left_out
        self._rows: dict[Place, list[Entry]] = defaultdict(list)
        self._deletes: dict[Place, list[DeleteFile]] = defaultdict(list)
        for entry in entries:
            _check_format(table, entry)
            place = _place_of(table, entry)
            if entry.content is DATA:
                self._rows[place].append(entry)
            else:
                self._deletes[place].append(
                    DeleteFile(
                        path=entry.path, sequence=entry.sequence, equality_ids=entry.equality_ids
                    )
                )

    @property
    def partition_names(self) -> frozenset[str]:
        """The partitions that have files."""
        return frozenset(name for name, _ in self._rows if name is not None)

    @property
    def is_cut(self) -> bool:
        """Whether partitions are missing from the contents, because the filter rules them out."""
        return self._manifests_left_out > 0

    @property
    def left_out(self) -> str:
        """Which manifests were not read, as `explain` shows it."""
        if not self.is_cut:
            return ""
        return (
            f"{self._manifests_left_out} of {self._manifests} manifests, by the bounds of their "
            "partitions"
        )

    @property
    def deletes(self) -> Mapping[Place, Sequence[DeleteFile]]:
        """The delete files by bucket, including those that apply to no data file."""
        return self._deletes

    def parts(self, predicate: Predicate | None) -> list[LakePart]:
        """The files by bucket, without those whose bounds show that no row matches the filter."""
        condition = None
        if predicate is not None:
            condition = bind(predicate, column_types(self._table.schema))
        places = sorted(self._rows, key=lambda place: (place[0] or "", place[1]))
        return [self._part(place, condition) for place in places]

    def _part(self, place: Place, condition: BoundPredicate | None) -> LakePart:
        entries, deletes = self._rows[place], self._deletes.get(place, [])
        offsets = {each.path: _offsets_of(each) for each in entries}
        kept = [
            each
            for each in entries
            if condition is None or may_match(condition, each.bounds, each.rows)
        ]
        files = [
            DataFile(
                path=each.path,
                rows=each.rows,
                size_bytes=each.size_bytes,
                sequence=each.sequence,
                offsets=offsets[each.path],
                deletes=tuple(one for one in deletes if one.may_delete_from(each.sequence)),
            )
            for each in kept
        ]
        files.sort(key=lambda each: each.offsets)
        partition_name, bucket_id = place
        return LakePart(
            format=FORMAT,
            snapshot_id=self._snapshot_id,
            partition_name=partition_name,
            bucket_id=bucket_id,
            first_offset=min(first for first, _ in offsets.values()),
            end=max(last for _, last in offsets.values()) + 1,
            files=tuple(files),
            files_left_out=len(entries) - len(kept),
            rows_max=sum(each.rows for each in files),
            is_whole=len(kept) == len(entries) and not deletes,
            size_bytes=sum(each.size_bytes for each in files),
            rows_left_out=sum(each.rows for each in entries) - sum(each.rows for each in files),
            size_bytes_left_out=sum(each.size_bytes for each in entries)
            - sum(each.size_bytes for each in files),
        )


def _check_format(table: TableInfo, entry: Entry) -> None:
    if entry.format == "PUFFIN":
        raise UnsupportedOperationError(
            f"The lake of {table.table_path} has deletion vectors (a Puffin file), which came with "
            "version 3 of Iceberg and are not read.",
            hint=without_lake("Rewrite the table's data files, so that its deletes are applied."),
            path=entry.path,
        )
    if entry.format != "PARQUET":
        raise UnsupportedOperationError(
            f"The lake of {table.table_path} has a file of the format {entry.format}, and only "
            "Parquet is read.",
            hint=without_lake(),
            path=entry.path,
        )


def _offsets_of(entry: Entry) -> tuple[int, int]:
    known = entry.bounds.get(OFFSET, Bounds())
    if known.lowest is None or known.highest is None:
        raise CorruptDataError(
            f"The metadata of the file {entry.path} in the lake do not say which offsets its rows have.",
            what="file of a lake",
            at=0,
            why=f"there are no bounds of the column {OFFSET}",
        )
    return int(known.lowest), int(known.highest)


def _place_of(table: TableInfo, entry: Entry) -> Place:
    """The partition and the bucket of a file. The last partition field is the bucket."""
    *names, bucket_field = entry.partition
    bucket = entry.partition[bucket_field]
    if not isinstance(bucket, int) or len(names) != len(table.partition_keys):
        raise CorruptDataError(
            f"The file {entry.path} in the lake does not belong to a bucket of {table.table_path}.",
            what="file of a lake",
            at=0,
            why=f"its partition values are {dict(entry.partition)}",
        )
    if not names:
        return None, bucket
    return "$".join(str(entry.partition[name]) for name in names), bucket
