"""Projects stored batches to the columns of a reader: metadata is rewritten, bytes are not copied.

`fluss.records.arrow.projection` projects one batch. This file has the server's rules: every batch
is projected by its own schema, and a column that is younger than a batch becomes NULL in a batch
that then names the newest schema, because readers decode batches by their schema ids (Fluss 0.9.1
fails the whole fetch with error 34).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fluss.error_codes import ErrorCode
from fluss.errors import SchemaMismatchError
from fluss.model.tables.table_options import LogFormat
from fluss.records.arrow.projection import project_log_batch
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.wire.byte_buffers import Buffer
from fluss_server.server_errors import request_error, with_code
from fluss_server.table_schemas import TableSchemas


def check_projectable(schemas: TableSchemas) -> None:
    """Refuse a projection of a log that is not in the ARROW format.

    Raises:
        FlussError: The log has another format; the code is 34, as in Fluss.
    """
    if schemas.log_format is not LogFormat.ARROW:
        raise request_error(
            ErrorCode.INVALID_COLUMN_PROJECTION,
            f"The log is written as {schemas.log_format}; only ARROW can be projected.",
        )


def check_projection(positions: Sequence[int], schemas: TableSchemas) -> tuple[int, ...]:
    """Return the positions, if they are a valid projection.

    Raises:
        FlussError: They are not; the code is 34, as in Fluss.
    """
    requested = tuple(positions)
    try:
        schemas.projection(schemas.newest_id, requested)
    except SchemaMismatchError as error:
        raise with_code(error, ErrorCode.INVALID_COLUMN_PROJECTION) from error
    return requested


def project_batches(data: bytes, positions: tuple[int, ...], schemas: TableSchemas) -> list[Buffer]:
    """Project all batches in these bytes; return the buffers to send."""
    written: list[Buffer] = []
    for batch in iter_log_batches(data, verify_crc=False):
        written += project_batch(batch, positions, schemas)
    return written


def project_batch(
    batch: LogBatch, positions: tuple[int, ...], schemas: TableSchemas
) -> list[Buffer]:
    """Project one batch."""
    header = batch.header
    projection = schemas.projection(header.schema_id, positions)
    if len(projection.missing):
        batch = replace(batch, header=replace(header, schema_id=schemas.newest_id))
    return [memoryview(each) for each in project_log_batch(batch, projection)]
