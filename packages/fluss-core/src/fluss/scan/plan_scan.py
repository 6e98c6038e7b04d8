"""Decides what a scan reads: its columns, its partitions, and the offsets of each bucket.

Pure decisions over options, a table and the answers of leaders; `log.extents` asks the leaders, and
the readers of this room read. A scan is pinned once: `[start, stop)` of every bucket, however long
it is read and however often.

The rules of bounds. One offset for all buckets is clipped to the log of each of them; an offset for
one bucket, or of a cursor, must be there. A time stands for the first batch that was committed at
or after it, and rows are then compared with it exactly: the start is inclusive, the end exclusive.
After the end of a time, the clock of a bucket is assumed not to run backwards. A start that has
been trimmed is an error, unless the options let the scan begin where the log does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluss.errors import (
    InvalidValueError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.hints import Hint, HintKey
from fluss.lake.lake_format import LakePart
from fluss.model.did_you_mean import did_you_mean
from fluss.model.extent import Extent
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET
from fluss.model.options.bounds import Bound, BoundKind
from fluss.model.options.scan_options import (
    CHANGELOG_COLUMNS,
    Mode,
    PartitionChoice,
    ScanOptions,
)
from fluss.model.paths import TableBucket
from fluss.model.tables.partitions import PartitionInfo, PartitionSpec
from fluss.model.tables.table_info import TableInfo
from fluss.model.values.conversion import to_physical
from fluss.rows.keys.partition_text import partition_text
from fluss.scan.plan_filters import FilterPlan

NAMES_SHOWN_MAX = 8
# Bounds that name an offset of each bucket, which must be there.
_EXACT = frozenset({BoundKind.OFFSETS, BoundKind.CURSOR})


# --- what the rows are ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The columns of a scan.

    Attributes:
        names: Their names, in order.
        metadata: Which metadata column each is; None for a column of the table.
    """

    names: tuple[str, ...]
    metadata: tuple[str | None, ...]

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The names of those that the table has."""
        pairs = zip(self.names, self.metadata, strict=True)
        return tuple(name for name, metadata in pairs if metadata is None)


def decide_mode(options: ScanOptions, table: TableInfo) -> Mode:
    """Decide what the rows of a scan of this table are.

    Raises:
        UnsupportedOperationError: The table has no such rows.
    """
    has_key = table.has_primary_key()
    mode = options.mode
    if mode is None:
        cuts_log = any(each is not None for each in (options.start, options.end, options.tail))
        if has_key and cuts_log:
            raise InvalidValueError(
                f"start, end and tail cut a log, and a scan of {table.table_path} gives the state "
                "of its keys.",
                hint=Hint(HintKey.CHANGELOG_OR_AS_OF),
            )
        return Mode.STATE if has_key else Mode.LOG
    if not has_key and mode in {Mode.STATE, Mode.BINLOG}:
        raise UnsupportedOperationError(
            f"{table.table_path} has no primary key, so there is no {mode} of it.",
            hint="leave mode out: a log table is read as what was appended to it",
            table=str(table.table_path),
        )
    return mode


def decide_output(options: ScanOptions, table: TableInfo, mode: Mode) -> Output:
    """Decide which columns a scan gives.

    Raises:
        SchemaMismatchError: There is no such column; the hint names the nearest.
        InvalidValueError: A metadata column has the name of one of the table's.
    """
    known = table.schema.column_names
    metadata_names = options.metadata_names
    requested = options.columns
    if requested is None:
        first = CHANGELOG_COLUMNS if mode is Mode.CHANGELOG else ()
        leading = tuple(options.metadata_prefix + each[1:] for each in first)
        requested = (*leading, *known)
        _check_clash(leading, known)
    added = tuple(
        each if each in metadata_names else options.metadata_prefix + each[1:]
        for each in options.with_metadata
    )
    _check_clash(added, known)
    names = (*requested, *(each for each in added if each not in requested))
    for name in names:
        if name not in known and name not in metadata_names:
            hint = did_you_mean(name, (*known, *metadata_names))
            raise SchemaMismatchError(
                f"There is no column {name!r} in {table.table_path}.",
                hint=hint or f"its columns are {_shown(known)}",
                column=name,
            )
    metadata = tuple(None if each in known else metadata_names[each] for each in names)
    return Output(names=names, metadata=metadata)


def _check_clash(metadata: Iterable[str], known: Sequence[str]) -> None:
    for name in metadata:
        if name in known:
            raise InvalidValueError(
                f"The metadata column {name!r} has the name of a column of the table.",
                hint=Hint(HintKey.OTHER_METADATA_NAMES),
                option="metadata_prefix",
            )


# --- partitions -----------------------------------------------------------------------------------


def select_partitions(
    choices: Sequence[PartitionChoice] | None,
    partitions: Sequence[PartitionInfo],
    table: TableInfo,
    *,
    skips_missing: bool,
) -> list[PartitionInfo]:
    """Select the partitions that the options name, in the order of the list.

    Raises:
        PartitionNotFoundError: There is no partition of a name; the hint names the nearest.
        UnsupportedOperationError: The table is not partitioned.
    """
    if choices is None:
        return list(partitions)
    if not table.is_partitioned():
        raise UnsupportedOperationError(
            f"{table.table_path} is not partitioned, so none of its partitions can be chosen.",
            hint="leave partitions out",
            table=str(table.table_path),
        )
    chosen: set[int] = set()
    for choice in choices:
        texts = None if isinstance(choice, str) else _texts(choice, table)
        found = [each for each in partitions if _is_chosen(each, choice, texts)]
        if not found and not skips_missing:
            raise _no_partition(choice, partitions, table)
        chosen.update(each.partition_id for each in found)
    return [each for each in partitions if each.partition_id in chosen]


def _is_chosen(
    partition: PartitionInfo, choice: PartitionChoice, texts: Mapping[str, set[str]] | None
) -> bool:
    if texts is None:
        return partition.partition_name == choice
    spec = partition.partition_spec or PartitionSpec({})
    return all(spec.spec_map.get(key) in allowed for key, allowed in texts.items())


def _texts(
    choice: Sequence[tuple[str, tuple[object, ...]]], table: TableInfo
) -> dict[str, set[str]]:
    texts = {}
    for key, values in choice:
        if key not in table.partition_keys:
            raise SchemaMismatchError(
                f"{key!r} is not a partition key of {table.table_path}.",
                hint=did_you_mean(key, table.partition_keys)
                or f"those are {_shown(table.partition_keys)}",
                column=key,
            )
        data_type = table.schema.column(key).data_type
        convert = to_physical(data_type, key)
        # A text may be the value as the partition's name has it, as in URLs.
        texts[key] = {
            each if isinstance(each, str) else partition_text(convert(each), data_type)
            for each in values
        }
    return texts


def _no_partition(
    choice: PartitionChoice, partitions: Sequence[PartitionInfo], table: TableInfo
) -> PartitionNotFoundError:
    names = [each.partition_name for each in partitions]
    shown = choice if isinstance(choice, str) else _choice_text(choice)
    hint = did_you_mean(choice, names) if isinstance(choice, str) else None
    there = f"it has {len(names)}: {_shown(names)}" if names else "it has none"
    return PartitionNotFoundError(
        f"{table.table_path} has no partition {shown}; {there}.",
        hint=hint or Hint(HintKey.SKIP_MISSING_PARTITIONS, table=table.table_path),
        table=str(table.table_path),
        partition=shown,
    )


def _choice_text(choice: Sequence[tuple[str, tuple[object, ...]]]) -> str:
    return "/".join(f"{key}={' or '.join(map(str, values))}" for key, values in choice)


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN_MAX} more" if len(names) > NAMES_SHOWN_MAX else ""
    return ", ".join(names[:NAMES_SHOWN_MAX]) + more


# --- offsets --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The offsets that are read of a bucket: from `start` up to, and without, `stop`."""

    start: int
    stop: int

    @property
    def span(self) -> int:
        """How many offsets it has; an upper bound of its rows."""
        return max(0, self.stop - self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The commit timestamps that are read, in milliseconds; None where there is no bound."""

    start_ms: int | None = None
    end_ms: int | None = None

    def holds(self, timestamp_ms: int) -> bool:
        """Whether rows of this time are read."""
        if self.start_ms is not None and timestamp_ms < self.start_ms:
            return False
        return self.end_ms is None or timestamp_ms < self.end_ms

    def meet(self, other: Window | None) -> Window:
        """The times that both hold."""
        if other is None:
            return self
        starts = [each for each in (self.start_ms, other.start_ms) if each is not None]
        ends = [each for each in (self.end_ms, other.end_ms) if each is not None]
        return Window(start_ms=max(starts, default=None), end_ms=min(ends, default=None))


def window_of(start: Bound | None, end: Bound | None) -> Window | None:
    """The times between two bounds; None where neither is one."""
    start_ms = start.number if start is not None and start.kind is BoundKind.TIME else None
    end_ms = end.number if end is not None and end.kind is BoundKind.TIME else None
    return None if start_ms is None and end_ms is None else Window(start_ms=start_ms, end_ms=end_ms)


def window_left_by(filtered: FilterPlan) -> Window | None:
    """The commit timestamps that a filter leaves."""
    start_ms, end_ms = filtered.timestamp_range_ms or (None, None)
    return None if start_ms is None and end_ms is None else Window(start_ms=start_ms, end_ms=end_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """The facts by which the range of a bucket is decided.

    Attributes:
        bucket: The bucket.
        partition_name: Its partition.
        extent: Where its log begins and ends.
        at_start: The offset of the start, where that is a time.
        at_end: The offset of the end, where that is a time.
        at_filter_start: The offset of the first time that a filter leaves.
        at_filter_end: The offset of the first time after those.
        lake: The files of the bucket in a lake; None where there are none.
        lake_end: One past the last offset that the lake has; None where it is not read.
        log_begin: Where its log begins, if a lake comes before it; the extent begins with the lake.
        is_in_log: Whether Fluss has the bucket; otherwise only the lake has it.
    """

    bucket: TableBucket
    partition_name: str | None
    extent: Extent
    at_start: int | None = None
    at_end: int | None = None
    at_filter_start: int | None = None
    at_filter_end: int | None = None
    lake: LakePart | None = None
    lake_end: int | None = None
    log_begin: int = 0
    is_in_log: bool = True


def decide_range(
    facts: BucketFacts,
    *,
    start: Bound | None,
    end: Bound | None,
    on_trimmed: str,
    is_as_of: bool = False,
) -> Range:
    """Decide the range of one bucket.

    Args:
        facts: The facts of the bucket.
        start: Where to begin; where the log does, by default.
        end: Where to end; where the log does, by default.
        on_trimmed: The option of a start that has been trimmed.
        is_as_of: Whether the end is a moment whose state is requested, and not only a cut.

    Raises:
        OffsetOutOfRangeError: A requested offset is beyond the log, or has been trimmed.
    """
    extent = facts.extent
    first = _offset_of(start, facts, facts.at_start, default=extent.earliest)
    if first < extent.earliest:
        if on_trimmed != "earliest":
            raise _trimmed(facts, first)
        first = extent.earliest
    stop = _offset_of(end, facts, facts.at_end, default=extent.end)
    if first > extent.end and start is not None and start.kind in _EXACT:
        raise _beyond(facts, first, start)
    if (
        is_as_of
        and extent.earliest > 0
        and stop < extent.earliest + (end is not None and end.is_time)
    ):
        raise before_retention(facts, end)
    is_exact_end = end is not None and end.kind in (_EXACT if is_as_of else {BoundKind.CURSOR})
    if stop > extent.end and end is not None and is_exact_end:
        raise _beyond(facts, stop, end)
    stop = min(stop, extent.end)
    return Range(start=min(first, stop), stop=stop)


def requested_stop(facts: BucketFacts, end: Bound | None) -> int:
    """The offset at which a bound ends, whether the log still has it or not."""
    return min(_offset_of(end, facts, facts.at_end, default=facts.extent.end), facts.extent.end)


def exact_offset(
    bound: Bound | None, bucket: TableBucket, partition_name: str | None
) -> int | None:
    """The offset that a bound gives for this bucket; None where it gives none.

    Raises:
        TableNotFoundError: The bound is a cursor of another table.
    """
    if bound is None or bound.kind not in _EXACT:
        return None
    if bound.kind is BoundKind.OFFSETS:
        return _listed(dict(bound.offsets), bucket, partition_name)
    return _of_cursor(bound, bucket)


def meet(decided: Range, filtered: FilterPlan, facts: BucketFacts) -> Range:
    """Narrow a range to the offsets that a filter leaves."""
    start, stop = decided.start, decided.stop
    low, high = filtered.offset_range or (None, None)
    low_ms, stop_ms = filtered.timestamp_range_ms or (None, None)
    start = max(start, low or 0)
    stop = stop if high is None else min(stop, high)
    if low_ms is not None and low_ms >= 0:
        # None: the first time that is left is still to come.
        start = max(start, stop if facts.at_filter_start is None else facts.at_filter_start)
    if stop_ms is not None and facts.at_filter_end is not None:
        stop = min(stop, facts.at_filter_end)
    stop = max(stop, decided.start)
    return Range(start=min(start, stop), stop=stop)


def _offset_of(
    bound: Bound | None, facts: BucketFacts, at_time: int | None, *, default: int
) -> int:
    if bound is None:
        return default
    extent = facts.extent
    match bound.kind:
        case BoundKind.EARLIEST:
            return extent.earliest
        case BoundKind.LATEST:
            return extent.end
        case BoundKind.OFFSET:
            return bound.number
        case BoundKind.TIME | BoundKind.AGO:
            return extent.end if at_time is None else max(at_time, extent.earliest)
        case _:
            found = exact_offset(bound, facts.bucket, facts.partition_name)
    if found is None:
        return default
    return {EARLIEST_OFFSET: extent.earliest, LATEST_OFFSET: extent.end}.get(found, found)


def _listed(
    offsets: Mapping[tuple[str | int | None, int], int],
    bucket: TableBucket,
    partition_name: str | None,
) -> int | None:
    for partition in (partition_name, bucket.partition_id):
        if (partition, bucket.bucket_id) in offsets:
            return offsets[partition, bucket.bucket_id]
    return None


def _of_cursor(bound: Bound, bucket: TableBucket) -> int | None:
    cursor = bound.cursor
    if cursor is None:
        raise AssertionError("a bound by a cursor has a cursor")
    if cursor.table_id != bucket.table_id:
        raise TableNotFoundError(
            f"The cursor is of the table with the id {cursor.table_id}; this one has the id "
            f"{bucket.table_id}: it was dropped and created again, or is another.",
            hint=Hint(HintKey.START_AT_EARLIEST),
        )
    return dict(cursor.offsets).get((bucket.partition_id, bucket.bucket_id))


def check_places(
    bound: Bound | None, places: Iterable[tuple[str | int | None, int]], name: str
) -> None:
    """Refuse offsets for buckets that are not part of the scan.

    Args:
        bound: The start or the end.
        places: The buckets, each with its partition's name and with its id.
        name: The name of the option.

    Raises:
        InvalidValueError: A bucket is not part of the scan.
    """
    if bound is None or bound.kind is not BoundKind.OFFSETS:
        return
    known = set(places)
    for place, offset in bound.offsets:
        if place not in known:
            partition, bucket = place
            of = "" if partition is None else f" of partition {partition!r}"
            raise InvalidValueError(
                f"{name}= gives the offset {offset} for bucket {bucket}{of}, "
                "which is not part of the scan.",
                hint=Hint(HintKey.OFFSETS_OF_BUCKETS),
                option=name,
            )


def _trimmed(facts: BucketFacts, offset: int) -> OffsetOutOfRangeError:
    earliest = facts.extent.earliest
    return out_of_range(
        facts,
        f"Offset {offset} of {place_text(facts)} is not there any more: the log begins at {earliest}.",
        Hint(HintKey.BEGIN_WHERE_THE_LOG_DOES),
        offset=offset,
        earliest=earliest,
    )


def before_retention(
    facts: BucketFacts, as_of: Bound | None, in_lake: Sequence[int] = ()
) -> OffsetOutOfRangeError:
    """Return the error for a state as of a time before the retained log.

    Args:
        facts: The bucket.
        as_of: The requested time or offset.
        in_lake: The offsets whose states the lake of the table has.
    """
    lake = ""
    if in_lake:
        lake = f" The lake has the states at offsets {_shown([str(n) for n in in_lake])}."
    return out_of_range(
        facts,
        f"The rows of {place_text(facts)} as of {as_of} cannot be read: its log begins at offset "
        f"{facts.extent.earliest}, and earlier rows were trimmed.{lake}",
        f"read them as of offset {facts.extent.earliest} or a later moment; 'table.log.ttl' sets "
        "how long the log is kept",
        earliest=facts.extent.earliest,
    )


def _beyond(facts: BucketFacts, offset: int, bound: Bound) -> OffsetOutOfRangeError:
    end = facts.extent.end
    message = (
        f"Offset {offset} of {place_text(facts)} is beyond the end of the log, which is {end}."
    )
    if bound.kind is BoundKind.CURSOR:
        message = (
            f"The log of {place_text(facts)} ends at {end}, before the cursor's {offset}: rows were "
            "lost, or this is the cursor of another table."
        )
    hint = Hint(HintKey.BEYOND_THE_END, log_end=end)
    return out_of_range(facts, message, hint, offset=offset, end=end)


def out_of_range(
    facts: BucketFacts, why: str, hint: str | Hint, **more: Any
) -> OffsetOutOfRangeError:
    """Return the error of an offset of a bucket."""
    bucket, partition = facts.bucket.bucket_id, facts.partition_name
    return OffsetOutOfRangeError(why, hint=hint, bucket=bucket, partition=partition, **more)


def place_text(facts: BucketFacts) -> str:
    """Name a bucket in a message."""
    of = "" if facts.partition_name is None else f" of partition {facts.partition_name!r}"
    return f"bucket {facts.bucket.bucket_id}{of}"


# --- the last rows --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Rows that were committed together, by the header of their batch."""

    base_offset: int
    rows: int
    timestamp_ms: int


def tail_starts(spans: Mapping[TableBucket, Sequence[Span]], rows: int) -> dict[TableBucket, int]:
    """Find where to begin in each bucket, to read the last rows of all of them together.

    The last rows are the greatest by time, bucket and offset. Within a bucket the greatest time so
    far counts, even where a leader's clock ran backwards, so that its last rows are the end of its
    log. A bucket that is missing from the result has none of them.
    """
    ranked: list[tuple[int, TableBucket, int, int]] = []
    for bucket, listed in spans.items():
        latest = 0
        for span in listed:
            latest = max(latest, span.timestamp_ms)
            ranked.append((latest, bucket, span.base_offset, span.rows))
    ranked.sort(reverse=True)
    starts: dict[TableBucket, int] = {}
    left = rows
    for _, bucket, base_offset, count in ranked:
        if left <= 0:
            break
        taken = min(count, left)
        if taken:
            starts[bucket] = base_offset + count - taken
            left -= taken
    return starts
