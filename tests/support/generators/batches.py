"""Writes and reads batches of physical rows with `fluss.records`, in one call each.

Writing converts rows to Arrow, encodes the body, adds the header, and stamps it as a leader does;
reading does the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from fluss.model.tables.table_options import ArrowCompression, KvFormat, LogFormat
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.kv.kv_batch import kv_body, write_kv_batch
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_header import stamp_log_batch
from fluss.records.log.log_records import read_log_records
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.row_log import row_log_body
from fluss.rows.buffers.columns import RowBytes
from tests.support.differential.oracle_types import BatchHeader
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.encoded import row_bytes
from tests.support.generators.seeded_values import random_value, row_type

Types = Sequence[DataType]
Row = Sequence[Any]
PLAIN = BodyCodec(ArrowCompression.NONE)


def layout_of(types: Types) -> BatchLayout:
    """The layout of columns called f0, f1 and so on."""
    return BatchLayout.of(row_type(types).field_names, types)


def encoded_rows(kv_format: str, types: Types, rows: Sequence[Row]) -> RowBytes:
    """The rows in a row format, by way of Arrow."""
    layout = layout_of(types)
    return rows_from_batch(batch_of(layout.wire_schema, types, rows), layout, KvFormat(kv_format))


def log_batch_of(
    log_format: str,
    types: Types,
    records: Sequence[tuple[int, Row]],
    header: BatchHeader,
    *,
    codec: BodyCodec = PLAIN,
) -> bytes:
    """A log batch of (change type, row) records as a leader has stamped it."""
    layout = layout_of(types)
    batch = batch_of(layout.wire_schema, types, [row for _, row in records])
    changes = np.array([change for change, _ in records], dtype=np.uint8)
    kinds = None if header.append_only else changes
    if log_format == LogFormat.ARROW:
        body = arrow_log_body(batch, codec, change_types=kinds)
    else:
        body = row_log_body(batch, layout, KvFormat(log_format), change_types=kinds)
    buffers = write_log_batch(
        body,
        schema_id=header.schema_id,
        writer_id=header.writer_id,
        batch_sequence=header.sequence,
    )
    data = bytearray(b"".join(buffers))
    stamp_log_batch(data, base_offset=header.base_offset, commit_timestamp=header.timestamp)
    return bytes(data)


def read_log(
    log_format: str, types: Types, data: bytes, **how: Any
) -> tuple[list[tuple[int, tuple[Any, ...]]], list[LogBatch]]:
    """The (change type, row) of every record, and the batches they came in."""
    batches = list(iter_log_batches(data, tail="refuse", **how))
    records: list[tuple[int, tuple[Any, ...]]] = []
    for batch in batches:
        rows, changes = read_log_records(batch, layout_of(types), LogFormat(log_format))
        kinds = [0] * rows.num_rows if changes is None else changes.tolist()
        records += zip(kinds, rows_of(rows, types), strict=True)
    return records, batches


def kv_batch_of(
    kv_format: str, types: Types, records: Iterable[tuple[bytes, Row | None]], **header: int
) -> bytes:
    """A KV batch of (key, row or None) records."""
    records = list(records)
    rows = [_something(types) if row is None else row for _, row in records]
    deletes = np.array([row is None for _, row in records], dtype=np.bool_)
    keys = row_bytes([key for key, _ in records])
    body = kv_body(keys, encoded_rows(kv_format, types, rows), deletes=deletes)
    return b"".join(write_kv_batch(body, **{"schema_id": 1, **header}))


def _something(types: Types) -> tuple[Any, ...]:
    """Return a placeholder for a deleted row, which must not be written."""
    rng = Random(0)
    return tuple(random_value(rng, each, null_rate=0) for each in types)
