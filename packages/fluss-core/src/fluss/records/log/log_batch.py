"""Finds and checks log record batches in received bytes, and decodes them on request.

Walking over a buffer reads headers (and, on request, checksums) and nothing else; a
batch is a header and a slice of the buffer. `LogBatch.record_batch` and its kin decode. Header
fields are laid out in `records.log.log_header`, bodies in `records.arrow.arrow_body` and
`records.log.row_log`, writing is `records.log.log_writer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from fluss.model.types.data_type import DataType
from fluss.records.arrow.arrow_body import BODY_BYTES_MAX, read_arrow_body
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.numpy_arrays import empty_batch
from fluss.records.arrow.received_bytes import ByteSource, to_buffer, to_view
from fluss.records.corrupt import corrupt_batch
from fluss.records.log.log_header import (
    LENGTH_END,
    LogBatchHeader,
    Magic1,
    read_length,
    read_log_header,
)
from fluss.records.log.statistics import BatchStatistics, read_statistics
from fluss.rows.buffers.columns import ByteArray

# What to do with less than a whole batch at the end of the bytes: a fetch cuts by bytes, so it is
# dropped there and comes again with the next fetch; a segment file has no such end.
Tail = Literal["drop", "refuse"]

CHANGE_TYPE_MAX: Final = 4  # +A 0, +I 1, -U 2, +U 3, -D 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """One batch: its header, and the bytes from the header's first to the body's last.

    Args:
        header: The header's fields.
        data: The whole batch; it keeps the buffer it was received in alive.
        at: Where the batch begins in that buffer, for error messages.
    """

    header: LogBatchHeader
    data: pa.Buffer
    at: int = 0

    @property
    def base_offset(self) -> int:
        """The offset of the first record."""
        return self.header.base_offset

    @property
    def next_offset(self) -> int:
        """One past the last offset."""
        return self.header.next_offset

    @property
    def record_count(self) -> int:
        """How many records there are; none in the batch of a write that changed nothing."""
        return self.header.record_count

    @property
    def arrow_body(self) -> pa.Buffer:
        """The bytes after header, statistics and change types: one Arrow message."""
        return self.data.slice(self.arrow_body_start)

    @property
    def arrow_body_start(self) -> int:
        """Where that message begins in `data`."""
        header = self.header
        return header.records_start + (0 if header.is_append_only else header.record_count)

    def change_types(self) -> ByteArray | None:
        """One change type per record of an Arrow batch, None where all are appends.

        Raises:
            CorruptBatchError: One is none of +A, +I, -U, +U and -D.
        """
        header = self.header
        if header.is_append_only:
            return None
        start = header.records_start
        types = np.frombuffer(self.data, dtype=np.uint8)[start : start + header.record_count]
        check_change_types(types, at=self.at + start)
        return types

    def record_batch(
        self, layout: BatchLayout, *, body_bytes_max: int = BODY_BYTES_MAX
    ) -> pa.RecordBatch:
        """Decode the body of an Arrow batch into `layout.user_schema`.

        Args:
            layout: The columns of the batch: those of its schema id, projected as it was fetched.
            body_bytes_max: What the uncompressed columns may take.

        Raises:
            CorruptBatchError: The body does not match the layout and the header.
        """
        if not self.header.record_count:
            return empty_batch(layout.user_schema)
        return read_arrow_body(
            self.arrow_body,
            layout,
            row_count=self.header.record_count,
            at=self.at + self.arrow_body_start,
            body_bytes_max=body_bytes_max,
        )

    def statistics(self, types: tuple[DataType, ...]) -> BatchStatistics | None:
        """Return the column statistics; None without valid ones.

        Args:
            types: The column types of the batch's schema.
        """
        header = self.header
        if not header.statistics_length:
            return None
        block = to_view(self.data)[header.format.size : header.records_start]
        return read_statistics(block, types, record_count=header.record_count)

    def verify_crc(self) -> None:
        """Compute the checksum.

        Never of a projected batch: the server leaves the checksum of the stored batch there.

        Raises:
            CorruptBatchError: It is not the one in the header.
        """
        header = self.header
        computed = crc32c(to_view(self.data)[header.format.checked_from :])
        if computed != header.crc:
            why = f"its checksum is {computed:08x} where the header has {header.crc:08x}"
            raise corrupt_batch("log batch", at=self.at, why=why)


def iter_log_batches(
    data: ByteSource,
    *,
    start: int = 0,
    magic_1: Magic1 = "statistics",
    verify_crc: bool = True,
    tail: Tail = "drop",
) -> Iterator[LogBatch]:
    """Walk over the batches that stand back to back in a buffer.

    Args:
        data: The bytes; the batches are slices of them and keep them alive.
        start: Where the first batch begins.
        magic_1: What a magic byte of 1 means: "statistics" to the 1.0 line, "leader_epoch" to 0.9.1
        verify_crc: Whether to compute checksums; not for a projected fetch.
        tail: What to do with less than a whole batch at the end.

    Raises:
        CorruptBatchError: A batch contradicts itself. Those before it have been handed out.
    """
    headers = iter_log_headers(data, start=start, magic_1=magic_1, tail=tail)
    yield from log_batches_at(headers, data, verify_crc=verify_crc)


def log_batches_at(
    headers: Iterable[tuple[int, LogBatchHeader]], data: ByteSource, *, verify_crc: bool = True
) -> Iterator[LogBatch]:
    """The batches of a buffer whose headers have been read; see `iter_log_batches`.

    Args:
        headers: The headers, checked, with the positions of their batches.
        data: The bytes.
        verify_crc: Whether to compute checksums.
    """
    buffer = to_buffer(data)
    for at, header in headers:
        batch = LogBatch(header=header, data=buffer.slice(at, header.size_bytes), at=at)
        if verify_crc:
            batch.verify_crc()
        yield batch


def iter_log_headers(
    data: ByteSource, *, start: int = 0, magic_1: Magic1 = "statistics", tail: Tail = "drop"
) -> Iterator[tuple[int, LogBatchHeader]]:
    """Walk over the headers alone, with the positions of their batches; see `iter_log_batches`."""
    view = to_view(data)
    for at, size in iter_log_places(view, start=start, tail=tail):
        header = read_log_header(view[: at + size], at, magic_1=magic_1)
        check_log_header(header, at=at)
        yield at, header


def iter_log_places(
    data: ByteSource, *, start: int = 0, tail: Tail = "drop"
) -> Iterator[tuple[int, int]]:
    """Yield the position and the size of each batch, by their lengths alone."""
    view = to_view(data)
    at, end = start, len(view)
    while at < end:
        size = _size_of_batch(view, at)
        if size > end - at:
            if tail == "drop":
                return
            raise corrupt_batch("log batch", at=at, why=f"it ends after {end - at} of its bytes")
        yield at, size
        at += size


def _size_of_batch(view: memoryview, at: int) -> int:
    """Return the size that the batch claims; one beyond the data where it cannot be read."""
    if len(view) - at < LENGTH_END:
        return LENGTH_END
    length = read_length(view, at)
    if length < 0:
        raise corrupt_batch("log batch", at=at, why=f"its length is {length}")
    return LENGTH_END + length


def check_log_header(header: LogBatchHeader, *, at: int = 0) -> None:
    """Compare the counts and lengths of a header with each other.

    Raises:
        CorruptBatchError: They contradict each other.
    """
    why = None
    count = header.record_count
    records_bytes = header.size_bytes - header.records_start
    if header.base_offset < 0 or header.schema_id < 0:
        why = f"its base offset is {header.base_offset} and its schema id {header.schema_id}"
    elif count < 0 or header.last_offset_delta != max(count - 1, 0):
        why = f"it has {count} records and a last offset delta of {header.last_offset_delta}"
    elif header.statistics_length < 0 or records_bytes < 0:
        why = f"{header.statistics_length} bytes of statistics do not fit its {header.length} bytes"
    elif records_bytes < (0 if header.is_append_only else count):
        why = f"{count} change types do not fit the {records_bytes} bytes after its header"
    if why is not None:
        raise corrupt_batch("log batch", at=at, why=why)


def check_change_types(change_types: ByteArray, *, at: int) -> None:
    """Refuse unknown change types.

    Raises:
        CorruptBatchError: There is one.
    """
    if len(change_types) and change_types.max() > CHANGE_TYPE_MAX:
        row = int(np.argmax(change_types > CHANGE_TYPE_MAX))
        why = f"record {row} has the change type {change_types[row]}"
        raise corrupt_batch("change types", at=at, why=why)
