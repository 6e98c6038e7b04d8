"""Cuts a task's rows into chunks that come out the same however the rows were handed over.

Whoever writes rows again gets them in the same order, but perhaps in other batches. So rows are
counted from the first on, and weighed by their values, not by the buffers that hold them: the same
rows make the same chunks, and each chunk the same batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

# Chunks end behind a multiple of so many rows.
BLOCK_ROWS: Final = 2_048
_OFFSET_BYTES: Final = 4


def chunks(batches: Iterable[pa.RecordBatch], *, bytes_max: int) -> Iterator[pa.Table]:
    """The rows in chunks of about so many bytes, and at least `BLOCK_ROWS` rows but for the last.

    Args:
        batches: The rows, all of one schema.
        bytes_max: When a chunk is large enough, by the weight of its values.
    """
    gathered: list[pa.RecordBatch] = []
    weight = rows = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, BLOCK_ROWS - rows % BLOCK_ROWS)
            start += piece.num_rows
            rows += piece.num_rows
            weight += sum(map(weight_of, piece.columns))
            gathered.append(piece)
            if rows % BLOCK_ROWS == 0 and weight >= bytes_max:
                yield _whole(gathered)
                gathered, weight = [], 0
    if gathered:
        yield _whole(gathered)


def weight_of(array: Any) -> int:
    """About how many bytes the values of an array take, wherever it was cut from."""
    kind = array.type
    if pa.types.is_struct(kind):
        return sum(map(weight_of, array.flatten()))
    if pa.types.is_map(kind):  # which is a list of pairs
        pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return weight_of(array.cast(pa.list_(pair)))
    if pa.types.is_nested(kind):
        return len(array) * _OFFSET_BYTES + weight_of(array.flatten())
    if pa.types.is_null(kind):
        return 0
    try:
        return int(len(array) * max(1, kind.bit_width // 8))
    except ValueError:  # it has no fixed width
        return len(array) * _OFFSET_BYTES + (pc.sum(pc.binary_length(array)).as_py() or 0)


def _whole(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks()
