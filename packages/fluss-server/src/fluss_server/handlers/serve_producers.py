"""REGISTER, GET and DELETE of producer offsets: where a restarted writer resumes."""

from __future__ import annotations

import re
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.cluster.acls import OperationType
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.catalog.catalog_entries import ProducerOffsets
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node

TTL_MS: Final = 86_400_000  # coordinator.producer-offsets.ttl
CREATED, ALREADY_EXISTS = range(2)
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_TIME_MAX: Final = 2**63 - 1


def register(
    node: Node, call: Call, request: pb.RegisterProducerOffsetsRequest
) -> pb.RegisterProducerOffsetsResponse:
    """Store offsets, unless the producer has some that have not expired."""
    del call
    producer_id = _checked(request.producer_id)
    now_ms = node.now_ms()
    known = node.catalog.producer(producer_id)
    if known is not None and known.expires_ms > now_ms:
        return pb.RegisterProducerOffsetsResponse(result=ALREADY_EXISTS)
    ttl_ms = request.ttl_ms if request.HasField("ttl_ms") else TTL_MS
    body = pb.GetProducerOffsetsResponse(table_offsets=request.table_offsets)
    node.catalog.put_producer(
        ProducerOffsets(
            producer_id=producer_id,
            expires_ms=min(now_ms + ttl_ms, _TIME_MAX),
            body=body.SerializeToString(),
        )
    )
    return pb.RegisterProducerOffsetsResponse(result=CREATED)


def get(
    node: Node, call: Call, request: pb.GetProducerOffsetsRequest
) -> pb.GetProducerOffsetsResponse:
    """Return the stored offsets, expired or not; an empty response where there are none."""
    known = node.catalog.producer(_checked(request.producer_id))
    if known is None:
        return pb.GetProducerOffsetsResponse()
    response = pb.GetProducerOffsetsResponse.FromString(known.body)
    _check(node, call, OperationType.READ, response)
    response.producer_id = known.producer_id
    response.expiration_time = known.expires_ms
    return response


def delete(
    node: Node, call: Call, request: pb.DeleteProducerOffsetsRequest
) -> pb.DeleteProducerOffsetsResponse:
    """Delete the stored offsets."""
    known = node.catalog.producer(_checked(request.producer_id))
    if known is not None:
        stored = pb.GetProducerOffsetsResponse.FromString(known.body)
        _check(node, call, OperationType.WRITE, stored)
        node.catalog.drop_producers([known.producer_id])
    return pb.DeleteProducerOffsetsResponse()


def _check(
    node: Node, call: Call, operation: OperationType, stored: pb.GetProducerOffsetsResponse
) -> None:
    """Refuse a user who may not do this with each of the tables."""
    tables = (each.table_id for each in stored.table_offsets)
    node.access.check_tables(call.caller.user, operation, tables)


def _checked(producer_id: str) -> str:
    if not _ID.fullmatch(producer_id):
        raise request_error(
            ErrorCode.INVALID_PRODUCER_ID_EXCEPTION,
            f"The producer id {producer_id[:40]!r} is not 1 to 200 ASCII letters, digits, '_' and '-'.",
        )
    return producer_id


HANDLERS = (
    message_handler(ApiKey.REGISTER_PRODUCER_OFFSETS, register),
    message_handler(ApiKey.GET_PRODUCER_OFFSETS, get),
    message_handler(ApiKey.DELETE_PRODUCER_OFFSETS, delete),
)
