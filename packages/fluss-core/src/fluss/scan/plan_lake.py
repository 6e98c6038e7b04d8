"""Decides which rows of a bucket are read in its lake, and which in its log.

A bucket with a lake is one longer log: it begins where the lake does. All rules of bounds are
applied to that log (`plan_scan.decide_range`), and the range is divided where the lake ends.
"""

from __future__ import annotations

from dataclasses import replace

from fluss.errors import UnsupportedOperationError
from fluss.hints import Hint, HintKey
from fluss.lake.lake_format import LakePart
from fluss.model.extent import Extent
from fluss.model.options.bounds import Bound
from fluss.model.options.scan_options import LakeUse, ScanOptions
from fluss.model.paths import TableBucket
from fluss.scan.plan_scan import BucketFacts, Range, out_of_range, place_text, requested_stop


def with_lake(
    facts: BucketFacts, part: LakePart | None, lake_end: int | None, *, is_cut: bool = False
) -> BucketFacts:
    """The facts of a bucket whose past is in a lake: it begins where the lake does.

    Where the filter rules out the rows of a bucket (`is_cut`), it is not known where those begin,
    nor does it matter.

    Servers know the times of what their log has, and no others. Where a time is not after the first
    that the log has, rows of the lake are compared with it one by one.
    """
    log = facts.extent
    if lake_end is None:
        return facts  # all of it is in the log
    first_there = part.first_offset if part is not None else (0 if is_cut else lake_end)
    first = min(log.earliest, first_there)

    def moved(offset: int | None) -> int | None:
        return first if offset is not None and offset <= log.earliest else offset

    return replace(
        facts,
        extent=Extent(earliest=first, end=max(log.end, lake_end)),
        at_start=moved(facts.at_start),
        at_filter_start=moved(facts.at_filter_start),
        lake=part,
        lake_end=lake_end,
        log_begin=log.earliest,
    )


def with_lake_state(facts: BucketFacts, part: LakePart | None, lake_end: int | None) -> BucketFacts:
    """The facts of a bucket whose state is in a lake, too; its changes are in the log alone."""
    return replace(facts, lake=part, lake_end=lake_end, log_begin=facts.extent.earliest)


def facts_of_dropped(
    bucket: TableBucket, partition_name: str | None, part: LakePart | None
) -> BucketFacts:
    """The facts of a bucket that Fluss no longer has."""
    first, end = (0, 0) if part is None else (part.first_offset, part.end)
    return BucketFacts(
        bucket=bucket,
        partition_name=partition_name,
        extent=Extent(earliest=first, end=end),
        at_start=first,
        at_end=end,
        at_filter_start=first,
        at_filter_end=end,
        lake=part,
        lake_end=end,
        log_begin=end,
        is_in_log=False,
    )


def needs_past(facts: BucketFacts, end: Bound, *, is_full_image: bool) -> bool:
    """Whether the state of a bucket at a moment can only come from an older snapshot of its lake.

    A moment is no offset before the log begins: servers know the times of what the log has, and
    no others.
    """
    if facts.lake_end is None or not facts.is_in_log or not facts.extent.earliest:
        return False
    stop = requested_stop(facts, end)
    if stop >= facts.lake_end or (end.is_time and stop <= facts.extent.earliest):
        return False
    # What a changelog with both images has is rolled back from the present state.
    return stop < facts.extent.earliest or not is_full_image


def only_at_a_moment() -> UnsupportedOperationError:
    """The error where only the lake is requested, as of a moment."""
    return UnsupportedOperationError(
        "as_of= and lake='only' exclude each other for a table with a primary key: a lake has the "
        "states of its snapshots, and the changelog leads from those to a moment.",
        hint="leave lake out",
    )


def divide(
    decided: Range, facts: BucketFacts, options: ScanOptions
) -> tuple[Range | None, Range | None]:
    """Divide the range of a bucket between the lake and the log; None where one is not read.

    Raises:
        OffsetOutOfRangeError: Offsets of the range are neither in the lake nor in the log.
    """
    if facts.lake_end is None:
        return None, None if options.lake is LakeUse.ONLY else decided
    start, stop, lake_end = decided.start, decided.stop, facts.lake_end
    past = Range(start=start, stop=max(start, min(stop, lake_end)))
    in_lake = past if facts.lake is not None and past.span else None
    if options.lake is LakeUse.ONLY or not facts.is_in_log:
        return in_lake, None
    log_start = max(start, lake_end)
    if log_start < facts.log_begin and stop > log_start:
        if options.on_trimmed != "earliest":
            raise out_of_range(
                facts,
                f"Offsets {log_start} to {facts.log_begin} of {place_text(facts)} are lost: the lake ends "
                f"at {lake_end}, and the log begins at {facts.log_begin}.",
                Hint(HintKey.BEGIN_WHERE_THE_LOG_DOES),
                offset=log_start,
                earliest=facts.log_begin,
            )
        log_start = min(facts.log_begin, stop)
    return in_lake, Range(start=min(log_start, stop), stop=stop)
