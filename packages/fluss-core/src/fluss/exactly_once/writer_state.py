"""Asks the leaders of buckets for the last batch number that they know of a writer.

There is no request for that. A batch without records, with the greatest possible number, can never
be the next one, so it is always refused (error 31), and the refusal names both numbers. It costs
one request, appends nothing, and takes the end of the log into account, including batches that are
not replicated yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, error_from_code, unusable_answer
from fluss.model.paths import TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.leader_requests import Places, ask_leaders
from fluss.records.arrow.received_bytes import to_view
from fluss.records.log.log_writer import LogBody, write_log_batch
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_bucket
from fluss.wire.zero_copy.record_batches import (
    PRODUCE_LOG_REQUEST,
    ProduceLogRequest,
    WrittenBucket,
)
from fluss.write.plan_idempotence import last_known_sequence
from fluss.write.write_batch import ACKS_ALL

_SEQUENCE_MAX: Final = 2**31 - 1
_NOTHING: Final = LogBody(buffers=(), record_count=0, is_append_only=True)


async def known_sequences(
    cluster: Cluster, places: Places, writer_ids: Mapping[TableBucket, int], *, schema_id: int
) -> dict[TableBucket, int | None]:
    """Ask for the last number that the leader of each bucket knows of a writer.

    Args:
        cluster: The cluster.
        places: The buckets of one log table, and the table or partition each is of.
        writer_ids: The writer to ask for in each of them.
        schema_id: Any schema of the table.

    Returns:
        -1 where the leader does not know the writer; None where it does not report a number.
    """

    async def ask(
        server_id: int, buckets: list[TableBucket]
    ) -> dict[TableBucket, int | FlussError | None]:
        asked = {bucket: writer_ids[bucket] for bucket in buckets}
        refusals = await _ask(cluster, server_id, asked, schema_id)
        return {
            bucket: last_known_sequence(refusal)
            if refusal.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_EXCEPTION
            else refusal
            for bucket, refusal in refusals.items()
        }

    return await ask_leaders(cluster, places, ask)


async def _ask(
    cluster: Cluster, server_id: int, writer_ids: Mapping[TableBucket, int], schema_id: int
) -> dict[TableBucket, FlussError]:
    body = PRODUCE_LOG_REQUEST.write(
        ProduceLogRequest(
            acks=ACKS_ALL,
            table_id=next(iter(writer_ids)).table_id,
            timeout_ms=cluster.settings.request_timeout_ms,
            buckets_req=tuple(
                WrittenBucket(
                    partition_id=bucket.partition_id,
                    bucket_id=bucket.bucket_id,
                    routing_bucket_count=cluster.view.routing_count(bucket),
                    records=tuple(
                        to_view(each)
                        for each in write_log_batch(
                            _NOTHING,
                            schema_id=schema_id,
                            writer_id=writer_id,
                            batch_sequence=_SEQUENCE_MAX,
                        )
                    ),
                )
                for bucket, writer_id in writer_ids.items()
            ),
        )
    )
    answer = messages.read_message(
        messages.ProduceLogResponse, await cluster.send(server_id, ApiKey.PRODUCE_LOG, body)
    )
    table_id = next(iter(writer_ids)).table_id
    errors = {
        read_bucket(table_id, found): found
        for found in answer.buckets_resp
        if found.HasField("error_code")
    }
    return {bucket: _error_of(bucket, errors.get(bucket)) for bucket in writer_ids}


def _error_of(bucket: TableBucket, answer: messages.PbProduceLogRespForBucket | None) -> FlussError:
    if answer is None:
        why = f"it accepts a batch of bucket {bucket.bucket_id} that must be refused, or names no result"
        return unusable_answer("PRODUCE_LOG", why)
    message = answer.error_message if answer.HasField("error_message") else None
    return error_from_code(answer.error_code, message, bucket=bucket.bucket_id)
