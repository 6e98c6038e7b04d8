"""Some columns of stored batches, on their way to a reader: metadata rewritten, bytes left alone.

The work on one batch is `fluss.records.arrow.projection`. What is decided here is the server's
part: every batch is cut by its own schema, and a column that is younger than a batch comes as NULL
in a batch that then names the newest schema, because readers lay batches out by their schema ids
(Fluss 0.9.1 fails the whole fetch with error 34).
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
from fluss_server.schemas import TableSchemas
from fluss_server.server_errors import refuse, with_code


def check_projectable(schemas: TableSchemas) -> None:
    """Refuse columns of a log that is not laid out in columns.

    Raises:
        FlussError: With code 34, as Fluss answers it.
    """
    if schemas.log_format is not LogFormat.ARROW:
        raise refuse(
            ErrorCode.INVALID_COLUMN_PROJECTION,
            f"The log is written as {schemas.log_format}; columns can be cut out of ARROW only.",
        )


def check_projection(positions: Sequence[int], schemas: TableSchemas) -> tuple[int, ...]:
    """The positions, where a reader can ask for them.

    Raises:
        FlussError: With code 34, as Fluss answers it.
    """
    asked = tuple(positions)
    try:
        schemas.projection(schemas.newest_id, asked)
    except SchemaMismatchError as error:
        raise with_code(error, ErrorCode.INVALID_COLUMN_PROJECTION) from error
    return asked


def project_batches(data: bytes, positions: tuple[int, ...], schemas: TableSchemas) -> list[Buffer]:
    """The batches in these bytes with some of their columns, as buffers to send back to back."""
    written: list[Buffer] = []
    for batch in iter_log_batches(data, verify_crc=False):
        written += project_batch(batch, positions, schemas)
    return written


def project_batch(
    batch: LogBatch, positions: tuple[int, ...], schemas: TableSchemas
) -> list[Buffer]:
    """One batch with some of its columns."""
    header = batch.header
    projection = schemas.projection(header.schema_id, positions)
    if len(projection.missing):
        batch = replace(batch, header=replace(header, schema_id=schemas.newest_id))
    return [memoryview(each) for each in project_log_batch(batch, projection)]
