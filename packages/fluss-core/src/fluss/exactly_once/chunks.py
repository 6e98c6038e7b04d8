"""Cuts the rows of a task into the same chunks, whatever batches they come in.

A repeated task gets its rows in the same order, but perhaps in other batches. So rows are weighed
from the first on, by their values and not by the buffers that hold them: the same rows make the
same chunks, and each chunk the same batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fluss.write.change_frames import without_columns

# How many rows are weighed at a time, however many a batch has.
_PIECE_ROWS: Final = 16_384
_OFFSET_BYTES: Final = 4


def chunks(
    batches: Iterable[pa.RecordBatch],
    *,
    bytes_max: int,
    weightless: Collection[str] = (),
) -> Iterator[pa.Table]:
    """Cut rows into chunks, each of which ends with the row that makes it large enough.

    Args:
        batches: The rows, all of one schema.
        bytes_max: When a chunk is large enough, by the weight of its values.
        weightless: Columns that do not count, because an earlier attempt did not have them.
    """
    gathered: list[pa.RecordBatch] = []
    missing = bytes_max
    for rest in _pieces(batches):
        while rest.num_rows:
            weighed = without_columns(rest, weightless)
            count, weighs = _rows_that_weigh(missing, weighed)
            gathered.append(rest.slice(0, count))
            rest = rest.slice(count)  # noqa: PLW2901 - what is left of the piece
            missing -= weighs
            if missing <= 0:
                yield _whole(gathered)
                gathered, missing = [], bytes_max
    if gathered:
        yield _whole(gathered)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, _PIECE_ROWS):
            yield batch.slice(start, _PIECE_ROWS)


def _rows_that_weigh(least: int, rows: pa.RecordBatch) -> tuple[int, int]:
    """How many first rows weigh at least this much, all where they do not; and their weight."""
    weight = _weight_of_rows(rows)
    if weight < least:
        return rows.num_rows, weight
    # Fewer than `low` rows never weigh enough, `count` always do.
    low, lighter, count = 0, 0, rows.num_rows
    while count - low > 1:
        middle = (low + count) // 2
        weighs = lighter + _weight_of_rows(rows.slice(low, middle - low))
        if weighs < least:
            low, lighter = middle, weighs
        else:
            count, weight = middle, weighs
    return count, weight


def _weight_of_rows(rows: pa.RecordBatch) -> int:
    return int(rows.num_rows) + sum(map(weight_of, rows.columns))


def weight_of(array: Any) -> int:
    """About how many bytes the values of an array take, wherever it was cut from.

    NULL takes none: a column that was added later, and has no values, moves no end of a chunk.
    """
    kind = array.type
    present = len(array) - int(array.null_count)
    if not present:
        return 0
    if pa.types.is_struct(kind):
        return sum(map(weight_of, array.flatten()))
    if pa.types.is_map(kind):  # which is a list of pairs
        pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return weight_of(array.cast(pa.list_(pair)))
    if pa.types.is_nested(kind):
        return present * _OFFSET_BYTES + weight_of(array.flatten())
    try:
        return present * max(1, int(kind.bit_width) // 8)
    except ValueError:  # it has no fixed width
        return present * _OFFSET_BYTES + int(pc.sum(pc.binary_length(array)).as_py() or 0)


def _whole(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks()
