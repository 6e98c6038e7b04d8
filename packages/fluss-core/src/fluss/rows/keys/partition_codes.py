"""Which partition each row of a batch belongs to.

Every distinct value is printed once; its text is in `rows.keys.partition_text`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import BinaryType
from fluss.rows.buffers.columns import Column, Int32Array, Int64Array
from fluss.rows.buffers.distinct import Distinct, distinct_numbers, distinct_values
from fluss.rows.buffers.take import list_lengths
from fluss.rows.keys.partition_text import check_partition_type, partition_text

# A partition name has at most 200 characters, all of them ASCII (`model.names`). Longer values
# are refused here rather than compared word by word.
VALUE_BYTES_MAX = 200


def partition_codes(
    columns: Sequence[Column], *, names: Sequence[str] | None = None
) -> tuple[list[tuple[str, ...]], Int32Array]:
    """Return the partitions that occur in a batch, and for each row the index of its own.

    Args:
        columns: The partition columns, at least one, in the order of the partition keys.
        names: The columns' names for errors; their positions are used where it is None.

    Returns:
        The distinct partitions in order of first appearance, one text per column each, and an
        index into them per row.

    Raises:
        InvalidValueError: A value is NULL, or longer than any partition name; `column` and `row`
            say which.
        UnsupportedTypeError: A column cannot be a partition column.
    """
    labels: Sequence[str | int] = range(len(columns)) if names is None else names
    singles = [_named_codes(*pair) for pair in zip(columns, labels, strict=True)]
    found = singles[0][0]
    for distinct, _ in singles[1:]:
        found = found.combined(distinct)
    texts = [[each[code] for code in distinct.codes[found.rows]] for distinct, each in singles]
    return list(zip(*texts, strict=True)), found.codes.astype(np.int32)


def _named_codes(column: Column, label: str | int) -> tuple[Distinct, list[str]]:
    """Return the distinct texts of a column; several values may share one, such as all the NaNs."""
    check_partition_type(column.type)
    _check_values(column, label)
    distinct, values = distinct_values(column)
    texts = [partition_text(value, column.type) for value in values]
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(text, len(code_of)) for text in texts]
    if len(code_of) < len(texts):
        distinct = distinct_numbers(np.array(codes, np.int64)[distinct.codes])
    return distinct, list(code_of)


def _check_values(column: Column, label: str | int) -> None:
    if column.valid is not None and not column.valid.all():
        row = int(np.argmin(column.valid))
        raise InvalidValueError(
            f"Partition column {label} is NULL, and NULL names no partition.",
            hint="Fill the column before writing, or drop the rows that have no partition.",
            column=label,
        ).add_context(row=row)
    lengths = _byte_lengths(column)
    if lengths is not None and (lengths > VALUE_BYTES_MAX).any():
        row = int(np.argmax(lengths > VALUE_BYTES_MAX))
        raise InvalidValueError(
            f"Partition column {label} has {int(lengths[row])} bytes; "
            f"a partition name has at most {VALUE_BYTES_MAX} characters.",
            hint="Partition by a shorter value, such as a date or a category.",
            column=label,
        ).add_context(row=row)


def _byte_lengths(column: Column) -> Int64Array | None:
    if isinstance(column.type, BinaryType):
        return np.full(column.length, column.type.length, np.int64)
    return None if column.offsets is None else list_lengths(column)
