"""Whether values fit their Fluss type beyond what Arrow's type says: NOT NULL, CHAR's length.

A check looks at one array in wire form, its nested values included, and raises
`pyarrow.ArrowInvalid` at a value that does not fit; `records.cast` finds the row and makes the
sentence. Types that Arrow's own say everything about have no check, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fluss.model.types import ArrayType, CharType, DataType, MapType, RowType
from fluss.records.cast_rules import as_list, list_parts

ValueCheck: TypeAlias = Callable[[pa.Array], None]


def value_check_of(data_type: DataType) -> ValueCheck | None:
    """The check for a column of this type, None where there is nothing to check."""
    inner = _inner_check(data_type)
    if data_type.nullable:
        return inner

    def check(array: pa.Array) -> None:
        if array.null_count:
            raise pa.ArrowInvalid("it may not be NULL")
        if inner is not None:
            inner(array)

    return check


def _inner_check(data_type: DataType) -> ValueCheck | None:
    match data_type:
        case CharType(length=length):
            return lambda array: _check_length(array, length)
        case ArrayType():
            return _list_check(data_type)
        case MapType():
            return _map_check(data_type)
        case RowType():
            return _row_check(data_type)
        case _:
            return None


def _check_length(array: pa.Array, length: int) -> None:
    # Bytes are cheaper to count than characters, and are never fewer.
    longest = pc.max(pc.binary_length(array)).as_py()
    if longest is None or longest <= length:
        return
    longest = pc.max(pc.utf8_length(array)).as_py()
    if longest > length:
        raise pa.ArrowInvalid(f"CHAR({length}) has at most {length} characters")


def _list_check(data_type: ArrayType) -> ValueCheck | None:
    element = value_check_of(data_type.element)
    return None if element is None else lambda array: element(list_parts(array)[1])


def _map_check(data_type: MapType) -> ValueCheck | None:
    checks = [value_check_of(each) for each in data_type.children()]

    def check(array: pa.Array) -> None:
        _, entries = list_parts(as_list(array))
        _check_fields(entries, checks)

    return check


def _row_check(data_type: RowType) -> ValueCheck | None:
    checks = [value_check_of(each) for each in data_type.field_types]
    if not any(checks):
        return None
    return lambda array: _check_fields(array, checks)


def _check_fields(array: pa.Array, checks: list[ValueCheck | None]) -> None:
    present = array.drop_null() if array.null_count else array
    for index, check in enumerate(checks):
        if check is not None:
            check(present.field(index))
