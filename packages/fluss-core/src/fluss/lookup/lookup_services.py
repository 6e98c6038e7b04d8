"""What lookups keep once per connection: the queue in which they are gathered into requests."""

from __future__ import annotations

from fluss.connection.connection import ClientConnection
from fluss.lookup.lookup_queue import LookupQueue
from fluss.lookup.plan_lookups import LookupSettings
from fluss.model.options.config import Config


def lookup_queue(connection: ClientConnection) -> LookupQueue:
    """The queue of all lookups of a connection."""
    return connection.service(_make_queue)


def lookup_settings(config: Config) -> LookupSettings:
    """How many lookups travel together, and how often they are sent again."""
    return LookupSettings(
        keys_per_request_max=config.lookup_max_batch_size,
        in_flight_max=config.lookup_max_inflight_requests,
        retries_max=config.lookup_max_retries,
    )


def _make_queue(connection: ClientConnection) -> LookupQueue:
    queue = LookupQueue(connection.cluster, lookup_settings(connection.options))

    async def close(_delivery_s: float) -> None:
        queue.close()

    connection.at_close(close)
    return queue
