"""Which lookups are sent together, and when.

A lookup with no request in flight to its server is sent immediately and alone. Those that come
while an answer is awaited are gathered and sent together. So a single lookup is as fast as the
network, and many become as few requests as possible, without any artificial delay.

Not here: sending and answering (`lookup.lookup_queue`), keys and rows (`lookup.lookup_cores`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

LookupT = TypeVar("LookupT")


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How lookups are batched and retried.

    Attributes:
        keys_per_request_max: The most keys in one request.
        in_flight_max: The most requests of one table and kind in flight to one server.
        retries_max: The most retries of a lookup.
    """

    keys_per_request_max: int = 4_096
    in_flight_max: int = 2
    retries_max: int = 2**31 - 1


_USUAL = LookupSettings()


@dataclass(slots=True)
class _Route(Generic[LookupT]):
    waiting: deque[LookupT] = field(default_factory=deque)
    in_flight: int = 0


class LookupPlan(Generic[LookupT]):
    """Gathers lookups by route: same server, same table, same kind of request."""

    def __init__(self, settings: LookupSettings = _USUAL) -> None:
        self._keys_per_request_max = settings.keys_per_request_max
        self._in_flight_max = settings.in_flight_max
        self._routes: defaultdict[Hashable, _Route[LookupT]] = defaultdict(_Route)

    def add(self, route: Hashable, lookups: Iterable[LookupT]) -> None:
        """Add lookups to a route."""
        self._routes[route].waiting.extend(lookups)

    def next_batch(self, route: Hashable) -> list[LookupT]:
        """The lookups to send now as one request; none while the route is full.

        The caller must call `finished` for every batch.
        """
        found = self._routes.get(route)
        if found is None or not found.waiting or found.in_flight >= self._in_flight_max:
            return []
        if len(found.waiting) <= self._keys_per_request_max:
            batch = list(found.waiting)
            found.waiting.clear()
        else:
            batch = [found.waiting.popleft() for _ in range(self._keys_per_request_max)]
        found.in_flight += 1
        return batch

    def finished(self, route: Hashable) -> None:
        """Note that a request of this route was answered, or failed."""
        found = self._routes[route]
        found.in_flight -= 1
        if not found.in_flight and not found.waiting:
            del self._routes[route]
