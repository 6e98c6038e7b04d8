"""Decides what a scanner fetches next: one position per bucket, and the requests to send now.

A plan knows the position of each subscribed bucket, what is in flight and how many fetched bytes
are unread. Given the current leaders, it returns requests: at most one in flight per server and
kind, none while too much is unread, none for finished buckets. A bounded plan stops each bucket at
the high watermark that its leader named first, so it reads one fixed set of rows, however long it
takes.

What is not here: sending (`log.fetcher`), decoding (`log.decode`), and what follows when a fetch
fails (`log.plan_fetch_errors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from fluss.errors import FlussError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.plan_routing import Leader

# A server of 0.9.1 does not wake a parked request when rows arrive, so the parking time bounds how
# late rows are seen. Requests of a reader that has been idle for long may be parked for longer.
PARKED_MS_BUSY = 20
PARKED_MS_QUIET = 100
BUSY_FOR_S = 10.0
QUIET_FOR_S = 60.0
# Where more batches than this fit into a fetch, a last one that is cut off does not matter.
CUT_COUNTS_MAX = 16
# The first request for a bucket asks for little, so that its first rows come soon; later requests
# ask for as much as the limits allow.
BYTES_FIRST = 128 * 1024
# How many fetches of one bucket may be unread: enough to keep a reader busy, and few enough that a
# caller that reads a few rows of many buckets does not fetch them in full.
FETCHES_AHEAD = 4
# Of large ones, two are enough: one is decoded while the next one comes.
LARGE_FETCHES_AHEAD = 2
BUCKET_UNREAD_BYTES_MAX = 8 * 1024 * 1024
# A caller that reads on is fetched for further and further ahead; one that stops soon costs little.
UNREAD_BYTES_FIRST = 4 * 1024 * 1024
BUCKET_BYTES_FIRST = 64 * 1024
ROW_BYTES_GUESSED = 128
GROWTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much is fetched per request, and how much may be unread.

    Attributes:
        bytes_max: How much of all buckets together.
        bytes_max_for_bucket: How much of one.
        bytes_max_for_bucket_scanned: How much of one where all of a range is read: the fewer
            answers there are, the less is done for each.
        bytes_max_for_bucket_kept: How much of one where all of a range is read and kept, so that
            the fetched bytes add little to the memory of the result.
        bytes_min: How much a server waits for, and how long at most.
        unread_bytes_max: How much may be unread.
        prefers_remote: Whether rows that are on a server's disks and in the remote store are read
            from the latter.
    """

    bytes_max: int = 16 * 1024 * 1024
    bytes_max_for_bucket: int = 1024 * 1024
    bytes_max_for_bucket_scanned: int = 1024 * 1024
    bytes_max_for_bucket_kept: int = 1024 * 1024
    bytes_min: int = 1
    wait_ms_max: int = 500
    unread_bytes_max: int = 64 * 1024 * 1024
    prefers_remote: bool = False

    @property
    def scanning(self) -> FetchLimits:
        """The same for a caller that reads all of a range."""
        return replace(self, bytes_max_for_bucket=self.bytes_max_for_bucket_scanned)

    @property
    def keeping(self) -> FetchLimits:
        """The same for a caller that keeps all of a range."""
        kept = self.bytes_max_for_bucket_kept
        return replace(self, bytes_max_for_bucket=kept, bytes_max_for_bucket_scanned=kept)

    def first(self, rows_max: int | None) -> FetchLimits:
        """How much of a range is fetched ahead at first.

        Args:
            rows_max: How many rows the caller takes; None where that is not known.
        """
        for_bucket = self.bytes_max_for_bucket
        if rows_max is not None:
            for_bucket = min(for_bucket, max(rows_max * ROW_BYTES_GUESSED, BUCKET_BYTES_FIRST))
        first = UNREAD_BYTES_FIRST if rows_max is None else for_bucket
        return replace(
            self,
            bytes_max_for_bucket=for_bucket,
            unread_bytes_max=min(self.unread_bytes_max, first),
        )

    def grown(self, most: FetchLimits) -> FetchLimits:
        """How much is fetched ahead of a caller that has come back for more."""
        if self in {most, most.scanning}:
            return most.scanning  # a caller that has read so far reads on
        for_bucket = min(self.bytes_max_for_bucket * GROWTH, most.bytes_max_for_bucket)
        unread = min(self.unread_bytes_max * GROWTH, most.unread_bytes_max)
        return replace(self, bytes_max_for_bucket=for_bucket, unread_bytes_max=unread)

    @property
    def unread_bytes_max_for_bucket(self) -> int:
        """How much of one bucket may be unread, so that more of it is requested."""
        several = min(FETCHES_AHEAD * self.bytes_max_for_bucket, BUCKET_UNREAD_BYTES_MAX)
        return max(several, LARGE_FETCHES_AHEAD * self.bytes_max_for_bucket)


