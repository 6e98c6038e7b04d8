"""The health of a cluster's replicas, as its coordinator counts them."""

from __future__ import annotations

from dataclasses import dataclass

from fluss.model.cluster.codes import NamedCode


class ClusterHealthStatus(NamedCode):
    """GREEN: all is in sync. YELLOW: replicas are behind. RED: buckets have no leader."""

    GREEN = "GREEN"
    YELLOW = "YELLOW"
    RED = "RED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    """The health of a cluster's replicas.

    Attributes:
        num_replicas: How many replicas all buckets have.
        in_sync_replicas: How many of them are in sync.
        num_leader_replicas: How many buckets there are, each of which has one leader.
        active_leader_replicas: How many of these leaders are active.
        status: What follows.
    """

    num_replicas: int
    in_sync_replicas: int
    num_leader_replicas: int
    active_leader_replicas: int
    status: ClusterHealthStatus

    def __str__(self) -> str:
        return (
            f"{self.status}: {self.in_sync_replicas} of {self.num_replicas} replicas in sync, "
            f"{self.active_leader_replicas} of {self.num_leader_replicas} leaders active"
        )
