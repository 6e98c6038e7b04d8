"""What a scanner fetches next: one position per bucket, and the requests that go now.

A plan knows where each subscribed bucket stands, what is under way and how much lies fetched but
unread. Asked with the leaders of the moment, it answers with requests: at most one under way per
server and kind, none while too much lies unread, none for what is finished. A bounded plan stops
each bucket at the high watermark its leader named first, so however long it reads, it reads one
fixed set of rows.

What is not here: sending (`engine.fetcher`), decoding (`client.decode`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fluss.errors import FlussError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.plan.cluster import Leader

# A server of 0.9.1 does not wake a parked reader when rows arrive, so how long it parks bounds how
# late rows are seen. A reader that has been idle for long may be parked for longer.
PARKED_MS_BUSY = 20
PARKED_MS_QUIET = 100
BUSY_FOR_S = 10.0
QUIET_FOR_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much is fetched at once, and how much may lie unread."""

    bytes_max: int = 16 * 1024 * 1024
    bytes_max_for_bucket: int = 1024 * 1024
    bytes_min: int = 1
    wait_ms_max: int = 500
    unread_bytes_max: int = 64 * 1024 * 1024


@dataclass(slots=True, eq=False, kw_only=True)
class Position:
    """Where one bucket stands."""

    bucket: TableBucket
    path: PhysicalTablePath
    offset: int
    stop: int | None = None
    pushes_projection: bool = True
    in_flight: bool = False
    reads_remote: bool = False
    unread_bytes: int = 0
    attempts: int = 0
    paused_until: float = 0.0
    started_at: float = 0.0

    @property
    def is_finished(self) -> bool:
        """Whether a bounded read has come to its end here."""
        return self.stop is not None and self.offset >= self.stop


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


@dataclass(slots=True)
class FetchPlan:
    """The positions of one scanner. Not thread-safe: the engine thread owns it."""

    limits: FetchLimits
    is_bounded: bool
    positions: dict[TableBucket, Position] = field(default_factory=dict)
    _busy: set[tuple[int, bool]] = field(default_factory=set)
    _unread_bytes: int = 0
    _last_rows_at: float = 0.0
    _turn: int = 0

    def subscribe(self, position: Position) -> None:
        """Read a bucket from here on; a position it had is forgotten, with what lies unread."""
        self.unsubscribe(position.bucket)
        self.positions[position.bucket] = position

    def unsubscribe(self, bucket: TableBucket) -> None:
        """Read a bucket no more."""
        position = self.positions.pop(bucket, None)
        if position is not None:
            self._unread_bytes -= position.unread_bytes

    def is_current(self, position: Position) -> bool:
        """Whether the position is still the one its bucket is read at."""
        return self.positions.get(position.bucket) is position

    @property
    def is_finished(self) -> bool:
        """Whether a bounded read has fetched all there is."""
        return self.is_bounded and all(
            each.is_finished and not each.reads_remote for each in self.positions.values()
        )

    @property
    def is_full(self) -> bool:
        """Whether as much lies unread as may."""
        return self._unread_bytes >= self.limits.unread_bytes_max

    # --- what goes now ------------------------------------------------------------------------

    def next_fetches(
        self, *, now: float, leader_of: Callable[[TableBucket], Leader | None]
    ) -> tuple[list[Fetch], list[Position]]:
        """The requests that go now, and the positions whose leader must be found first."""
        if self.is_full:
            return [], []
        groups: dict[tuple[int, bool], list[Position]] = {}
        leaderless = []
        for position in self._in_turn():
            if not self._wants_more(position, now):
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
            if each.paused_until > now and not each.in_flight and not each.is_finished
        ]
        return min(ends, default=None)

    def _wants_more(self, position: Position, now: float) -> bool:
        return not (
            position.in_flight
            or position.reads_remote
            or position.is_finished
            or position.paused_until > now
        )

    def _in_turn(self) -> Iterator[Position]:
        # A server fills an answer with the first buckets of the request: everybody is first once.
        positions = list(self.positions.values())
        if positions:
            self._turn = (self._turn + 1) % len(positions)
            yield from positions[self._turn :]
            yield from positions[: self._turn]

    def _fetch(self, way: tuple[int, bool], positions: list[Position], now: float) -> Fetch:
        server_id, pushes_projection = way
        self._busy.add(way)
        for position in positions:
            position.in_flight = True
        parked = self._parked_ms(now)
        return Fetch(
            server_id=server_id,
            positions=tuple(positions),
            pushes_projection=pushes_projection,
            bytes_max=self.limits.bytes_max,
            bytes_max_for_bucket=self.limits.bytes_max_for_bucket,
            bytes_min=None if parked is None else self.limits.bytes_min,
            wait_ms_max=parked,
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

    # --- what came of it ----------------------------------------------------------------------

    def ended(self, fetch: Fetch) -> None:
        """The request is over, whatever came of it."""
        self._busy.discard((fetch.server_id, fetch.pushes_projection))
        for position in fetch.positions:
            position.in_flight = False

    def advance(
        self, position: Position, *, next_offset: int, unread_bytes: int, now: float
    ) -> None:
        """Bytes have been fetched; they lie unread until `consumed`."""
        position.attempts = 0
        if next_offset > position.offset or unread_bytes:
            self._last_rows_at = now
        position.offset = max(position.offset, next_offset)
        if self.is_current(position):
            position.unread_bytes += unread_bytes
            self._unread_bytes += unread_bytes

    def pin(self, position: Position, high_watermark: int) -> None:
        """A bounded read stops where the leader's log ended when it was first asked."""
        if self.is_bounded and position.stop is None:
            position.stop = high_watermark

    def pause(self, position: Position, *, until: float) -> None:
        """Do not fetch a bucket for a while, because that failed."""
        position.paused_until = until

    def consumed(self, position: Position, unread_bytes: int) -> None:
        """Fetched bytes have been read, or thrown away."""
        if self.is_current(position):
            position.unread_bytes -= unread_bytes
            self._unread_bytes -= unread_bytes


def check_not_backwards(position: Position, high_watermark: int | None) -> None:
    """Refuse to read on in a log that ends before what has been read of it.

    A cluster that lost all replicas of a bucket at once may come back with a shorter log, and give
    the same offsets to other rows later. Reading on would mix the two.

    Raises:
        FlussError: The log has gone backwards.
    """
    if high_watermark is None or position.offset < 0 or high_watermark >= position.offset:
        return
    raise FlussError(
        f"The log of bucket {position.bucket.bucket_id} of {position.path} went backwards: it ends "
        f"at offset {high_watermark}, and {position.offset} has been read already. The cluster has "
        "lost rows that were acknowledged.",
        hint="Read the table again from an offset before that, and check what depends on it.",
        table=str(position.path.table_path),
        bucket=position.bucket.bucket_id,
        offset=position.offset,
        high_watermark=high_watermark,
    )
