"""Offsets that producers register under a name, to find them after a restart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fluss.admin.requests import AdminRequests
from fluss.errors import InvalidValueError
from fluss.model.paths import TableBucket
from fluss.model.producer_offsets import ProducerOffsetsResult, RegisterResult
from fluss.wire import messages
from fluss.wire.table_paths import read_bucket

_CREATED = 0


class ProducerAdmin(AdminRequests):
    """Registers, reads and deletes offsets of producers."""

    async def register_producer_offsets(
        self, producer_id: str, offsets: Mapping[TableBucket, int], *, ttl_ms: int | None = None
    ) -> RegisterResult:
        """Register offsets under a name: `{bucket: offset}`. The first registration stays.

        Args:
            producer_id: A name of ASCII letters, digits, `_` and `-`.
            offsets: The offset of each bucket, of any tables.
            ttl_ms: How long they are kept; the servers' default, one day, otherwise.

        Raises:
            ServerError: The name breaks a rule.
        """
        if ttl_ms is not None and ttl_ms < 1:
            raise InvalidValueError(f"Offsets are kept for at least 1 millisecond, not {ttl_ms}.")
        by_table: dict[int, dict[TableBucket, int]] = defaultdict(dict)
        for bucket, offset in offsets.items():
            by_table[bucket.table_id][bucket] = offset
        request = messages.RegisterProducerOffsetsRequest(producer_id=producer_id, ttl_ms=ttl_ms)
        for table_id, buckets in by_table.items():
            table = request.table_offsets.add(table_id=table_id)
            for bucket, offset in buckets.items():
                table.bucket_offsets.add(
                    partition_id=bucket.partition_id,
                    bucket_id=bucket.bucket_id,
                    log_end_offset=offset,
                )
        answer = await self._cluster.ask_coordinator(
            request, messages.RegisterProducerOffsetsResponse
        )
        is_created = answer.result == _CREATED
        return RegisterResult.CREATED if is_created else RegisterResult.ALREADY_EXISTS

    async def get_producer_offsets(self, producer_id: str) -> ProducerOffsetsResult | None:
        """What is registered under a name; None where nothing is."""
        answer = await self._cluster.ask_coordinator(
            messages.GetProducerOffsetsRequest(producer_id=producer_id),
            messages.GetProducerOffsetsResponse,
        )
        if not answer.HasField("producer_id"):
            return None
        return ProducerOffsetsResult(
            answer.producer_id,
            {
                table.table_id: {
                    read_bucket(table.table_id, each): each.log_end_offset
                    for each in table.bucket_offsets
                }
                for table in answer.table_offsets
            },
            answer.expiration_time,
        )

    async def delete_producer_offsets(self, producer_id: str) -> None:
        """Delete what is registered under a name; where nothing is, that is no error."""
        await self._cluster.ask_coordinator(
            messages.DeleteProducerOffsetsRequest(producer_id=producer_id),
            messages.DeleteProducerOffsetsResponse,
        )
