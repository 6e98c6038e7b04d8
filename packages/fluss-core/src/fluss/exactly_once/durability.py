"""Whether a server that has no replicas keeps what it acknowledged all the same.

Fluss 0.9.1 does not: a tablet server that crashes takes its log back to what was certain seconds
before. The embedded server does, and says so among its options; no other server has this one.
"""

from __future__ import annotations

from typing import Final

from fluss.errors import FlussError
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.api import ApiKey

DURABILITY_KEY: Final = "embedded.durability"
REPLICAS_KEY: Final = "default.replication.factor"
_KEEPING: Final = frozenset({"process", "disk"})


async def keeps_without_replicas(cluster: Cluster) -> bool:
    """Whether one replica is enough; no, where nobody says or may ask."""
    return (await _options(cluster)).get(DURABILITY_KEY) in _KEEPING


async def default_replicas(cluster: Cluster) -> int:
    """How many replicas a table has that does not say; one, where nobody says or may ask."""
    said = (await _options(cluster)).get(REPLICAS_KEY, "")
    return int(said) if said.isascii() and said.isdecimal() else 1


async def _options(cluster: Cluster) -> dict[str, str]:
    try:
        answer = await cluster.ask_any(
            ApiKey.DESCRIBE_CLUSTER_CONFIGS,
            messages.DescribeClusterConfigsRequest(),
            messages.DescribeClusterConfigsResponse,
        )
    except FlussError:
        return {}
    return {each.config_key: each.config_value for each in answer.configs}
