"""The distinct values of a column: a code per row, and each value once.

Costly work per value, such as printing or parsing it, is done per distinct value this way
(`rows.keys.partition_codes`, `rows.keys.hudi_keys`). Equal means bit for bit: 0.0 and -0.0 are two
values, and a NaN equals itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import BinaryType, DecimalType, TextFamily
from fluss.rows.buffers.byte_runs import UInt64Array, padded, words_of
from fluss.rows.buffers.columns import ByteArray, Column, Int64Array, Values
from fluss.rows.buffers.take import list_lengths, list_starts, take_rows, values_of

_WORD_BYTES = 8
# Keeps the bytes of a word that belong to the run, by their number.
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD_BYTES + 1)], np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distinct:
    """`codes[i]` is the code of row i; row `rows[code]` is the first one that has it.

    Codes are numbered in order of first appearance.
    """

    codes: Int64Array
    rows: Int64Array

    def __len__(self) -> int:
        return len(self.rows)

    def combined(self, other: Distinct) -> Distinct:
        """Combine two columns: rows are equal where both are."""
        if len(other) <= 1:
            return self
        if len(self) <= 1:
            return other
        # Neither has more codes than there are rows, so the product fits.
        return distinct_numbers(self.codes * len(other) + other.codes)


def distinct_values(column: Column) -> tuple[Distinct, list[Any]]:
    """Return the distinct values of a flat column: the codes, and a physical value for each.

    NULL is a value of its own: None.

    Raises:
        InvalidValueError: A text is not UTF-8.
    """
    found = _distinct_bits(column)
    if column.valid is not None:
        found = found.combined(distinct_numbers(column.valid))
    return found, _physical_values(take_rows(column, found.rows))


def distinct_numbers(values: Values) -> Distinct:
    """Return the distinct bit patterns of an array."""
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    if len(bits) == 0:
        return Distinct(codes=np.zeros(0, np.int64), rows=np.zeros(0, np.int64))
    # Equal rows come in stretches more often than not, and sorting is what costs.
    heads = np.concatenate(([0], np.flatnonzero(bits[1:] != bits[:-1]) + 1))
    _, first, codes = np.unique(bits[heads], return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    stretches = np.diff(heads, append=len(bits))
    return Distinct(codes=np.repeat(ranks[codes], stretches), rows=heads[first[order]])


def _distinct_bits(column: Column) -> Distinct:
    """By their bytes, where NULL has none or zeros."""
    values = values_of(column)
    if column.offsets is not None:
        return _distinct_runs(values, list_starts(column), list_lengths(column))
    if values.ndim == 1:
        cleared = (
            values if column.valid is None else np.where(column.valid, values, values.dtype.type(0))
        )
        return distinct_numbers(cleared)
    width = values.shape[1] * values.itemsize
    lengths = np.full(column.length, width, np.int64)
    if column.valid is not None:
        lengths[~column.valid] = 0
    starts = np.arange(column.length, dtype=np.int64) * width
    return _distinct_runs(np.ascontiguousarray(values).reshape(-1).view(np.uint8), starts, lengths)


def _distinct_runs(data: ByteArray, starts: Int64Array, lengths: Int64Array) -> Distinct:
    # Word by word: rows are the same so far, and have the same next word. Rows of another length
    # are separated first, so the zeros after the end of a row do no harm.
    found = distinct_numbers(lengths)
    source = padded(data)
    live = np.arange(len(lengths), dtype=np.int64)
    for step in range(0, int(lengths.max(initial=0)), _WORD_BYTES):
        live = live[lengths[live] > step]
        words = np.zeros(len(lengths), np.uint64)
        words[live] = _words_at(source, starts[live] + step, lengths[live] - step)
        found = found.combined(distinct_numbers(words))
    return found


def _words_at(source: ByteArray, at: Int64Array, left: Int64Array) -> UInt64Array:
    words: UInt64Array = words_of(source, "<u8")[at]
    return words & _MASKS[np.minimum(left, _WORD_BYTES)]


def _physical_values(column: Column) -> list[Any]:
    values = values_of(column)
    found: list[Any]
    match column.type:
        case DecimalType():
            found = [(high << 64) | (low & (1 << 64) - 1) for low, high in values.tolist()]
        case BinaryType():
            found = [each.tobytes() for each in values]
        case _ if column.offsets is not None:
            data, ends = values.tobytes(), column.offsets.tolist()
            found = [data[start:end] for start, end in pairwise(ends)]
        case _:
            found = values.tolist()
    if column.valid is not None:
        found = [each if valid else None for each, valid in zip(found, column.valid, strict=True)]
    if isinstance(column.type, TextFamily):
        return [None if each is None else _decoded(each) for each in found]
    return found


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"A text is not UTF-8: {data!r:.80}.", hint="Write it to a column of BYTES."
        ) from error
