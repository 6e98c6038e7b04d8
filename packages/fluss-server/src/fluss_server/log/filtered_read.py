"""Reading a log through a filter: the batches that may have wanted rows, and where they end.

Batches are looked at by header and statistics alone; what is left out is not read. One request
looks at a limited number of batches and of segments, so that a filter which leaves out everything
holds nobody up; the reader is then told from where to go on. Batches without statistics, or with
statistics that say nothing of the filter's columns, are always kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fluss.records.log.log_header import MAGIC_AT, format_of, read_log_header
from fluss.records.log.statistics import read_statistics
from fluss.wire import messages as pb
from fluss_server.log.bucket_log import BucketLog
from fluss_server.log.segment_file import Segment, SegmentPosition
from fluss_server.log.statistics_filter import BatchTest, batch_test
from fluss_server.schemas import TableSchemas

BATCHES_LOOKED_AT_MAX: Final = 2_000
# What was on the disk before this process is read whole when it is first looked at.
CHECKED_BYTES_MAX: Final = 64 << 20
SEGMENTS_LEFT_OUT_MAX: Final = 16
_HEAD_BYTES: Final = format_of(1).size


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What a filtered read found.

    Args:
        data: Whole batches that are kept.
        filtered_end_offset: The reader goes on here, where something behind `data` was left out.
    """

    data: bytes
    filtered_end_offset: int | None


@dataclass(slots=True)
class _Found:
    """The batches kept so far, as stretches of one segment."""

    stretches: list[list[int]] = field(default_factory=list)
    size: int = 0
    skipped_to: int | None = None
    is_full: bool = False

    def keep(self, place: SegmentPosition) -> None:
        if self.stretches and self.stretches[-1][1] == place.position:
            self.stretches[-1][1] = place.end
        else:
            self.stretches.append([place.position, place.end])
        self.size += place.size
        self.skipped_to = None

    def leave_out(self, place: SegmentPosition) -> None:
        self.skipped_to = place.next_offset


class BatchFilter:
    """A reader's filter, made ready for the batches of each schema.

    Args:
        predicate: What the reader wants.
        schemas: The table's schemas.
    """

    def __init__(self, predicate: pb.PbPredicate, schemas: TableSchemas) -> None:
        self._predicate = predicate
        self._schemas = schemas
        self._tests: dict[int, BatchTest] = {}

    def keeps(self, segment: Segment, place: SegmentPosition) -> bool:
        """Whether a batch may have rows that are wanted."""
        head = memoryview(
            segment.read(place.position, min(place.end, place.position + _HEAD_BYTES))
        )
        if len(head) < _HEAD_BYTES or head[MAGIC_AT] != 1:
            return True
        header = read_log_header(head)
        layout = self._schemas.layouts.get(header.schema_id)
        if not header.statistics_length or layout is None:
            return True
        block = segment.read(
            place.position + header.format.size, place.position + header.records_start
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
    """Read published batches from an offset on, of the first segment that has some to keep.

    Args:
        log: The log.
        offset: Between the start offset and the high watermark.
        bytes_max: How many bytes may come.
        batches: Which batches are kept.
        at_least_one: Whether a first batch that is larger comes nevertheless.

    Raises:
        OffsetOutOfRangeError: The offset is not kept any more, or not there yet.
    """
    found = _Found()
    left, checked = BATCHES_LOOKED_AT_MAX, 0
    for count, (segment, start, end) in enumerate(log.visible_from(offset)):
        if count >= SEGMENTS_LEFT_OUT_MAX:
            break
        checked_before = checked - segment.checked_bytes
        for place in segment.walk(start, end=end):
            checked = checked_before + segment.checked_bytes
            if left <= 0 or checked > CHECKED_BYTES_MAX:
                found.is_full = True
                break
            left -= 1
            if not batches.keeps(segment, place):
                found.leave_out(place)
                continue
            if found.size + place.size > bytes_max and (found.size or not at_least_one):
                found.is_full = True
                break
            found.keep(place)
        if found.stretches or found.is_full:
            data = b"".join(segment.read(*each) for each in found.stretches)
            return Filtered(data=data, filtered_end_offset=found.skipped_to)
    return Filtered(data=b"", filtered_end_offset=found.skipped_to)
