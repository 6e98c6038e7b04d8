"""Small things that several handlers need: codes in a bucket's answer, partitions."""

from __future__ import annotations

from typing import Any

from fluss_server.server_errors import code_and_text

_TEXT_CHARS_MAX = 4_000


def refusal(error: BaseException) -> dict[str, Any]:
    """The fields in which a bucket's answer says why it was refused."""
    code, text = code_and_text(error)
    return {"error_code": code, "error_message": text[:_TEXT_CHARS_MAX]}


def partition_id_of(message: Any) -> int | None:
    """The partition that a protobuf message names, if it names one."""
    return message.partition_id if message.HasField("partition_id") else None
