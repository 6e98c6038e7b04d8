"""Between fetching and giving: what was taken of a core and has not been given to a user yet.

Nothing is lost on the way. Fetched bytes come in on the engine's thread, are decoded on a thread
that has time for it, and leave when somebody receives them: a call that is given up in between
leaves everything to the next one. Rows in front of damaged bytes are given first; the damage is
then raised each time, until the bucket is unsubscribed or subscribed anew.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fluss.log.decode import DecodedBatch, Decoder
from fluss.log.decode_pool import Decoded, decode_ahead, decode_one, pieces_of
from fluss.log.fetcher import Fetched
from fluss.model.paths import TableBucket

IsGone = Callable[[TableBucket], bool]


class Inbox:
    """What one scanner has taken and not given. Any thread may use it."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._lock = threading.Lock()
        # What has happened, in order; the engine adds to it and never waits for the lock.
        self._news: deque[Fetched | IsGone] = deque()
        self._fetched: deque[Fetched] = deque()
        self._decoded: deque[DecodedBatch] = deque()

    def __bool__(self) -> bool:
        news = tuple(self._news)
        return bool(
            self._decoded or self._fetched or any(isinstance(each, Fetched) for each in news)
        )

    def put(self, fetched: Iterable[Fetched]) -> None:
        """Take something in; called by the engine."""
        self._news.extend(fetched)

    def forget(self, is_gone: IsGone) -> None:
        """Throw away what is of buckets not wanted any more."""
        with self._lock:
            self._look_at_news()
            self._drop(is_gone)

    def forget_what_was_put(self, is_gone: IsGone) -> None:
        """The same for what the engine has put up to now; called by the engine."""
        self._news.append(is_gone)

    def has_rows(self, count: int) -> bool:
        """Whether so many rows have been decoded; asked without waiting, by the engine too."""
        return sum(each.num_rows for each in tuple(self._decoded)) >= count

    def decode(self, rows_max: int | None = None) -> None:
        """Decode what is there, or so much of it that there are `rows_max` rows to give.

        Raises:
            FlussError: The next bytes cannot be decoded, and everything before them was given.
        """
        with self._lock:
            self._look_at_news()
            rows = sum(each.num_rows for each in self._decoded)
            if rows_max is not None and rows >= rows_max:
                return
            for decoded in self._decoding(run_blocking=rows_max is None):
                self._fetched.popleft()
                self._decoded.extend(decoded.batches)
                rows += sum(each.num_rows for each in decoded.batches)
                if decoded.error is not None:
                    self._stop_at(decoded)
                    return
                if rows_max is not None and rows >= rows_max:
                    return

    def give(self, rows_max: int | None = None) -> list[DecodedBatch]:
        """What has been decoded, in order; `rows_max` rows at most."""
        given: list[DecodedBatch] = []
        with self._lock:
            self._look_at_news()
            while self._decoded and (rows_max is None or rows_max > 0):
                batch = self._decoded.popleft()
                if rows_max is not None:
                    if batch.num_rows > rows_max:
                        rest = batch.slice(rows_max, batch.num_rows - rows_max)
                        self._decoded.appendleft(rest)
                        batch = batch.slice(0, rows_max)
                    rows_max -= batch.num_rows
                given.append(batch)
        return given

    def _look_at_news(self) -> None:
        while self._news:
            news = self._news.popleft()
            if isinstance(news, Fetched):
                self._fetched.extend(pieces_of(news))
            else:
                self._drop(news)

    def _drop(self, is_gone: IsGone) -> None:
        self._fetched = deque(each for each in self._fetched if not is_gone(each.bucket))
        self._decoded = deque(each for each in self._decoded if not is_gone(each.bucket))

    def _decoding(self, *, run_blocking: bool) -> Iterator[Decoded]:
        waiting = list(self._fetched)
        if run_blocking and len(waiting) > 1:
            return decode_ahead(self._decoder, waiting)
        return map(partial(decode_one, self._decoder), waiting)

    def _stop_at(self, decoded: Decoded) -> None:
        if decoded.rest is not None:
            self._fetched.appendleft(decoded.rest)
        if not self._decoded and decoded.error is not None:
            raise decoded.error
