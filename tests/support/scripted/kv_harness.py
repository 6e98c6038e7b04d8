"""A primary-key bucket without a server: a log in memory, batches made of Python rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fluss.model.change_type import ChangeType
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.string_map import StringMap
from fluss.model.tables.table_info import TableInfo
from fluss.records.kv.kv_batch import kv_body, write_kv_batch
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_header import stamp_log_batch
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.formats.compacted_row import CompactedRowWriter
from fluss_server.kv.kv_tablet import KvTablet
from fluss_server.kv.stored_row_codec import StoredRowCodec
from fluss_server.put_request import KvTable, PutOptions

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Written:
    base_offset: int
    next_offset: int
    commit_timestamp: int


class Writers:
    """Remembers every batch of every writer; a server remembers only the last five."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], Written] = {}

    def find_duplicate(self, writer_id: int, sequence: int) -> Written | None:
        return self.known.get((writer_id, sequence)) if writer_id >= 0 else None


class MemoryLog:
    """The part of a bucket's log that the tablet uses."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.start_offset = 0
        self.end_offset = 0
        self.writers = Writers()
        self.fails = False

    def append_changes(self, batch: Sequence[Any], *, now_ms: int) -> Written:
        if self.fails:
            raise OSError("no space left")
        whole = bytearray(b"".join(bytes(each) for each in batch))
        stamp_log_batch(whole, base_offset=self.end_offset, commit_timestamp=now_ms)
        (read,) = iter_log_batches(whole)
        written = Written(self.end_offset, read.next_offset, now_ms)
        self.writers.known[(read.header.writer_id, read.header.batch_sequence)] = written
        self.data += whole
        self.end_offset = read.next_offset
        return written

    def iter_batches(self, start_offset: int) -> Iterator[LogBatch]:
        for batch in iter_log_batches(bytes(self.data)):
            if batch.next_offset > start_offset:
                yield batch


class KvHarness:
    """One table of one bucket."""

    def __init__(
        self, folder: Path, schema: Schema, properties: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.schemas = {0: schema}
        self.properties = dict(properties or {})
        self.log = MemoryLog()
        self.last_number = 0
        self.tablet = self.open()

    @property
    def table(self) -> KvTable:
        newest = max(self.schemas)
        schema = self.schemas[newest]
        info = TableInfo(
            table_path=TablePath("db", "t"),
            table_id=1,
            schema_id=newest,
            schema=schema,
            bucket_keys=schema.primary_keys,
            partition_keys=(),
            num_buckets=1,
            properties=StringMap(self.properties),
            custom_properties=StringMap({}),
        )
        return KvTable(info=info, schemas=dict(self.schemas))

    def open(self) -> KvTablet:
        self.tablet = KvTablet.open(
            directory=self.folder, log=self.log, table=self.table, take_range=self.take_range
        )
        return self.tablet

    def take_range(self, count: int) -> int:
        last = self.last_number
        self.last_number += count
        return last

    def add_schema(self, schema: Schema) -> None:
        self.schemas[max(self.schemas) + 1] = schema
        self.tablet.change_table(self.table)

    def key(self, row: Sequence[Any], schema: Schema) -> bytes:
        places = [schema.column_names.index(each) for each in schema.primary_keys]
        types = [schema.columns[each].data_type for each in places]
        return CompactedRowWriter(types, is_key=True).write([row[each] for each in places])

    def batch(
        self,
        upserts_and_deletes: Sequence[tuple[str, Row]],
        *,
        schema_id: int | None = None,
        writer_id: int = -1,
        sequence: int = -1,
    ) -> bytes:
        """Return a KV batch of `("+", row)` and `("-", row)`; a deleted row needs only its key."""
        schema_id = max(self.schemas) if schema_id is None else schema_id
        schema = self.schemas[schema_id]
        writer = CompactedRowWriter(schema.column_types)
        keys = [self.key(row, schema) for _, row in upserts_and_deletes]
        rows = [writer.write(row) if sign == "+" else b"" for sign, row in upserts_and_deletes]
        deletes = np.array([sign == "-" for sign, _ in upserts_and_deletes])
        body = kv_body(_row_bytes(keys), _row_bytes(rows), deletes=deletes)
        made = write_kv_batch(
            body, schema_id=schema_id, writer_id=writer_id, batch_sequence=sequence
        )
        return b"".join(bytes(each) for each in made)

    def put(
        self,
        *records: tuple[str, Row],
        target: Sequence[int] = (),
        mode: int = 0,
        schema_id: int | None = None,
        writer_id: int = -1,
        sequence: int = -1,
    ) -> list[tuple[str, Row]]:
        """Apply a batch, and return its changes in the changelog."""
        before = self.log.end_offset
        data = self.batch(records, schema_id=schema_id, writer_id=writer_id, sequence=sequence)
        order = PutOptions(target_columns=tuple(target), agg_mode=mode)
        self.tablet.put(memoryview(data), order, now_ms=1_000)
        return self.changes(before)

    def changes(self, start: int = 0) -> list[tuple[str, Row]]:
        rows = StoredRowCodec(self.schemas, self.table.info.options.kv_format)
        found: list[tuple[str, Row]] = []
        for logged in self.log.iter_batches(start):
            if not logged.record_count:
                continue
            batch = logged.record_batch(rows.layouts[logged.header.schema_id])
            kinds = logged.change_types()
            assert kinds is not None
            columns = [column.to_pylist() for column in batch.columns]
            values = zip(*columns, strict=True)
            found += [
                (ChangeType(kind).short_string(), row)
                for kind, row in zip(kinds.tolist(), values, strict=True)
            ]
        return found

    def state(self) -> list[Row]:
        """Return all rows in key order, as tuples of the newest schema."""
        rows = StoredRowCodec(self.schemas, self.table.info.options.kv_format)
        return [tuple(rows.read(each)) for each in self.tablet.prefix_lookup([b""])[0]]


def _row_bytes(parts: Sequence[bytes]) -> RowBytes:
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in parts], out=offsets[1:])
    return RowBytes(data=np.frombuffer(b"".join(parts), dtype=np.uint8), offsets=offsets)
