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

# Chunks end behind a multiple of so many rows; where these weigh twice too much, at halves of them.
BLOCK_ROWS: Final = 2_048
_OFFSET_BYTES: Final = 4


def chunks(batches: Iterable[pa.RecordBatch], *, bytes_max: int) -> Iterator[pa.Table]:
    """The rows in chunks of about so many bytes.

    Args:
        batches: The rows, all of one schema.
        bytes_max: When a chunk is large enough, by the weight of its values.
    """
    gathered: list[pa.RecordBatch] = []
    weight = 0
    for block in _blocks(batches):
        weighs = sum(_weight_of_rows(each) for each in block)
        if weighs > 2 * bytes_max:
            if gathered:
                yield _whole(gathered)
                gathered, weight = [], 0
            yield from _halves(pa.Table.from_batches(block), weighs, bytes_max)
            continue
        gathered += block
        weight += weighs
        if weight >= bytes_max:
            yield _whole(gathered)
            gathered, weight = [], 0
    if gathered:
        yield _whole(gathered)


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """The rows in pieces of batches that make `BLOCK_ROWS` rows, but for the last."""
    block: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, BLOCK_ROWS - rows)
            start += piece.num_rows
            rows += piece.num_rows
            block.append(piece)
            if rows == BLOCK_ROWS:
                yield block
                block, rows = [], 0
    if block:
        yield block


def _halves(block: pa.Table, weighs: int, bytes_max: int) -> Iterator[pa.Table]:
    if weighs <= 2 * bytes_max or block.num_rows == 1:
        yield block.combine_chunks()
        return
    half = -(-block.num_rows // 2)
    for part in (block.slice(0, half), block.slice(half)):
        yield from _halves(part, sum(map(_weight_of_rows, part.to_batches())), bytes_max)


def _weight_of_rows(rows: pa.RecordBatch) -> int:
    return sum(map(weight_of, rows.columns))


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
