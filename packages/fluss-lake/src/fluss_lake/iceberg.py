"""`ICEBERG`: what this package offers to scans, by the entry point `fluss.lakes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluss.errors import FlussError
from fluss.lake.lake_format import LakeContents, LakeFormat, LakePart, LakeRows
from fluss.model.tables.table_info import TableInfo
from fluss_lake.catalogs import open_table, unreachable
from fluss_lake.file_plan import IcebergContents
from fluss_lake.file_reader import PartReader
from fluss_lake.iceberg_parts import entries_of


class Iceberg:
    """Tables of Iceberg; see `LakeFormat`."""

    def open(self, table: TableInfo, snapshot_id: int, settings: Mapping[str, str]) -> LakeContents:
        """Find the files of a snapshot."""
        opened = open_table(table, settings)
        try:
            return IcebergContents(table, snapshot_id, entries_of(opened, snapshot_id))
        except OSError as error:
            raise unreachable(table, error) from error

    def read(
        self,
        table: TableInfo,
        part: LakePart,
        *,
        columns: Sequence[str],
        start: int,
        stop: int,
        settings: Mapping[str, str],
    ) -> Iterator[LakeRows]:
        """Read rows of a part, in the order of their offsets; deleted rows are not given."""
        reader = PartReader(
            table=open_table(table, settings), schema=table.schema, columns=tuple(columns)
        )
        try:
            yield from reader.read(part, start, stop)
        except FlussError:
            raise
        except OSError as error:
            raise unreachable(table, error) from error


ICEBERG: LakeFormat = Iceberg()
