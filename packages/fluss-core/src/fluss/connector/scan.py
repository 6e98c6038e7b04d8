"""`describe`, `splits`, `open_split`: all that an adapter of an engine needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fluss.client.connection import TableCore
from fluss.client.decode import DecodedBatch
from fluss.client.scan import LogScanCore
from fluss.connector.connections import config_of, connection_for
from fluss.connector.split import ScanSplit
from fluss.engine.fetcher import Fetched
from fluss.engine.pins import pin_buckets
from fluss.engine.thread import engine
from fluss.errors import FlussError, TableNotFoundError
from fluss.model.config import Config
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath

Settings = Config | Mapping[str, Any] | None


def describe(table: TablePath | str, *, config: Settings = None) -> pa.Schema:
    """The columns of a table, as Arrow sees them.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    return _log_table(table, config).info.schema.to_arrow()


def splits(
    table: TablePath | str, *, columns: Sequence[str] | None = None, config: Settings = None
) -> list[ScanSplit]:
    """A scan of everything there is now, one split per bucket, its offsets pinned.

    Raises:
        SchemaMismatchError: There is no such column; the hint names the nearest.
    """
    found = _log_table(table, config)
    wanted = None if columns is None else tuple(columns)
    if wanted is not None:
        found.info.schema.column_indexes(wanted)
    return engine().run(_plan(found, wanted))


def open_split(split: ScanSplit, *, config: Settings = None) -> pa.RecordBatchReader:
    """The rows of a split, as a stream that fetches ahead of its reader within bounds.

    Raises:
        TableNotFoundError: The table has been dropped, or created again, since it was split.
    """
    table = _log_table(split.table_path, config)
    if table.info.table_id != split.bucket.table_id:
        raise TableNotFoundError(
            f"Table '{split.table_path}' was dropped and created again since the scan was planned.",
            hint="Plan the scan again.",
            table=str(split.table_path),
        )
    schema = table.info.schema
    places = None if split.columns is None else list(schema.column_indexes(split.columns))
    core = table.log_scan(places)
    return pa.RecordBatchReader.from_batches(
        core.schema, (each.batch for each in _rows(core, split))
    )


async def _plan(table: TableCore, columns: tuple[str, ...] | None) -> list[ScanSplit]:
    cluster, info = table.connection.cluster, table.info
    places: list[tuple[PhysicalTablePath, int | None]] = [
        (PhysicalTablePath(info.table_path), None)
    ]
    if info.is_partitioned():
        partitions = await table.connection.admin.list_partition_infos(info.table_path)
        places = [
            (PhysicalTablePath(info.table_path, each.partition_name), each.partition_id)
            for each in partitions
        ]
    pins = await asyncio.gather(
        *(
            pin_buckets(
                cluster,
                path,
                [
                    TableBucket.with_partition(info.table_id, partition_id, bucket_id)
                    for bucket_id in range(info.num_buckets)
                ],
            )
            for path, partition_id in places
        )
    )
    return [
        ScanSplit(
            table_path=info.table_path,
            bucket=bucket,
            start=pin.start,
            stop=pin.stop,
            columns=columns,
        )
        for pinned in pins
        for bucket, pin in pinned.items()
    ]


def _rows(core: LogScanCore, split: ScanSplit) -> Iterator[DecodedBatch]:
    if split.start >= split.stop:
        return
    bucket = split.bucket
    if bucket.partition_id is None:
        core.subscribe({bucket.bucket_id: split.start})
    else:
        core.subscribe_partitions({(bucket.partition_id, bucket.bucket_id): split.start})
    source = core.read_to_end({bucket: split.stop})
    running = engine()
    try:
        while fetched := running.run(_next(source)):
            for each in fetched:
                yield from core.decoder.decode(each)
    finally:
        running.run(source.aclose())
        running.run(core.close())


async def _next(source: AsyncGenerator[list[Fetched], None]) -> list[Fetched]:
    return await anext(source, [])


def _log_table(table: TablePath | str, config: Settings) -> TableCore:
    path = TablePath.parse(table) if isinstance(table, str) else table
    connection = connection_for(config_of(config))
    found = engine().run(connection.table(path))
    if found.info.has_primary_key():
        raise FlussError(
            f"{path} is a primary-key table; scans of its current state are not built yet.",
            hint="Look rows up by key, or read its changelog with a log scanner.",
            table=str(path),
        )
    return found
