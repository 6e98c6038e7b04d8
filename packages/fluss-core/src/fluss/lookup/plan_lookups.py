"""Which lookups travel together, and when: at once, or with those that wait already.

A lookup that finds nothing under way to its server leaves alone and at once; those that come while
an answer is awaited are gathered and leave together. So a single lookup is as fast as the network,
and many are as few requests as can be, without any waiting on purpose.

What is not here: sending and answering (`lookup.lookup_queue`), keys and rows
(`lookup.lookup_cores`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

QuestionT = TypeVar("QuestionT")

KEYS_PER_REQUEST_MAX = 4_096
REQUESTS_IN_FLIGHT_PER_WAY_MAX = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How lookups travel.

    Attributes:
        keys_per_request_max: How many go in one request.
        in_flight_max: How many requests of one table and kind are on their way to one server.
        retries_max: How often one is sent again.
    """

    keys_per_request_max: int = KEYS_PER_REQUEST_MAX
    in_flight_max: int = REQUESTS_IN_FLIGHT_PER_WAY_MAX
    retries_max: int = 2**31 - 1


@dataclass(slots=True)
class _Way(Generic[QuestionT]):
    waiting: deque[QuestionT] = field(default_factory=deque)
    in_flight: int = 0


class LookupPlan(Generic[QuestionT]):
    """Gathers lookups by the way they go: same server, same table, same kind of request."""

    def __init__(
        self,
        *,
        keys_per_request_max: int = KEYS_PER_REQUEST_MAX,
        in_flight_max: int = REQUESTS_IN_FLIGHT_PER_WAY_MAX,
    ) -> None:
        self._keys_per_request_max = keys_per_request_max
        self._in_flight_max = in_flight_max
        self._ways: dict[Hashable, _Way[QuestionT]] = {}

    def add(self, way: Hashable, questions: Iterable[QuestionT]) -> None:
        """Questions that go this way, some time soon."""
        found = self._ways.get(way)
        if found is None:
            found = self._ways[way] = _Way()
        found.waiting.extend(questions)

    def next_batch(self, way: Hashable) -> list[QuestionT]:
        """The questions that leave now, as one request; none while the way is full.

        Who takes a batch must call `finished` for it.
        """
        found = self._ways.get(way)
        if found is None or not found.waiting or found.in_flight >= self._in_flight_max:
            return []
        if len(found.waiting) <= self._keys_per_request_max:
            batch = list(found.waiting)
            found.waiting.clear()
        else:
            batch = [found.waiting.popleft() for _ in range(self._keys_per_request_max)]
        found.in_flight += 1
        return batch

    def finished(self, way: Hashable) -> None:
        """A request of this way has been answered, or has failed."""
        found = self._ways[way]
        found.in_flight -= 1
        if not found.in_flight and not found.waiting:
            del self._ways[way]

    @property
    def waiting(self) -> int:
        """How many questions have not left yet."""
        return sum(len(way.waiting) for way in self._ways.values())
