"""Producer offsets: small lists of numbers that the coordinator keeps under a name.

The first registration of a name counts, and stays until it is deleted. Fluss stores the offsets of
buckets there; a list of numbers is stored as the offsets of the buckets 0, 1, 2, …, none of which
may be negative, because -1 stands for a bucket that was left out. The callers know what the numbers
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluss.connection.connection import TableHandle
from fluss.errors import ProtocolError
from fluss.exactly_once.plan_claims import REGISTERED_MS
from fluss.net.cluster_client import Cluster
from fluss.wire import messages

_CREATED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The numbers that are registered under a name, and their table."""

    table_id: int
    numbers: tuple[int, ...]


async def register(
    table: TableHandle, name: str, numbers: Sequence[int], *, ttl_ms: int = REGISTERED_MS
) -> bool:
    """Register numbers of a table under a name, unless some are; waits for a coordinator.

    Returns:
        Whether these numbers were registered. After a lost answer it may be False although they
        were.
    """
    request = messages.RegisterProducerOffsetsRequest(producer_id=name, ttl_ms=ttl_ms)
    offsets = request.table_offsets.add(table_id=table.info.table_id)
    for place, number in enumerate(numbers):
        offsets.bucket_offsets.add(bucket_id=place, log_end_offset=number)
    answer = await table.connection.cluster.ask_coordinator(
        request, messages.RegisterProducerOffsetsResponse
    )
    return bool(answer.result == _CREATED)


async def registered(cluster: Cluster, name: str) -> Registered | None:
    """Read the numbers that are registered under a name.

    Raises:
        ProtocolError: The entry is no list of numbers.
    """
    answer = await cluster.ask_coordinator(
        messages.GetProducerOffsetsRequest(producer_id=name),
        messages.GetProducerOffsetsResponse,
    )
    if not answer.HasField("expiration_time"):
        return None
    numbers = {
        each.bucket_id: each.log_end_offset
        for table in answer.table_offsets
        for each in table.bucket_offsets
    }
    if len(answer.table_offsets) != 1 or sorted(numbers) != list(range(len(numbers))):
        why = "it is no list of numbers of one table"
        raise ProtocolError(
            f"What is registered as {name!r} cannot be used: {why}.",
            what="producer offsets",
            at=0,
            why=why,
        )
    return Registered(
        table_id=answer.table_offsets[0].table_id,
        numbers=tuple(numbers[each] for each in range(len(numbers))),
    )


async def forget(cluster: Cluster, name: str) -> None:
    """Delete the entry of a name, if there is one."""
    await cluster.ask_coordinator(
        messages.DeleteProducerOffsetsRequest(producer_id=name),
        messages.DeleteProducerOffsetsResponse,
    )
