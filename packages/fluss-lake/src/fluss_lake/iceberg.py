"""`ICEBERG`, the lake format that scans find through the entry point `fluss.lakes`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pyiceberg.table import Table

from fluss.errors import FlussError, SnapshotNotFoundError
from fluss.lake.file_decoder import FileDecoder
from fluss.lake.lake_format import LakeContents, LakeFormat, LakePart, LakeRows, PastSnapshot
from fluss.model.predicates.binding import bind, column_types
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss_lake.catalogs import open_table
from fluss_lake.file_plan import IcebergContents
from fluss_lake.file_reader import PartReader
from fluss_lake.iceberg_parts import Bounds, MayHave, live_files, snapshots_of
from fluss_lake.pruning import may_match
from fluss_lake.read_errors import missing_file, secrets_of, unreachable, why_missing
from fluss_lake.table_checks import check_table


class Iceberg:
    """Reads Iceberg tables; see `LakeFormat`."""

    def open(
        self,
        table: TableInfo,
        snapshot_id: int,
        settings: Mapping[str, str],
        *,
        predicate: Predicate | None = None,
    ) -> LakeContents:
        """Find the files of a snapshot; see `LakeFormat.open`."""
        opened = open_table(table, settings)
        check_table(table, opened)
        try:
            files = live_files(opened, snapshot_id, _may_have(table, predicate))
        except FlussError:
            raise
        except FileNotFoundError as error:
            # The list of manifests, or a manifest: pyiceberg's error names it.
            missing = missing_file(str(error.filename or error))
            raise why_missing(table, opened, snapshot_id, missing) from error
        except Exception as error:  # noqa: BLE001 - pyiceberg reads Avro with errors of its own
            raise _unreachable(table, opened, error) from None
        return IcebergContents(
            table,
            snapshot_id,
            files.entries,
            manifests=files.manifests,
            manifests_left_out=files.manifests_left_out,
        )

    def snapshots(self, table: TableInfo, settings: Mapping[str, str]) -> list[PastSnapshot]:
        """List the snapshots that the lake still has, the newest first."""
        found = snapshots_of(open_table(table, settings))
        return [PastSnapshot(snapshot_id=each, timestamp_ms=time_ms) for each, time_ms in found]

    def read(
        self,
        table: TableInfo,
        part: LakePart,
        *,
        columns: Sequence[str],
        start: int,
        stop: int,
        settings: Mapping[str, str],
        predicate: Predicate | None = None,
        with_places: bool = True,
        as_views: bool = False,
        dictionaries: Collection[str] = (),
        decoder: FileDecoder | None = None,
        note: Callable[[int], None] | None = None,
    ) -> Iterator[LakeRows]:
        """Read the rows of a part, without deleted rows; see `LakeFormat.read`."""
        opened = open_table(table, settings)
        condition = None
        if predicate is not None:
            condition = bind(predicate, column_types(table.schema))
        reader = PartReader(
            table=opened,
            schema=table.schema,
            columns=tuple(columns),
            condition=condition,
            with_places=with_places,
            as_views=as_views,
            dictionaries=frozenset(dictionaries),
            decoder=decoder,
            note=note,
        )
        try:
            yield from reader.read(part, start, stop)
        except SnapshotNotFoundError as error:
            raise why_missing(table, opened, part.snapshot_id, error) from error
        except OSError as error:
            raise _unreachable(table, opened, error) from None


def _may_have(table: TableInfo, predicate: Predicate | None) -> MayHave | None:
    if predicate is None:
        return None
    condition = bind(predicate, column_types(table.schema))

    def may_have(bounds: Mapping[str, Bounds]) -> bool:
        return may_match(condition, bounds, rows=-1)  # a manifest does not have the number of rows

    return may_have


def _unreachable(table: TableInfo, opened: Table, error: Exception) -> FlussError:
    return unreachable(table, error, secrets_of(opened.io.properties.items()))


ICEBERG: LakeFormat = Iceberg()
