"""Finds how far the clock of a server is from ours, by yes-or-no answers.

A server refuses a time that lies in its future, so each answer says on which side of a guess its
clock is. The interval is widened until it holds the difference, and then halved.
"""

from __future__ import annotations

from typing import Final

FIRST_MS: Final = 1_000
WIDEST_MS: Final = 7 * 24 * 3_600_000
PRECISION_MS: Final = 10
QUESTIONS_MAX: Final = 64
_WIDENING: Final = 4


class SkewSearch:
    """The search for `server's clock - our clock`, in milliseconds.

    Attributes:
        guess_ms: The next guess: is the server's clock less than this ahead of ours?
        questions: How many answers were noted.
    """

    def __init__(self) -> None:
        self._low: int | None = None
        self._high: int | None = None
        self.guess_ms = FIRST_MS
        self.questions = 0

    @property
    def is_done(self) -> bool:
        """Whether the interval is small enough, or the difference larger than any clock's."""
        if self.questions >= QUESTIONS_MAX:
            return True
        if self._low is not None and self._high is not None:
            return self._high - self._low <= PRECISION_MS
        return abs(self.guess_ms) > WIDEST_MS

    @property
    def skew_ms(self) -> int | None:
        """The difference; None where it is larger than a week."""
        if self._low is None or self._high is None:
            return None
        return (self._low + self._high) // 2

    def note(self, *, is_future: bool) -> None:
        """Note whether our time plus the guess lies in the server's future."""
        self.questions += 1
        if is_future:
            self._high = self.guess_ms
        else:
            self._low = self.guess_ms
        self.guess_ms = self._next()

    def _next(self) -> int:
        match (self._low, self._high):
            case (int() as low, int() as high):
                return (low + high) // 2
            case (int() as low, None):
                return low * _WIDENING if low > 0 else FIRST_MS
            case (_, int() as high) if high < 0:
                return high * _WIDENING
            case _:
                return -FIRST_MS
