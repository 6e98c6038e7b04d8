"""Moving replicas between tablet servers: tags, goals, progress (Java: `cluster.rebalance`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fluss.model.cluster.codes import NamedCode
from fluss.model.paths import TableBucket


class ServerTag(NamedCode):
    """Marks tablet servers that a rebalance shall empty."""

    PERMANENT_OFFLINE = "PERMANENT_OFFLINE"
    TEMPORARY_OFFLINE = "TEMPORARY_OFFLINE"


class GoalType(NamedCode):
    """What a rebalance aims at."""

    REPLICA_DISTRIBUTION = "REPLICA_DISTRIBUTION"
    LEADER_DISTRIBUTION = "LEADER_DISTRIBUTION"
    RACK_AWARE = "RACK_AWARE"


class RebalanceStatus(NamedCode):
    """The state of a rebalance, or of one bucket in it."""

    NOT_STARTED = "NOT_STARTED"
    REBALANCING = "REBALANCING"
    FAILED = "FAILED"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    TIMEOUT = "TIMEOUT"

    @property
    def is_final(self) -> bool:
        """Whether it changes no more."""
        return self not in {RebalanceStatus.NOT_STARTED, RebalanceStatus.REBALANCING}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceResultForBucket:
    """What a rebalance does with one bucket.

    Attributes:
        bucket: The bucket.
        original_leader: The server that led it; None for none.
        new_leader: The server that shall lead it; None for none.
        original_replicas: The servers that had it.
        new_replicas: The servers that shall have it.
        status: How far it is; None for a state that this package does not know.
    """

    bucket: TableBucket
    original_leader: int | None
    new_leader: int | None
    original_replicas: tuple[int, ...]
    new_replicas: tuple[int, ...]
    status: RebalanceStatus | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceProgress:
    """How far a rebalance is.

    Attributes:
        rebalance_id: Its id.
        status: Its state; None for one that this package does not know.
        progress_for_bucket_map: What it does with each bucket that it moves.
    """

    rebalance_id: str
    status: RebalanceStatus | None
    progress_for_bucket_map: Mapping[TableBucket, RebalanceResultForBucket] = field(hash=False)

    @property
    def progress(self) -> float | None:
        """The share of buckets that are finished, from 0 to 1; None where nothing has to move."""
        moved = self.progress_for_bucket_map.values()
        if not moved:
            return None
        finished = sum(each.status is not None and each.status.is_final for each in moved)
        return finished / len(moved)

    def format_as_percentage(self) -> str:
        """The progress as a text: `62.50%`, or `NONE` where nothing has to move."""
        return "NONE" if self.progress is None else f"{self.progress:.2%}"

    def __str__(self) -> str:
        count = len(self.progress_for_bucket_map)
        if not count:
            return f"rebalance {self.rebalance_id}: {self.status}, nothing to move"
        noun = "bucket" if count == 1 else "buckets"
        done = self.format_as_percentage()
        return f"rebalance {self.rebalance_id}: {self.status}, {done} of {count} {noun}"
