"""The offsets of a lake snapshot: up to where each bucket has been copied, as JSON in a file.

The format is that of Fluss (`TableBucketOffsetsJsonSerde`). The index in a list is the bucket id;
-1 marks an unknown offset.

    {"version": 1, "table_id": 3, "bucket_offsets": [5, -1, 9]}
    {"version": 1, "table_id": 3,
     "partition_offsets": [{"partition_id": 7, "bucket_offsets": [5]}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fluss.errors import CorruptDataError

VERSION: Final = 1
UNKNOWN: Final = -1

# The offset after the last copied row, by partition id (None where there are none) and bucket.
Offsets = Mapping[tuple[int | None, int], int]


def offsets_to_json(table_id: int, offsets: Offsets) -> str:
    """Return the text of a file."""
    content: dict[str, Any] = {"version": VERSION, "table_id": table_id}
    by_partition: dict[int | None, dict[int, int]] = {}
    for (partition_id, bucket), offset in offsets.items():
        by_partition.setdefault(partition_id, {})[bucket] = offset
    if None in by_partition:
        content["bucket_offsets"] = _listed(by_partition[None])
    elif by_partition:
        content["partition_offsets"] = [
            {"partition_id": partition_id, "bucket_offsets": _listed(of_buckets)}
            for partition_id, of_buckets in sorted(
                by_partition.items(), key=lambda each: each[0] or 0
            )
        ]
    return json.dumps(content, separators=(",", ":"))


def offsets_from_json(text: str | bytes, *, table_id: int) -> dict[tuple[int | None, int], int]:
    """Read the text of a file.

    Raises:
        CorruptDataError: The text is not a file of offsets, or belongs to another table.
    """
    try:
        content = json.loads(text)
        identity = (content["version"], content["table_id"])
        found = _read_list(None, content.get("bucket_offsets", []))
        for partition in content.get("partition_offsets", []):
            found |= _read_list(int(partition["partition_id"]), partition["bucket_offsets"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(table_id, "its text is not a file of offsets") from error
    if identity != (VERSION, table_id):
        raise _damaged(table_id, f"it is version {identity[0]} of table {identity[1]}")
    return found


def _damaged(table_id: int, why: str) -> CorruptDataError:
    return CorruptDataError(
        f"The file of lake offsets of table {table_id} cannot be read: {why}.",
        what="file of lake offsets",
        at=0,
        why=why,
    )


def _listed(of_buckets: Mapping[int, int]) -> list[int]:
    return [of_buckets.get(bucket, UNKNOWN) for bucket in range(max(of_buckets) + 1)]


def _read_list(partition_id: int | None, listed: list[Any]) -> dict[tuple[int | None, int], int]:
    return {
        (partition_id, bucket): int(offset)
        for bucket, offset in enumerate(listed)
        if int(offset) != UNKNOWN
    }
