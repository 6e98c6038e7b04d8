"""Reads a log through a filter: skips batches that cannot have matching rows.

Header and statistics decide about a batch; skipped batches are not read. One request examines a
limited number of batches and of segments, so that a filter which skips everything does not block
the server; the response then tells the reader where to continue. Batches without statistics of the
filter's columns are always kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fluss.records.log.log_header import MAGIC_AT, format_of, read_log_header
from fluss.records.log.statistics import read_statistics
from fluss.wire import messages as pb
from fluss_server.log.bucket_log import BucketLog
from fluss_server.log.segment_file import BatchLocation, Segment
from fluss_server.log.statistics_filter import BatchTest, batch_test
from fluss_server.table_schemas import TableSchemas

BATCHES_LOOKED_AT_MAX: Final = 2_000
# Batches from before this process are read and checked as a whole when they are first examined.
CHECKED_BYTES_MAX: Final = 64 << 20
SEGMENTS_LEFT_OUT_MAX: Final = 16
_HEAD_BYTES: Final = format_of(1).size


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The result of a filtered read.

    Args:
        data: The kept batches.
        filtered_end_offset: Where the reader continues; None where no batch after `data` was
        skipped.
    """

    data: bytes
    filtered_end_offset: int | None


@dataclass(slots=True)
class _Found:
    """The batches kept so far, as ranges of positions in one segment."""

    stretches: list[list[int]] = field(default_factory=list)
    size: int = 0
    skipped_to: int | None = None
    is_full: bool = False

    def keep(self, location: BatchLocation) -> None:
        if self.stretches and self.stretches[-1][1] == location.position:
            self.stretches[-1][1] = location.end
        else:
            self.stretches.append([location.position, location.end])
        self.size += location.size
        self.skipped_to = None

    def leave_out(self, location: BatchLocation) -> None:
        self.skipped_to = location.next_offset


class BatchFilter:
    """A reader's filter, prepared for the batches of each schema.

    Args:
        predicate: The filter.
        schemas: The table's schemas.
    """

    def __init__(self, predicate: pb.PbPredicate, schemas: TableSchemas) -> None:
        self._predicate = predicate
        self._schemas = schemas
        self._tests: dict[int, BatchTest] = {}

    def keeps(self, segment: Segment, location: BatchLocation) -> bool:
        """Return whether a batch may have matching rows."""
        head = memoryview(
            segment.read(location.position, min(location.end, location.position + _HEAD_BYTES))
        )
        if len(head) < _HEAD_BYTES or head[MAGIC_AT] != 1:
            return True
        header = read_log_header(head)
        layout = self._schemas.layouts.get(header.schema_id)
        if not header.statistics_length or layout is None:
            return True
        block = segment.read(
            location.position + header.format.size, location.position + header.records_start
        )
        known = read_statistics(memoryview(block), layout.types, record_count=header.record_count)
        return known is None or self._test_for(header.schema_id)(known, header.record_count)

    def _test_for(self, schema_id: int) -> BatchTest:
        found = self._tests.get(schema_id)
        if found is None:
            found = batch_test(self._predicate, self._schemas.schemas[schema_id])
            self._tests[schema_id] = found
        return found


def read_filtered(
    log: BucketLog, offset: int, bytes_max: int, batches: BatchFilter, *, at_least_one: bool
) -> Filtered:
    """Read published batches from an offset on, of the first segment with a batch to keep.

    Args:
        log: The log.
        offset: Between the start offset and the high watermark.
        bytes_max: How many bytes to return at most.
        batches: Decides which batches are kept.
        at_least_one: Whether to return a first batch that is larger than that.

    Raises:
        OffsetOutOfRangeError: The offset is not kept any more, or not published yet.
    """
    found = _Found()
    left, checked = BATCHES_LOOKED_AT_MAX, 0
    for count, (segment, start, end) in enumerate(log.visible_from(offset)):
        if count >= SEGMENTS_LEFT_OUT_MAX:
            break
        checked_before = checked - segment.checked_bytes
        for location in segment.walk(start, end=end):
            checked = checked_before + segment.checked_bytes
            if left <= 0 or checked > CHECKED_BYTES_MAX:
                found.is_full = True
                break
            left -= 1
            if not batches.keeps(segment, location):
                found.leave_out(location)
                continue
            if found.size + location.size > bytes_max and (found.size or not at_least_one):
                found.is_full = True
                break
            found.keep(location)
        if found.stretches or found.is_full:
            data = b"".join(segment.read(*each) for each in found.stretches)
            return Filtered(data=data, filtered_end_offset=found.skipped_to)
    return Filtered(data=b"", filtered_end_offset=found.skipped_to)
