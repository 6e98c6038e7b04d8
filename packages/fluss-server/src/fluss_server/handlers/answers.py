"""Small things that several handlers need: paths, codes in a bucket's answer, table lookups."""

from __future__ import annotations

from typing import Any

from fluss.model.paths import TablePath
from fluss.wire import messages as pb
from fluss_server.refusals import code_and_text

_TEXT_CHARS_MAX = 4_000


def path_of(message: pb.PbTablePath) -> TablePath:
    """The path that a request names.

    Raises:
        InvalidNameError: No table can have it.
    """
    return TablePath(message.database_name, message.table_name)


def refusal(error: BaseException) -> dict[str, Any]:
    """The fields in which a bucket's answer says why it was refused."""
    code, text = code_and_text(error)
    return {"error_code": code, "error_message": text[:_TEXT_CHARS_MAX]}


def partition_id_of(message: Any) -> int | None:
    """The partition that a protobuf message names, if it names one."""
    return message.partition_id if message.HasField("partition_id") else None
