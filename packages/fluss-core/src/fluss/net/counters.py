"""What a connection has done so far, in numbers: requests, bytes, batches, retries, latencies.

Counters are plain integers that only the engine thread changes, so reading them from any thread
needs no lock and costs the hot path next to nothing. A snapshot is a dictionary; formatting,
sending and resetting are left to others.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

LATENCIES_KEPT_MAX = 1_024  # per kind of request; the oldest are dropped


@dataclass(slots=True)
class RequestCounters:
    """Outcomes of the requests of one kind."""

    sent: int = 0
    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    latencies_s: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT_MAX))

    def answer(self, latency_s: float) -> None:
        """Count an answer and keep how long it took."""
        self.latencies_s.append(latency_s)
        self.answered += 1

    def snapshot(self) -> dict[str, float]:
        """The counts, with the median and the 99th percentile of the latencies that are kept."""
        ordered = sorted(self.latencies_s)
        facts: dict[str, float] = {
            "sent": self.sent,
            "answered": self.answered,
            "failed": self.failed,
            "timed_out": self.timed_out,
        }
        if ordered:
            facts["latency_ms_p50"] = ordered[len(ordered) // 2] * 1_000
            facts["latency_ms_p99"] = ordered[len(ordered) * 99 // 100] * 1_000
        return facts


@dataclass(slots=True)
class Counters:
    """What one connection has done since it was made."""

    bytes_sent: int = 0
    bytes_received: int = 0
    connections_opened: int = 0
    connections_lost: int = 0
    metadata_refreshes: int = 0
    retries: int = 0
    batches_written: int = 0
    rows_written: int = 0
    batches_read: int = 0
    rows_read: int = 0
    remote_reads: int = 0
    remote_bytes_read: int = 0
    requests: defaultdict[str, RequestCounters] = field(
        default_factory=lambda: defaultdict(RequestCounters)
    )

    def of(self, api: str) -> RequestCounters:
        """The counters of one kind of request."""
        return self.requests[api]

    def snapshot(self) -> dict[str, object]:
        """All counts at this moment, as plain values."""
        totals = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "requests"
        }
        return {
            **totals,
            "requests": {api: each.snapshot() for api, each in sorted(self.requests.items())},
        }