@dataclass(slots=True, eq=False, kw_only=True)
class Position:
    """The position of one bucket.

    Attributes:
        bucket: The bucket.
        path: Its table, and its partition as soon as the name is known.
        offset: The next offset; below 0 where it must still be looked up.
        stop: One past the last offset; None where there is no end, or none is known yet.
        skips_trimmed: Whether rows that have been trimmed are skipped.
        begins_at_earliest: The same as long as none of the bucket have been read.
        has_read: Whether `offset` was reached by reading, and not given by the user.
        pushes_projection: Whether the server is asked to leave columns out.
        is_busy: Whether a request or a lookup is in flight for it.
        batch_bytes: How large its batches are; 0 before the first.
        begins_small: Whether the first request asks for little, because a reader waits for rows.
        unread_bytes: How much is fetched and not taken.
        asked_at: When it was last fetched.
        attempts: How many fetches in a row have failed.
        failing_since: When the first of these was sent.
        remote_attempts: How many reads of remote files in a row have failed.
        paused_until: When it may be fetched again.
        error: Why it is no longer fetched.
    """

    bucket: TableBucket
    path: PhysicalTablePath
    offset: int
    stop: int | None = None
    skips_trimmed: bool = False
    begins_at_earliest: bool = False
    has_read: bool = False
    pushes_projection: bool = True
    is_busy: bool = False
    batch_bytes: int = 0
    begins_small: bool = False
    unread_bytes: int = 0
    asked_at: float = 0.0
    attempts: int = 0
    remote_attempts: int = 0
    failing_since: float = 0.0
    paused_until: float = 0.0
    error: FlussError | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The place, as the facts of an error."""
        table, bucket = str(self.path.table_path), self.bucket.bucket_id
        return {"table": table, "bucket": bucket, "offset": self.offset}

    @property
    def may_skip_trimmed(self) -> bool:
        """Whether rows that have been trimmed are skipped now."""
        return self.skips_trimmed or (self.begins_at_earliest and not self.has_read)

    @property
    def is_finished(self) -> bool:
        """Whether a bounded read has come to its end here."""
        return self.stop is not None and max(self.offset, 0) >= self.stop

    def bytes_to_ask(self, limit: int) -> int:
        """The bytes of as many whole batches as fit: a batch that is cut off is sent twice."""
        if not self.batch_bytes:
            return min(limit, BYTES_FIRST) if self.begins_small else limit
        count = limit // self.batch_bytes
        if not 0 < count <= CUT_COUNTS_MAX:
            return limit
        return min(limit, count * self.batch_bytes + self.batch_bytes // 8)

    @property
    def needs_name(self) -> bool:
        """Whether its partition is known by id only; metadata requests need the name."""
        return self.bucket.partition_id is not None and self.path.partition_name is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """One FETCH_LOG request."""

    server_id: int
    positions: tuple[Position, ...]
    pushes_projection: bool
    bytes_max: int
    bytes_max_for_bucket: int
    bytes_min: int | None
    wait_ms_max: int | None
    prefers_remote: bool = False


@dataclass(slots=True)
class FetchPlan:
    """The positions of one scanner. Not thread-safe: the engine thread owns it."""

    limits: FetchLimits
    is_bounded: bool
    # In the order in which they are requested: a bucket that got rows goes to the end.
    positions: dict[TableBucket, Position] = field(default_factory=dict)
    _busy: set[tuple[int, bool]] = field(default_factory=set)
    _unread_bytes: int = 0
    _last_rows_at: float = 0.0

    def subscribe(self, position: Position, *, now: float) -> None:
        """Read a bucket from this position on; an earlier position is dropped, with its bytes."""
        self.unsubscribe(position.bucket)
        position.begins_small = not self.is_bounded
        self.positions[position.bucket] = position
        self._last_rows_at = now

    def unsubscribe(self, bucket: TableBucket) -> Position | None:
        """Stop reading a bucket."""
        position = self.positions.pop(bucket, None)
        if position is not None:
            self._unread_bytes -= position.unread_bytes
        return position

    def is_current(self, position: Position) -> bool:
        """Whether its bucket is still read at this position."""
        return self.positions.get(position.bucket) is position

    @property
    def is_finished(self) -> bool:
        """Whether a bounded read has fetched all there is."""
        return self.is_bounded and all(each.is_finished for each in self.positions.values())

    @property
    def is_full(self) -> bool:
        """Whether as much is unread as the limits allow."""
        return self._unread_bytes >= self.limits.unread_bytes_max

    def failed(self) -> Position | None:
        """A position that is no longer fetched because of an error."""
        return next((each for each in self.positions.values() if each.error is not None), None)

    # --- what to send now ------------------------------------------------------------------------

    def next_fetches(
        self, *, now: float, leader_of: Callable[[TableBucket], Leader | None]
    ) -> tuple[list[Fetch], list[Position]]:
        """The requests to send now, and the positions whose leader must be looked up first."""
        if self.is_full:
            return [], []
        groups: dict[tuple[int, bool], list[Position]] = {}
        leaderless = []
        unread_bytes_max = self.limits.unread_bytes_max_for_bucket
        for position in self.positions.values():
            if position.unread_bytes >= unread_bytes_max or not _wants_more(position, now):
                continue
            leader = leader_of(position.bucket)
            if leader is None:
                leaderless.append(position)
                continue
            way = (leader.server_id, position.pushes_projection)
            if way not in self._busy:
                groups.setdefault(way, []).append(position)
        return [self._fetch(way, positions, now) for way, positions in groups.items()], leaderless

    def next_pause_end(self, *, now: float) -> float | None:
        """When the first paused position may be fetched again."""
        ends = [
            each.paused_until
            for each in self.positions.values()
            if each.paused_until > now and not each.is_busy and not each.is_finished
        ]
        return min(ends, default=None)

    def _fetch(self, way: tuple[int, bool], positions: list[Position], now: float) -> Fetch:
        server_id, pushes_projection = way
        self._busy.add(way)
        for position in positions:
            position.is_busy = True
            position.asked_at = now
        parked = self._parked_ms(now)
        return Fetch(
            server_id=server_id,
            positions=tuple(positions),
            pushes_projection=pushes_projection,
            bytes_max=self.limits.bytes_max,
            bytes_max_for_bucket=self.limits.bytes_max_for_bucket,
            bytes_min=None if parked is None else self.limits.bytes_min,
            wait_ms_max=parked,
            prefers_remote=self.limits.prefers_remote,
        )

    def _parked_ms(self, now: float) -> int | None:
        """How long a server may wait for rows; a bounded read never waits for any."""
        if self.is_bounded:
            return None
        idle_s = now - self._last_rows_at
        if idle_s < BUSY_FOR_S:
            return min(PARKED_MS_BUSY, self.limits.wait_ms_max)
        if idle_s < QUIET_FOR_S:
            return min(PARKED_MS_QUIET, self.limits.wait_ms_max)
        return self.limits.wait_ms_max

    # --- results ----------------------------------------------------------------------

    def ended(self, fetch: Fetch) -> None:
        """Note that a request has ended, with or without an error."""
        self._busy.discard((fetch.server_id, fetch.pushes_projection))
        for position in fetch.positions:
            position.is_busy = False

    def advance(
        self, position: Position, *, next_offset: int, unread_bytes: int, now: float
    ) -> None:
        """Note fetched bytes; they are unread until `consumed`."""
        if next_offset > position.offset:
            self._last_rows_at = now
            position.offset = next_offset
            position.has_read = True
            position.attempts = position.remote_attempts = 0
        if self.is_current(position):
            position.unread_bytes += unread_bytes
            self._unread_bytes += unread_bytes

    def served(self, positions: Iterable[Position]) -> None:
        """Note which buckets got rows: the others come first in the next request.

        A server fills an answer with the first buckets it is asked for.
        """
        for position in positions:
            if self.is_current(position):
                del self.positions[position.bucket]
                self.positions[position.bucket] = position

    def pin(self, position: Position, high_watermark: int) -> None:
        """End a bounded read where the leader's log ended when it was first asked."""
        if self.is_bounded and position.stop is None:
            position.stop = high_watermark

    def consumed(self, position: Position, unread_bytes: int) -> None:
        """Note that fetched bytes have been read, or dropped."""
        if self.is_current(position):
            position.unread_bytes -= unread_bytes
            self._unread_bytes -= unread_bytes


def _wants_more(position: Position, now: float) -> bool:
    return not (
        position.is_busy
        or position.is_finished
        or position.paused_until > now
        or position.error is not None
    )
