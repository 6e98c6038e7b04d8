"""Aligned rows: rows in which every field has a slot of eight bytes at a fixed position.

==================  ==========================================================================
null bits           words of 8 bytes. Byte 0 is not theirs but the row kind, so field i is bit
                    i + 8, counted from the low end of the first byte; set where NULL
slots               one per field, zeros where NULL: see `rows.formats.slots`
variable part       in the order of the fields, nothing for a NULL
==================  ==========================================================================

Fluss keeps the least and greatest values of a log batch in them (Java: `AlignedRow`,
`AlignedRowWriter`). Paimon's `BinaryRow` has the same bytes for the same values, and makes up the
keys of tables that are tiered to Paimon (Java: `PaimonKeyEncoder`, `PaimonBinaryRowWriter`).
Neither has nested types, so they are refused here. This file encodes columns; single rows are in
`rows.formats.aligned_row`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluss.rows.buffers.byte_runs import Part, Runs, UInt64Array, join_parts
from fluss.rows.buffers.columns import Column, RowBytes
from fluss.rows.formats.aligned_row import HEADER_BITS, INSERT_KIND, check_flat, null_words_bytes
from fluss.rows.formats.nulls import check_not_null, naming_column, rows_in_columns
from fluss.rows.formats.single_slots import SLOT_BYTES
from fluss.rows.formats.slots import Slots, number_slots, placed_slots
from fluss.rows.formats.stored import FixedWidth, store

_WORD_BITS = 64


def write_aligned_rows(columns: Sequence[Column]) -> RowBytes:
    """Encodes columns as aligned rows, with one column at least.

    Raises:
        InvalidValueError: A value does not fit its column; `column` and `row` name it.
        UnsupportedTypeError: A column is nested.
    """
    count = rows_in_columns(columns)
    head_words = null_words_bytes(len(columns)) // SLOT_BYTES
    words = np.zeros((count, head_words + len(columns)), "<u8")
    words[:, 0] = INSERT_KIND
    ends = np.full(count, words.shape[1] * SLOT_BYTES, np.int64)
    variable: list[Part] = []
    for index, column in enumerate(columns):
        with naming_column(index):
            check_not_null(column)
            slots = _column_slots(column)
        if column.valid is not None:
            word, bit = divmod(index + HEADER_BITS, _WORD_BITS)
            words[:, word] |= (~column.valid).astype(np.uint64) << np.uint64(bit)
        words[:, head_words + index] = slots.with_offsets(ends)
        if slots.placed.any():
            variable.append(slots.variable)
            ends += slots.variable.spans
    return _joined(words, variable)


def _column_slots(column: Column) -> Slots:
    check_flat(column.type)
    stored = store(column)
    if isinstance(stored, FixedWidth):
        return number_slots(stored.values)
    return placed_slots(stored, column.type, column.valid)


def _joined(words: UInt64Array, variable: list[Part]) -> RowBytes:
    count, width = len(words), words.shape[1] * SLOT_BYTES
    data = words.reshape(-1).view(np.uint8)
    starts = np.arange(count + 1, dtype=np.int64) * width
    if not variable:
        return RowBytes(data=data, offsets=starts)
    widths = np.full(count, width, np.int64)
    fixed = Runs(data=data, starts=starts[:-1], lengths=widths, spans=widths)
    return join_parts([fixed, *variable], count)
