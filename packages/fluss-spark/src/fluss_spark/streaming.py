"""Reading a log as it grows: micro-batches between offsets that Spark keeps in its checkpoint.

The reader lives in one Python process for as long as its query runs. What it hands to Spark as an
offset says for every bucket where the next micro-batch begins, and of which table: a table that
was dropped and created again is another one. Micro-batches are planned from two such offsets
alone, so that one that is run again has the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from fluss.connector import ScanSplit
from fluss.errors import FlussError, InvalidValueError, OffsetOutOfRangeError
from fluss.model.bounds import Cursor
from fluss.model.paths import TableBucket
from fluss_spark.batch import PARTITIONS_LEAST, SplitsPartition, packed
from fluss_spark.options import FlussOptions
from fluss_spark.tables import scan_of, settings_of
from fluss_spark.types import arrow_schema

TABLE_ID: Final = "tableId"
OFFSETS: Final = "offsets"

Ends = dict[TableBucket, int]


class FlussStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A log as Spark's micro-batch engine sees it."""

    def __init__(self, options: FlussOptions, schema: StructType) -> None:
        _check(options)
        self._options = options
        self._schema = arrow_schema(schema)
        self._target: Ends | None = None

    # --- where micro-batches begin and end ------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the query begins, when it has no checkpoint."""
        start = self._options.scan.get("start", "latest")
        table_id, splits, _ = self._plan(start)
        return _offset(table_id, {each.bucket: each.start for each in splits})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a micro-batch takes, where its trigger does not say."""
        if "maxOffsetsPerTrigger" not in self._options.spark:
            return ReadAllAvailable()
        return ReadMaxRows(self._options.number("maxOffsetsPerTrigger", 1))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends; buckets that came since are in it from their begin."""
        table_id, splits, _ = self._plan(_cursor(start))
        begins = {each.bucket: each.start for each in splits}
        ends = {each.bucket: each.stop for each in splits}
        if self._target is not None:
            ends = {
                bucket: min(end, self._target.get(bucket, begins[bucket]))
                for bucket, end in ends.items()
            }
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return _offset(table_id, shared_out(begins, ends, rows_max))

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the log ends now, for progress reports."""
        table_id, splits, _ = self._plan("latest")
        return _offset(table_id, {each.bucket: each.stop for each in splits})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is what this run reads."""
        _, splits, _ = self._plan("latest")
        self._target = {each.bucket: each.stop for each in splits}

    # --- micro-batches --------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of one micro-batch: the same from the same two offsets.

        Raises:
            OffsetOutOfRangeError: The log ends before the micro-batch does: rows were lost.
        """
        _, splits, settings = self._plan(_cursor(start))
        ends = _ends(end)
        cut = []
        for each in splits:
            stop = ends.get(each.bucket, each.start)
            if stop > each.stop:
                raise OffsetOutOfRangeError(
                    f"{self._options.table}: the log of {each.bucket} ends at {each.stop}, and this "
                    f"query has seen it end at {stop}. Rows it counted on are gone.",
                    hint="a server without replicas loses rows when it crashes; begin again with a "
                    "new checkpoint",
                    offset=stop,
                )
            if stop > each.start:
                cut.append(replace(each, stop=stop))
        most = self._options.number("maxPartitions", max(PARTITIONS_LEAST, os.cpu_count() or 1))
        return [SplitsPartition(tuple(each), settings) for each in packed(cut, most)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, on a worker."""
        if not isinstance(partition, SplitsPartition):
            raise TypeError(f"{type(partition).__name__} is no partition of this reader")
        return partition.batches(self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has what lies before; the log is nobody's to clean up."""

    def stop(self) -> None:
        """Nothing is held between calls but the process's shared connection."""

    def _plan(self, start: object) -> tuple[int, list[ScanSplit], dict[str, Any]]:
        """The log from somewhere to its end now, bucket by bucket."""
        scan_options = {**self._options.scan, "start": start}
        if not self._options.flag("failOnDataLoss", default=True):
            scan_options["on_trimmed"] = "earliest"
        options = replace(self._options, scan=scan_options)
        with scan_of(options, columns=self._schema.names) as (session, table, scan):
            splits = scan.splits()
            return table.info.table_id, splits, settings_of(session)


def shared_out(begins: Mapping[TableBucket, int], ends: Ends, rows_max: int | None) -> Ends:
    """Ends such that no more than so many offsets lie before them, shared by what buckets have."""
    waiting = {bucket: max(0, end - begins[bucket]) for bucket, end in ends.items()}
    total = sum(waiting.values())
    if rows_max is None or total <= rows_max:
        return {bucket: begins[bucket] + count for bucket, count in waiting.items()}
    shares = {bucket: count * rows_max // total for bucket, count in waiting.items()}
    left = rows_max - sum(shares.values())
    for bucket in sorted(waiting, key=lambda each: waiting[each] - shares[each], reverse=True):
        if not left:
            break
        taken = min(left, 1, waiting[bucket] - shares[bucket])
        shares[bucket] += taken
        left -= taken
    return {bucket: begins[bucket] + share for bucket, share in shares.items()}


def _check(options: FlussOptions) -> None:
    for name in ("end", "tail", "limit", "as_of", "order"):
        if name in options.scan:
            raise InvalidValueError(
                f"A stream has no {name}: it goes on.",
                hint="spark.read, or trigger(availableNow=True) for what is there now",
                option=name,
            )


def _offset(table_id: int, offsets: Ends) -> dict[str, Any]:
    places = {
        f"{each.bucket_id}"
        if each.partition_id is None
        else f"{each.partition_id}/{each.bucket_id}": offset
        for each, offset in sorted(offsets.items())
    }
    return {TABLE_ID: table_id, OFFSETS: places}


def _ends(offset: Mapping[str, Any]) -> Ends:
    """What a checkpoint says, checked: it may be of another source."""
    try:
        table_id = int(offset[TABLE_ID])
        found = {}
        for place, value in offset[OFFSETS].items():
            partition, _, bucket = place.rpartition("/")
            key = TableBucket(
                table_id=table_id,
                partition_id=int(partition) if partition else None,
                bucket=int(bucket),
            )
            found[key] = int(value)
    except (KeyError, TypeError, ValueError, AttributeError, FlussError) as error:
        raise InvalidValueError(
            f"The checkpoint's offset {str(offset)[:200]} is none of a Fluss table.",
            hint="use another checkpoint location for this query",
        ) from error
    return found


def _cursor(offset: Mapping[str, Any]) -> Cursor:
    return Cursor.of(int(offset.get(TABLE_ID, -1)), _ends(offset))
