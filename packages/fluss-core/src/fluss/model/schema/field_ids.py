"""The ids of columns and nested fields: assigned once, kept while names and positions change.

Ids are given depth first, as Fluss's own schema builder does: a column, then the fields nested in
its type, then the next column (Java: `ReassignFieldId`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fluss.errors import InvalidSchemaError
from fluss.model.schema.column import Column
from fluss.model.types.data_type import ArrayType, DataType, MapType, RowType

# Ids travel as 32-bit integers.
FIELD_ID_MAX = 2**31 - 1


def with_field_ids(columns: Sequence[Column], *, highest: int = -1) -> tuple[Column, ...]:
    """Return the columns, each with an id, and the fields nested in them too.

    Columns have ids all together or not at all; a nested field without one gets the next free
    number. Existing ids stay as they are.

    Args:
        columns: The columns, in order.
        highest: The highest id ever given in the table; new ids are above it.

    Raises:
        InvalidSchemaError: When only some columns have an id, or an id is given twice.
    """
    numbered = [each for each in columns if each.column_id is not None]
    if numbered and len(numbered) < len(columns):
        missing = next(each.name for each in columns if each.column_id is None)
        raise InvalidSchemaError(
            f"The column {numbered[0].name!r} has an id and the column {missing!r} has none.",
            hint="give every column an id, or none",
        )
    refuse_duplicate_ids(columns)
    counter = _Counter(max(highest, highest_field_id(columns)))
    return _with_ids(columns, lambda given: counter.next() if given is None else given)


def without_field_ids(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns without any id, also in their nested fields."""
    return _with_ids(columns, lambda _: None)


def highest_field_id(columns: Sequence[Column]) -> int:
    """Return the highest id among the columns and their nested fields, or -1."""
    return max((given for given, _ in _given_ids(columns)), default=-1)


def refuse_duplicate_ids(columns: Sequence[Column]) -> None:
    """Refuse duplicate ids among the columns and their nested fields.

    Raises:
        InvalidSchemaError: Naming the two that share an id.
    """
    owners: dict[int, str] = {}
    for given, path in _given_ids(columns):
        if given > FIELD_ID_MAX or given < 0:
            raise InvalidSchemaError(f"The field id {given} of {path!r} is out of range.")
        if given in owners:
            raise InvalidSchemaError(
                f"{owners[given]!r} and {path!r} have the same field id {given}.",
                hint="leave the ids out; they are then given in order",
            )
        owners[given] = path


@dataclass(slots=True)
class _Counter:
    highest: int

    def next(self) -> int:
        self.highest += 1
        if self.highest > FIELD_ID_MAX:
            raise InvalidSchemaError(f"All field ids up to {FIELD_ID_MAX} have been given.")
        return self.highest


# Returns the id that a column or field gets, by the one it has.
_IdOf = Callable[[int | None], int | None]


def _with_ids(columns: Sequence[Column], id_of: _IdOf) -> tuple[Column, ...]:
    return tuple(
        replace(each, column_id=id_of(each.column_id), data_type=_inner_ids(each.data_type, id_of))
        for each in columns
    )


def _inner_ids(data_type: DataType, id_of: _IdOf) -> DataType:
    match data_type:
        case ArrayType():
            return replace(data_type, element=_inner_ids(data_type.element, id_of))
        case MapType():
            key, value = _inner_ids(data_type.key, id_of), _inner_ids(data_type.value, id_of)
            return replace(data_type, key=key, value=value)
        case RowType():
            fields = (
                replace(
                    each,
                    field_id=id_of(each.field_id),
                    data_type=_inner_ids(each.data_type, id_of),
                )
                for each in data_type.fields
            )
            return replace(data_type, fields=tuple(fields))
        case _:
            return data_type


def _given_ids(columns: Sequence[Column]) -> Iterator[tuple[int, str]]:
    for column in columns:
        if column.column_id is not None:
            yield column.column_id, column.name
        yield from _nested_ids(column.data_type, column.name)


def _nested_ids(data_type: DataType, path: str) -> Iterator[tuple[int, str]]:
    if not isinstance(data_type, RowType):
        for child in data_type.children():
            yield from _nested_ids(child, path)
        return
    for field in data_type.fields:
        below = f"{path}.{field.name}"
        if field.field_id is not None:
            yield field.field_id, below
        yield from _nested_ids(field.data_type, below)
