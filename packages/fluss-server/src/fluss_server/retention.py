"""Retention: which segments of a bucket's log are deleted.

Old rows are deleted in whole segments. Three kinds of rows are kept: changes that the stored state
of a primary-key table does not have yet, those that its newest KV snapshot does not have, and rows
of a table with a lake that were not copied into it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fluss.errors import FlussError

if TYPE_CHECKING:
    from fluss_server.server_node import Node
    from fluss_server.tablets import Tablet

_LOG = logging.getLogger(__name__)


async def expire_log(node: Node, tablet: Tablet) -> None:
    """Delete the segments of a bucket that have expired.

    Raises:
        OSError: A segment cannot be deleted.
    """
    now_ms = node.now_ms()
    ttl_ms = tablet.table.info.options.log_ttl_ms
    older_than_ms = now_ms - ttl_ms if ttl_ms > 0 else None
    floor: int | None = None
    if tablet.table.descriptor.has_primary_key:
        floor = await _end_of_rows(node, tablet, older_than_ms)
    if tablet.table.info.options.datalake_enabled:
        tiered = await _tiered_end(node, tablet)
        floor = tiered if floor is None else min(floor, tiered)
    async with tablet.lock.reserve():
        if tablet.is_dropped:
            return
        tablet.log.writers.expire(now_ms=now_ms)
        await node.in_storage(
            tablet.log.expire,
            older_than_ms=older_than_ms,
            bytes_max=node.config.retention_bytes,
            floor=floor,
        )


async def _end_of_rows(node: Node, tablet: Tablet, older_than_ms: int | None) -> int:
    """Return the offset from which the rows by key still need the log."""
    state = tablet.state
    if state is None:
        # Until the state is open, it is unknown how much of the log the state needs.
        return tablet.log.start_offset
    bytes_max = node.config.retention_bytes
    expired_end = tablet.log.expired_end(older_than_ms=older_than_ms, bytes_max=bytes_max)
    floor: int | None = None
    if node.snapshots.interval_ms and expired_end > tablet.log.start_offset:
        floor = await node.snapshots.hold_log(tablet, expired_end)
    return state.applied_offset if floor is None else min(floor, state.applied_offset)


async def _tiered_end(node: Node, tablet: Tablet) -> int:
    try:
        return await node.in_storage(node.tiered.end_of, tablet.table, tablet.bucket)
    except (FlussError, OSError) as error:
        _LOG.warning("the log of %s is kept: %s", tablet.bucket, error)
        return 0
