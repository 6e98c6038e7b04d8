"""Recovery of a store: applies the acknowledged changes that only the changelog has.

The changelog has whole rows in the schema that was the latest then. So recovered rows may differ
in bytes from those that writers sent, never in values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np

from fluss.error_codes import ErrorCode
from fluss.model.change_type import ChangeType
from fluss.model.tables.table_options import TableOptions
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.log.log_batch import LogBatch
from fluss.records.log.log_records import read_log_records
from fluss.rows.buffers.columns import RowBytes
from fluss_server.kv.key_codec import KeyCodec
from fluss_server.kv.kv_store import KvStore, StoreState
from fluss_server.kv.row_ttl import RowTtl
from fluss_server.kv.stored_row_codec import StoredRowCodec, schema_prefix
from fluss_server.server_errors import request_error

_WRITE_ROWS = 100_000


class ReplayedLog(Protocol):
    """The part of a log that the replay uses."""

    @property
    def start_offset(self) -> int:
        """The first offset that is kept."""

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""

    def iter_batches(self, start_offset: int) -> Iterator[LogBatch]:
        """Iterate over whole batches from an offset on."""


def replay(
    store: KvStore,
    log: ReplayedLog,
    rows: StoredRowCodec,
    keys: KeyCodec,
    options: TableOptions,
    ttl: RowTtl | None = None,
) -> None:
    """Apply to the store every change it does not have.

    Raises:
        FlussError: The changelog begins after the changes of the store, or ends before them.
    """
    applied = store.state.applied_offset
    if applied < log.start_offset or applied > log.end_offset:
        raise request_error(
            ErrorCode.KV_STORAGE_EXCEPTION,
            f"The rows in {store.folder} have the changes below offset {applied}, "
            f"and the changelog those from {log.start_offset} to {log.end_offset}.",
            hint="restore the folder of the log, or that of the rows, from a backup",
            path=str(store.folder),
        )
    changes: dict[bytes, bytes | None] = {}
    row_count = store.state.row_count
    for batch in log.iter_batches(applied):
        if batch.record_count:
            added, changed = _changes(batch, rows, keys, options)
            if ttl is not None:
                changed = ttl.tagged(changed, commit_ms=batch.header.commit_timestamp)
            changes.update(changed)
            row_count += added
        applied = batch.next_offset
        if len(changes) >= _WRITE_ROWS:
            store.write(changes, StoreState(applied_offset=applied, row_count=row_count))
            changes = {}
    if applied != store.state.applied_offset:
        store.write(changes, StoreState(applied_offset=applied, row_count=row_count))
        store.sync()


def _changes(
    batch: LogBatch, rows: StoredRowCodec, keys: KeyCodec, options: TableOptions
) -> tuple[int, dict[bytes, bytes | None]]:
    schema_id = batch.header.schema_id
    layout = rows.layouts[schema_id]
    records, change_types = read_log_records(batch, layout, options.log_format)
    if change_types is None:
        raise request_error(
            ErrorCode.KV_STORAGE_EXCEPTION,
            f"The changelog's batch at offset {batch.base_offset} has no change types.",
        )
    final = change_types != int(ChangeType.UpdateBefore)
    if not final.all():
        records = records.take(np.flatnonzero(final))
        change_types = change_types[final]
    encoded = rows_from_batch(records, layout, rows.kv_format)
    prefix = schema_prefix(schema_id)
    key_list = _slices(keys.of_batch(records))
    values = [prefix + each for each in _slices(encoded)]
    deletes = change_types == int(ChangeType.Delete)
    changed: dict[bytes, bytes | None] = {
        key: None if is_delete else value
        for key, value, is_delete in zip(key_list, values, deletes.tolist(), strict=True)
    }
    added = int((change_types == int(ChangeType.Insert)).sum()) - int(deletes.sum())
    return added, changed


def _slices(rows: RowBytes) -> list[bytes]:
    data, offsets = rows.data.tobytes(), rows.offsets.tolist()
    return [data[start:end] for start, end in pairwise(offsets)]
