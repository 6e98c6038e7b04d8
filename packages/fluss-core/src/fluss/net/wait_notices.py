"""Reports what calls wait for: one line in the log after five seconds, then fewer and fewer.

Python shows warnings of a logger without a handler on the standard error, so users of a terminal, a
notebook and a program that has set up nothing see them; others find them under `fluss.waiting`.

All calls of a process share the pause between two lines: a server that is gone stops many calls at
the same moment, and one line is enough for them. Lives on the engine's thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fluss.net.operation_deadline import Operation

log = logging.getLogger("fluss.waiting")

NOTICE_AFTER_S: Final = 5.0
PAUSE_FIRST_S: Final = 5.0
PAUSE_S_MAX: Final = 60.0
TICK_S: Final = 1.0
REST_S: Final = 3.0  # longer than any pause between two attempts


class WaitNotices:
    """Looks once a second at the calls in progress.

    Args:
        report: Gets the line.
    """

    def __init__(self, report: Callable[[str], None] = log.warning) -> None:
        self._report = report
        self._calls: set[Operation] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._silent_until = self._last_seen = float("-inf")
        self._pause_s = PAUSE_FIRST_S

    def begin(self, call: Operation) -> None:
        """Note that a call begins."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a fork has another, and none of the calls
            self._loop, self._timer, self._calls = loop, None, set()
        self._calls.add(call)
        if self._timer is None:
            self._timer = loop.call_later(TICK_S, self._tick)

    def end(self, call: Operation) -> None:
        """Note that a call has ended. Idempotent."""
        self._calls.discard(call)

    def retried(
        self, waits_for: str, trouble: str, *, since: float, now: float, limit_ms: int
    ) -> None:
        """Note a retry of something that is no call: a batch, or a bucket that is read.

        Args:
            waits_for: What it waits for, as a clause.
            trouble: The error of its last attempt, in words.
            since: When it began to wait.
            now: The time, on the same clock.
            limit_ms: After how long it is given up.
        """
        # A last retry after the limit is about to end.
        if NOTICE_AFTER_S <= now - since <= max(limit_ms / 1_000, NOTICE_AFTER_S):
            self._notice(waits_for, trouble, now - since, limit_ms, others=0, now=now)

    def _tick(self) -> None:
        self._timer = None
        if self._loop is None or not self._calls:
            return
        now = self._loop.time()
        late = [
            each
            for each in self._calls
            if now - each.begun_at - each.idle_s >= NOTICE_AFTER_S and each.waits_for is not None
        ]
        if late:
            oldest = min(late, key=lambda call: call.begun_at)
            self._notice(
                str(oldest.waits_for),
                oldest.trouble,
                now - oldest.begun_at,
                oldest.limit_ms,
                others=len(late) - 1,
                now=now,
            )
        self._timer = self._loop.call_later(TICK_S, self._tick)

    def _notice(
        self,
        waits_for: str,
        trouble: str | None,
        waited_s: float,
        limit_ms: int,
        *,
        others: int,
        now: float,
    ) -> None:
        if now - self._last_seen > REST_S:
            self._pause_s, self._silent_until = PAUSE_FIRST_S, now  # all was well meanwhile
        self._last_seen = now
        if now < self._silent_until:
            return
        self._silent_until = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        after = "" if trouble is None else f"; it is tried again after: {trouble.rstrip('.')}"
        more = f", as {others} more calls do" if others else ""
        self._report(
            f"fluss: waiting for {waits_for} since {waited_s:.0f} s{more}{after} "
            f"(given up after {limit_ms / 1_000:g} s, 'operation-timeout')"
        )


notices = WaitNotices()
