"""Holds fetched rows of a scanner until a user gets them.

No row is lost: fetched bytes come in on the engine's thread, are decoded on another thread, and
leave when a call returns them. A cancelled call leaves everything to the next one. Rows before
damaged bytes are returned first; then every call raises the error, until the bucket is unsubscribed
or subscribed again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.decode_pool import Decoded, decode_ahead, decode_one, pieces_of
from fluss.log.fetch_messages import Fetched
from fluss.model.paths import TableBucket

IsGone = Callable[[TableBucket], bool]


class Inbox:
    """The fetched rows of one scanner. Any thread may use it."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._lock = threading.Lock()
        # Events in order; the engine adds to them and never waits for the lock.
        self._events: deque[Fetched | IsGone] = deque()
        self._fetched: deque[Fetched] = deque()
        self._decoded: deque[DecodedBatch] = deque()

    def __bool__(self) -> bool:
        event = tuple(self._events)
        return bool(
            self._decoded or self._fetched or any(isinstance(each, Fetched) for each in event)
        )

    def put(self, fetched: Iterable[Fetched]) -> None:
        """Add fetched bytes; called by the engine."""
        self._events.extend(fetched)

    def forget(self, is_gone: IsGone) -> None:
        """Drop the rows of buckets that are no longer subscribed."""
        with self._lock:
            self._apply_events()
            self._drop(is_gone)

    def forget_what_was_put(self, is_gone: IsGone) -> None:
        """The same for everything that was added up to now; called by the engine."""
        self._events.append(is_gone)

    def has_rows(self, count: int) -> bool:
        """Whether so many rows are decoded; never waits, so the engine may call it."""
        return sum(each.num_rows for each in tuple(self._decoded)) >= count

    def decode(self, rows_max: int | None = None) -> None:
        """Decode everything, or until there are `rows_max` decoded rows.

        Raises:
            FlussError: The next bytes cannot be decoded, and all rows before them were returned.
        """
        with self._lock:
            self._apply_events()
            rows = sum(each.num_rows for each in self._decoded)
            if rows_max is not None and rows >= rows_max:
                return
            for decoded in self._decoding(in_parallel=rows_max is None):
                self._fetched.popleft()
                self._decoded.extend(decoded.batches)
                rows += sum(each.num_rows for each in decoded.batches)
                if decoded.error is not None:
                    self._stop_at(decoded)
                    return
                if rows_max is not None and rows >= rows_max:
                    return

    def give(self, rows_max: int | None = None) -> list[DecodedBatch]:
        """Remove and return decoded rows, in order; `rows_max` rows at most."""
        given: list[DecodedBatch] = []
        with self._lock:
            self._apply_events()
            while self._decoded and (rows_max is None or rows_max > 0):
                batch = self._decoded.popleft()
                if rows_max is not None:
                    if batch.num_rows > rows_max:
                        batch = batch.sharing_rows(self._decoder.types)
                        rest = batch.slice(rows_max, batch.num_rows - rows_max)
                        self._decoded.appendleft(rest)
                        batch = batch.slice(0, rows_max)
                    rows_max -= batch.num_rows
                given.append(batch)
        return given

    def _apply_events(self) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Fetched):
                self._fetched.extend(pieces_of(event))
            else:
                self._drop(event)

    def _drop(self, is_gone: IsGone) -> None:
        self._fetched = deque(each for each in self._fetched if not is_gone(each.bucket))
        self._decoded = deque(each for each in self._decoded if not is_gone(each.bucket))

    def _decoding(self, *, in_parallel: bool) -> Iterator[Decoded]:
        waiting = list(self._fetched)
        if in_parallel and len(waiting) > 1:
            return decode_ahead(self._decoder, waiting)
        return map(partial(decode_one, self._decoder), waiting)

    def _stop_at(self, decoded: Decoded) -> None:
        if decoded.rest is not None:
            self._fetched.appendleft(decoded.rest)
        if not self._decoded and decoded.error is not None:
            raise decoded.error
