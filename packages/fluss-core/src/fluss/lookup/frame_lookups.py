"""Rows of a primary-key table by frames of keys: one row per key, in the order given.

Each key is answered with its row at the moment of the read; there is no common moment for all.
`lookup.key_frames` says what a key is; `lookup.bulk_lookup` sends the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fluss.connection.arguments import positions_by_name
from fluss.connection.connection import TableHandle
from fluss.errors import InvalidValueError, LimitExceededError
from fluss.lookup.bulk_lookup import Answered, LookupPipeline
from fluss.lookup.bulk_requests import BulkLookups, Values
from fluss.lookup.key_frames import KeyFrames, PlacedKeys
from fluss.lookup.key_placement import prefix_placer
from fluss.lookup.lookup_cores import check_lookups
from fluss.lookup.stored_rows import ValueDecoder
from fluss.model.paths import PhysicalTablePath
from fluss.net.cancellation import Cancellation
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.kv.value_batch import frames_of_ranges
from fluss.rows.buffers.columns import Int64Array

FOUND = "_found"


def lookup_frame(
    table: TableHandle,
    keys: Any,
    *,
    columns: Sequence[str] | None = None,
    insert_if_not_exists: bool = False,
    cancellation: Cancellation | None = None,
) -> pa.Table:
    """Look up one row per key.

    Blocks the calling thread, which must not be the engine's.

    Args:
        table: The table; it has a primary key.
        keys: Anything tabular with the primary key's columns, others are left out; a list of
            tuples in key order; for a key of one column also a list or an array of values.
        columns: The columns of the result, in this order; None for all.
        insert_if_not_exists: Whether the servers insert missing keys, with nothing but the key
            (and the value of an auto-increment column), and answer with these rows.
        cancellation: Ends the lookup from another thread.

    Returns:
        One row per key, in the order given, and the last column `_found`: where it is false, the
        columns of the key are as given and the others NULL.

    Raises:
        FlussError: The table has no primary key, or a server did not answer in time.
        SchemaMismatchError: A key column is missing, or of a type that cannot be cast.
        InvalidValueError: A key is NULL or does not fit its column.
    """
    names = table.info.primary_keys
    lookup = _FrameLookup(table, names, columns, cancellation, is_inserting=insert_if_not_exists)
    return lookup.look_up(keys)


def prefix_lookup_frame(
    table: TableHandle,
    prefixes: Any,
    *,
    columns: Sequence[str] | None = None,
    cancellation: Cancellation | None = None,
) -> pa.Table:
    """Look up all rows whose keys begin with the bucket key; see `lookup_frame`.

    Args:
        table: The table; its bucket key is a shorter beginning of its primary key.
        prefixes: Anything tabular with the partition columns and the bucket key.
        columns: The columns of the result; None for all.
        cancellation: Ends the lookup from another thread.

    Returns:
        The rows of each prefix, in the order of the prefixes and then of the keys' bytes. A
        prefix without rows gives one row, where `_found` is false.

    Raises:
        InvalidSchemaError: The table has no prefix lookups.
    """
    names = (*table.info.partition_keys, *table.info.bucket_keys)
    check_lookups(table.info)
    prefix_placer(table.info, names)  # refuses a table without prefix lookups
    return _FrameLookup(table, names, columns, cancellation, is_prefix=True).look_up(prefixes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """The rows of the ordered keys from `start` on, and how many each key has."""

    start: int
    counts: Int64Array
    rows: pa.RecordBatch | None


class _FrameLookup:
    """One lookup of a frame."""

    def __init__(
        self,
        table: TableHandle,
        names: Sequence[str],
        columns: Sequence[str] | None,
        cancellation: Cancellation | None,
        *,
        is_prefix: bool = False,
        is_inserting: bool = False,
    ) -> None:
        check_lookups(table.info)
        connection = table.connection
        self._table = table
        bulk = BulkLookups(
            connection.cluster, table.info, is_prefix=is_prefix, is_inserting=is_inserting
        )

        def find_partitions(paths: Sequence[PhysicalTablePath]) -> None:
            if any(bulk.is_new(each) for each in paths):
                connection.engine.run(bulk.find_partitions(paths), cancellation=cancellation)

        self._frames = frames = KeyFrames(
            table.info,
            names,
            is_prefix=is_prefix,
            find_partitions=find_partitions,
            bucket_count=bulk.bucket_count,
        )
        self._pipeline = LookupPipeline(connection.engine, bulk, cancellation)
        whole = BatchLayout.of_schema(table.info.schema)
        positions = range(len(whole)) if columns is None else positions_by_name(table.info, columns)
        output = whole.project(positions)
        self._output = output
        # The columns of the key are known without decoding them.
        further = [each for each in positions if whole.names[each] not in frames.types]
        self._values = ValueDecoder(table, whole.project(further))
        if FOUND in output.names:
            raise InvalidValueError(
                f"{table.info.table_path} has a column {FOUND!r} of its own, and the "
                "result has one of this name.",
                hint="Name the columns of the result, without it.",
                column=FOUND,
            )
        # Rows that were not found are NULL, even in NOT NULL columns; the keys given are not.
        fields = [each.with_nullable(each.name not in frames.types) for each in output.user_schema]
        self.schema = pa.schema([*fields, pa.field(FOUND, pa.bool_(), nullable=False)])

    def look_up(self, keys: Any) -> pa.Table:
        """Look up all keys and lay out the rows in their order."""
        batches = [self._round(each) for each in self._frames.rounds(keys)]
        return pa.Table.from_batches(batches, schema=self.schema)

    def _round(self, keys: PlacedKeys) -> pa.RecordBatch:
        parts = sorted(map(self._part, self._pipeline.look_up(keys)), key=lambda each: each.start)
        in_order = np.concatenate([each.counts for each in parts])
        counts = np.empty(len(keys), dtype=np.int64)
        firsts = np.empty(len(keys), dtype=np.int64)
        counts[keys.order] = in_order
        firsts[keys.order] = np.cumsum(in_order) - in_order
        # A key without rows still gives one row, with `_found` false.
        lines = np.maximum(counts, 1)
        key_of_line = np.repeat(np.arange(len(keys)), lines)
        within = np.arange(len(key_of_line)) - np.repeat(np.cumsum(lines) - lines, lines)
        found = counts[key_of_line] > 0
        rows = from_numpy(firsts[key_of_line] + within, valid=found)
        return self._laid_out(keys, from_numpy(key_of_line), found, self._taken(parts, rows))

    def _taken(self, parts: Iterable[_Part], rows: pa.Array) -> pa.RecordBatch:
        schema = self._values.schema
        nullable = pa.schema([each.with_nullable(True) for each in schema])
        batches = [each.rows.cast(nullable) for each in parts if each.rows is not None]
        if not batches:
            arrays = [pa.nulls(len(rows), each.type) for each in schema]
            return pa.RecordBatch.from_arrays(arrays, schema=nullable)
        try:
            return pa.concat_batches(batches).take(rows)
        except pa.ArrowInvalid as error:  # Arrow counts the bytes of a text column with 32 bits
            raise LimitExceededError(
                f"The rows of {len(rows)} keys of {self._table.info.table_path} hold more than "
                "2 GiB in one column.",
                hint="Look up fewer keys at a time, or without that column.",
            ) from error

    def _laid_out(
        self, keys: PlacedKeys, key_of_line: pa.Array, found: Any, rows: pa.RecordBatch
    ) -> pa.RecordBatch:
        arrays = []
        for name, field in zip(self._output.names, self._output.user_schema, strict=True):
            if name in self._frames.types:
                key = keys.batch.column(self._frames.layout.names.index(name))
                arrays.append(key.take(key_of_line).cast(field.type))
            else:
                arrays.append(rows.column(name))
        return pa.RecordBatch.from_arrays([*arrays, from_numpy(found)], schema=self.schema)

    # --- decoding -----------------------------------------------------------------------------

    def _part(self, answered: Answered) -> _Part:
        values = answered.values
        return _Part(start=answered.start, counts=values.counts, rows=self._decode(values))

    def _decode(self, values: Values) -> pa.RecordBatch | None:
        if not len(values.starts) or not len(self._values.schema):
            return None
        return self._values.decode(frames_of_ranges(values.data, values.starts, values.ends))
