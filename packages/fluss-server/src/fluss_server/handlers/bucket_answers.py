"""Response fields that the handlers of many API keys share: a bucket's error, its partition id."""

from __future__ import annotations

from typing import Any

from fluss.error_codes import ErrorCode
from fluss_server.server_errors import code_and_text, request_error

_TEXT_CHARS_MAX = 4_000


def error_fields(error: BaseException) -> dict[str, Any]:
    """Return the fields of a bucket's response that report an error."""
    code, text = code_and_text(error)
    return {"error_code": code, "error_message": text[:_TEXT_CHARS_MAX]}


def set_error(response: Any, error: BaseException) -> None:
    """Set the same fields in a bucket's protobuf response."""
    for name, value in error_fields(error).items():
        setattr(response, name, value)


def bucket_count_of(message: Any) -> int | None:
    """Return the bucket count that a request was routed by; None where it has none."""
    return message.routing_bucket_count if message.HasField("routing_bucket_count") else None


def check_not_historical(requested: Any) -> None:
    """Refuse rows of a historical partition: they are in a lake, which this server does not have.

    Raises:
        FlussError: The bucket's request names such a partition; the code is 43.
    """
    if requested.original_partition_name is not None:
        raise request_error(
            ErrorCode.PARTITION_SPEC_INVALID_EXCEPTION,
            f"The embedded server has no historical partitions, and the request names "
            f"{requested.original_partition_name!r} as one.",
        )


def partition_id_of(message: Any) -> int | None:
    """Return the partition id of a protobuf message; None where it has none."""
    return message.partition_id if message.HasField("partition_id") else None
