"""Checks batches before they are appended: every reader must be able to read them.

A server of 0.9.1 trusts its writers: wrong schema ids, wrong counts and garbage instead of rows are
stored, and every later reader of the table fails; statistics narrower than the rows hide rows from
filters. Here a batch is decoded as a reader would, before it gets an offset. Nothing is changed and
nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptDataError
from fluss.model.tables.table_options import LogFormat
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.corrupt import corrupt_batch
from fluss.records.framing import find_frames
from fluss.records.log.log_batch import LogBatch, check_change_types, iter_log_batches
from fluss.records.log.log_header import format_of
from fluss.records.log.statistics import BatchStatistics, collect_statistics
from fluss.wire.byte_buffers import Buffer
from fluss_server.log.statistics_filter import covers
from fluss_server.server_errors import request_error
from fluss_server.table_schemas import TableSchemas

# Magic 2 adds a leader epoch, which this server does not set and 0.9.1 cannot read.
MAGICS: Final = (0, 1)
_CHANGE_TYPE_BITS: Final = 0x0F


def checked_batches(records: Sequence[Buffer], schemas: TableSchemas) -> list[LogBatch]:
    """Return the batches of a PRODUCE_LOG request for one bucket.

    Raises:
        CorruptBatchError: The bytes are no batches, or a batch contradicts its header.
        FlussError: The table has no schema with the batch's id.
    """
    data = records[0] if len(records) == 1 else b"".join(records)
    batches = list(iter_log_batches(data, tail="refuse"))
    for batch in batches:
        check_batch(batch, schemas)
    return batches


def check_batch(batch: LogBatch, schemas: TableSchemas) -> None:
    """Refuse a batch that readers of the table could not read.

    Raises:
        CorruptBatchError: It contradicts its header.
            FlussError: The table has no schema with the batch's id.
    """
    header = batch.header
    if header.magic not in MAGICS or header.format is not format_of(header.magic):
        why = f"its magic byte is {header.magic}, servers take {' and '.join(map(str, MAGICS))}"
        raise corrupt_batch("log batch", at=batch.at, why=why)
    if header.schema_id not in schemas.layouts:
        raise request_error(
            ErrorCode.SCHEMA_NOT_EXIST,
            f"The batch has the schema id {header.schema_id}, the table has "
            f"{', '.join(map(str, schemas.layouts))}.",
        )
    claimed = None
    if header.statistics_length:
        claimed = batch.statistics(schemas.layouts[header.schema_id].types)
        if claimed is None:
            why = "its statistics do not fit its schema and its records"
            raise corrupt_batch("log batch", at=batch.at, why=why)
    if not header.record_count:
        if len(batch.data) != header.records_start:
            raise corrupt_batch("log batch", at=batch.at, why="it has bytes but no records")
    elif schemas.log_format is LogFormat.ARROW:
        batch.change_types()
        layout = schemas.layouts[header.schema_id]
        if claimed is None:
            batch.record_batch(layout)
        else:
            _check_claims(batch, claimed, layout)
    else:
        _check_rows(batch)


def _check_claims(batch: LogBatch, claimed: BatchStatistics, layout: BatchLayout) -> None:
    """Refuse statistics that would hide rows from readers with a filter."""
    records = batch.record_batch(replace(layout, user_schema=layout.wire_schema))
    found = collect_statistics(records, layout, claimed.positions)
    if not covers(claimed, found, layout.types):
        why = "its statistics claim less than its rows have"
        raise corrupt_batch("log batch", at=batch.at, why=why)


def _check_rows(batch: LogBatch) -> None:
    """Check the frames and the change types of an INDEXED or COMPACTED batch."""
    header = batch.header
    refused = partial(corrupt_batch, "log record", at=batch.at)
    data = np.frombuffer(batch.data, dtype=np.uint8)
    try:
        records = find_frames(
            data,
            start=header.records_start,
            count=header.record_count,
            record_bytes_min=1,
            what="log record",
            at=batch.at,
        )
    except CorruptDataError as error:
        raise refused(why=error.why) from error
    types = np.bitwise_and(data[records.starts], np.uint8(_CHANGE_TYPE_BITS))
    check_change_types(types, at=batch.at + header.records_start)
