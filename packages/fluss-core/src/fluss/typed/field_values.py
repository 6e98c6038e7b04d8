"""Converts the values of fields to what columns take and give (`model.values.conversion`).

A codec is made once for a field and a column, and refuses a field that cannot have the values of
the column. Most values are the same on both sides and need no function. Plain values are checked by
the column, so that a value that does not fit is refused with its reason there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from fluss.errors import FlussError, InvalidValueError, SchemaMismatchError
from fluss.model.types import data_type as t
from fluss.model.types.given_types import data_type_of
from fluss.model.values.target import shown
from fluss.typed.class_fields import ClassKind, kind_of
from fluss.typed.field_types import (
    Choice,
    Elements,
    FieldType,
    Nested,
    Pairs,
    RowClass,
    RowField,
    Scalar,
)

Convert: TypeAlias = Callable[[Any], Any]

_COLUMNS: Final[Mapping[Any, tuple[type[t.DataType], ...]]] = {
    bool: (t.BooleanType,),
    int: (t.IntegerFamily,),
    float: (t.FloatFamily,),
    str: (t.TextFamily,),
    bytes: (t.BinaryFamily,),
    Decimal: (t.DecimalType,),
    date: (t.DateType,),
    time: (t.TimeType,),
    datetime: (t.TimestampFamily,),
    UUID: (t.TextFamily, t.BinaryFamily),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FieldCodec:
    """How the values of a field are converted; None where they stay as they are.

    Neither function is called with None.

    Attributes:
        write: From a value of the field to one that the column takes.
        read: From a value that the column gives to one of the field.
    """

    write: Convert | None = None
    read: Convert | None = None


PLAIN: Final = FieldCodec()


def codec_of(field: FieldType, column: t.DataType, place: str) -> FieldCodec:
    """Return the codec of a field and its column.

    Args:
        field: The type of the field.
        column: The type of the column.
        place: The field, for errors.

    Raises:
        SchemaMismatchError: The field cannot have the values of the column.
    """
    match field.shape, column:
        case Scalar(python=python), _:
            return _scalar(field, python, column, place)
        case Choice() as choice, _:
            if not isinstance(column, _COLUMNS[choice.python]):
                raise _mismatch(field, column, place)
            return _choice(choice, place)
        case Elements() as elements, t.ArrayType():
            return _elements(elements, column, place)
        case Pairs() as pairs, t.MapType():
            return _pairs(pairs, column, place)
        case Nested() as nested, t.RowType():
            return _nested(nested.row, column, place)
        case _:
            raise _mismatch(field, column, place)


def _mismatch(field: FieldType, column: t.DataType, place: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"The field {place} is {field.text}, and its column is {column.as_nullable()}.",
        hint="Declare the field with the type of the column; the guide of typed rows has a table.",
        field=place,
    )


# --- values without parts -------------------------------------------------------------------------


def _scalar(field: FieldType, python: Any, column: t.DataType, place: str) -> FieldCodec:
    if field.declared is not None and python not in _COLUMNS:
        # Another class, which the annotation gives a column: its values are taken as they are.
        if type(column) is not type(field.declared) and not _same_family(field.declared, column):
            raise _mismatch(field, column, place)
        return PLAIN
    if python is Any:
        return PLAIN
    taken = _COLUMNS.get(python)
    if taken is None:
        return _of_library(field, python, column, place)
    if not isinstance(column, taken):
        raise _mismatch(field, column, place)
    if python is UUID:
        return _uuid(column, place)
    return PLAIN


def _same_family(one: t.DataType, other: t.DataType) -> bool:
    families = {each for taken in _COLUMNS.values() for each in taken}
    return any(isinstance(one, each) and isinstance(other, each) for each in families)


def _of_library(field: FieldType, python: Any, column: t.DataType, place: str) -> FieldCodec:
    """Values of numpy: they are written as they are, and made of what the column gives."""
    try:
        own = data_type_of(python, place)
    except FlussError:
        raise _mismatch(field, column, place) from None
    if not _same_family(own, column):
        raise _mismatch(field, column, place)
    return FieldCodec(read=python)


def _uuid(column: t.DataType, place: str) -> FieldCodec:
    is_text = isinstance(column, t.TextFamily)

    def write(value: Any) -> Any:
        if not isinstance(value, UUID):
            raise _refused(place, value, "it is no UUID")
        return str(value) if is_text else value.bytes

    def read(value: Any) -> Any:
        try:
            return UUID(value) if is_text else UUID(bytes=value)
        except ValueError:
            raise _refused(place, value, "the table has no UUID there") from None

    return FieldCodec(write=write, read=read)


def _choice(choice: Choice, place: str) -> FieldCodec:
    by_value = choice.by_value
    by_member = {member: value for value, member in by_value.items()}
    expected = ", ".join(repr(each) for each in list(by_value)[:10])

    def write(value: Any) -> Any:
        try:
            return by_member[value]
        except (KeyError, TypeError):
            raise _refused(place, value, f"{choice.name} has {expected}") from None

    def read(value: Any) -> Any:
        try:
            return by_value[value]
        except KeyError:
            why = f"the table has it, and {choice.name} has {expected}"
            raise _refused(place, value, why) from None

    return FieldCodec(write=write, read=read)


def _refused(place: str, value: object, why: str) -> InvalidValueError:
    return InvalidValueError(
        f"The field {place} does not take {shown(value)} ({type(value).__name__}): {why}.",
        value=value,
    )


# --- lists, dicts, classes ------------------------------------------------------------------------


def _elements(elements: Elements, column: t.ArrayType, place: str) -> FieldCodec:
    inner = codec_of(elements.element, column.element, f"{place}[]")
    convert_write = _elements_converter(elements.element, inner.write, place, is_written=True)
    convert_read = _elements_converter(elements.element, inner.read, place)
    container = elements.container

    def write(values: Any) -> Any:
        if not isinstance(values, Sequence | set | frozenset) or isinstance(values, str | bytes):
            return values  # the column takes it, as it takes an array of numpy, or refuses it
        return convert_write(list(values))

    def read(values: Any) -> Any:
        made = convert_read(values)
        return made if container is list else container(made)

    return FieldCodec(write=write, read=read)


def _elements_converter(
    element: FieldType, convert: Convert | None, place: str, *, is_written: bool = False
) -> Callable[[list[Any]], list[Any]]:
    """Return a function that converts the elements of a list, and refuses NULL among them."""
    takes_none = _takes_none(element)

    def convert_all(values: list[Any]) -> list[Any]:
        if not takes_none and any(each is None for each in values):
            raise null_refused(f"{place}[]", element.text, is_written=is_written)
        if convert is None:
            return values
        return [None if each is None else convert(each) for each in values]

    return convert_all


def _pairs(pairs: Pairs, column: t.MapType, place: str) -> FieldCodec:
    key = _part(pairs.key, column.key, f"{place}.key")
    value = _part(pairs.value, column.value, f"{place}.value")
    write_key, write_value = key.write or _same, value.write or _same
    read_key, read_value = key.read or _same, value.read or _same

    def write(given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given  # the column takes pairs, or refuses it
        return [(write_key(name), write_value(each)) for name, each in given.items()]

    def read(given: Any) -> Any:
        return {read_key(name): read_value(each) for name, each in given}

    return FieldCodec(write=write, read=read)


def _part(field: FieldType, column: t.DataType, place: str) -> FieldCodec:
    """Return the codec of a key or value, whose functions are called with None as well."""
    inner = codec_of(field, column, place)
    write = _part_converter(field, inner.write, place, is_written=True)
    return FieldCodec(write=write, read=_part_converter(field, inner.read, place))


def _part_converter(
    field: FieldType, convert: Convert | None, place: str, *, is_written: bool = False
) -> Convert:
    takes_none = _takes_none(field)

    def convert_one(value: Any) -> Any:
        if value is None:
            if takes_none:
                return None
            raise null_refused(place, field.text, is_written=is_written)
        return value if convert is None else convert(value)

    return convert_one


def _takes_none(field: FieldType) -> bool:
    is_any = isinstance(field.shape, Scalar) and field.shape.python is Any
    return field.takes_none or is_any


def null_refused(place: str, text: str, *, is_written: bool = False) -> InvalidValueError:
    """Return the error for a NULL that a field does not take."""
    has = "has None" if is_written else "is NULL in the table"
    return InvalidValueError(
        f"The field {place} is {text}, and {has}.",
        hint=f"Declare it as `{text} | None`, or give it a default.",
        value=None,
    )


def _same(value: Any) -> Any:
    return value


def _nested(row: RowClass, column: t.RowType, place: str) -> FieldCodec:
    inner = {each.name: each for each in column.fields}
    for field in row.fields:
        if field.column not in inner:
            raise SchemaMismatchError(
                f"The field {place}.{field.name} is none of {column}.",
                hint="Leave it out, or mark it with fluss.NotStored.",
                field=f"{place}.{field.name}",
            )
    codecs = {
        each.column: codec_of(each.type, inner[each.column].data_type, f"{place}.{each.name}")
        for each in row.fields
    }
    make = constructor_of(row, row.fields)
    by_column = {each.column: each for each in row.fields}
    in_order = [
        None if each.name not in by_column else (by_column[each.name], codecs[each.name])
        for each in column.fields
    ]
    get = getter_of(row.cls)

    def write(value: Any) -> Any:
        check_instance(row, value, place)
        return tuple(
            None if part is None else _written(get(value, part[0].name), *part, place)
            for part in in_order
        )

    def read(value: Mapping[str, Any]) -> Any:
        try:
            return make(
                [
                    read_field(value[each.column], each, codecs[each.column], place)
                    for each in row.fields
                ]
            )
        except (FlussError, MemoryError):
            raise
        except Exception as error:
            raise not_made(row, error) from error

    return FieldCodec(write=write, read=read)


def _written(value: Any, field: RowField, codec: FieldCodec, place: str) -> Any:
    if value is None:
        if not field.type.takes_none and not field.declared.may_be_missing:
            raise null_refused(f"{place}.{field.name}", field.type.text, is_written=True)
        return None
    return value if codec.write is None else codec.write(value)


def read_field(value: Any, field: RowField, codec: FieldCodec, place: str) -> Any:
    """Return the value of a field for one of its column, which may be None."""
    if value is not None:
        return value if codec.read is None else codec.read(value)
    if field.type.takes_none or field.declared.may_be_missing:
        return None
    if field.declared.default is None:
        raise null_refused(f"{place}.{field.name}", field.type.text)
    return field.declared.default()


# --- instances ------------------------------------------------------------------------------------


def getter_of(cls: type) -> Callable[[Any, str], Any]:
    """Return a function that gives the value of a field; None for a key that is missing."""
    if kind_of(cls) is ClassKind.TYPED_DICT:
        return lambda row, name: row.get(name)
    return getattr


def check_instance(row: RowClass, value: Any, place: str) -> None:
    """Refuse a value that is no row of a class.

    Raises:
        InvalidValueError: It is none.
    """
    if kind_of(row.cls) is not ClassKind.TYPED_DICT:
        if not isinstance(value, row.cls):
            raise _refused(place, value, f"it is no {row.name}")
        return
    if not isinstance(value, Mapping):
        raise _refused(place, value, f"it is no {row.name}")
    known = {each.name for each in (*row.fields, *row.others)}
    for name in value:
        if name not in known:
            raise _refused(place, value, f"{row.name} has no field {name!r}")


def constructor_of(row: RowClass, fields: Sequence[RowField]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes a row of the values of these fields, in their order.

    Fields that are left out have their default.

    Raises:
        SchemaMismatchError: A field that is left out has none.
    """
    given = {each.name for each in fields}
    missing = [each for each in (*row.fields, *row.others) if each.name not in given]
    nothing: dict[str, Any] = {}
    for field in missing:
        if field.declared.has_default:
            continue
        if not field.type.takes_none:
            raise SchemaMismatchError(
                f"The field {row.name}.{field.name} is not read and has no default.",
                hint="Read its column as well, or use a class of the columns that are read.",
                column=field.column,
            )
        nothing[field.declared.argument] = None
    return _constructor(row, fields, nothing)


def _constructor(
    row: RowClass, fields: Sequence[RowField], nothing: Mapping[str, Any]
) -> Callable[[Sequence[Any]], Any]:
    cls: Any = row.cls
    names = [each.declared.argument for each in fields]
    match kind_of(cls):
        case ClassKind.TYPED_DICT:
            optional = [each.name for each in fields if _is_left_out(each)]
            if not optional:
                return lambda values: {**nothing, **dict(zip(names, values, strict=True))}
            return lambda values: _without_none(dict(zip(names, values, strict=True)), optional)
        case ClassKind.PYDANTIC:
            validate = cls.model_validate
            return lambda values: validate({**nothing, **dict(zip(names, values, strict=True))})
        case _:
            if is_positional(row, fields):
                return lambda values: cls(*values)
            return lambda values: cls(**nothing, **dict(zip(names, values, strict=True)))


def _is_left_out(field: RowField) -> bool:
    return field.declared.may_be_missing and not field.type.takes_none


def _without_none(made: dict[str, Any], optional: Sequence[str]) -> dict[str, Any]:
    for name in optional:
        if made[name] is None:
            del made[name]
    return made


def is_positional(row: RowClass, fields: Sequence[RowField]) -> bool:
    """Return whether these are the first arguments of the constructor, by position."""
    if any(each.declared.is_keyword_only for each in fields):
        return False
    stored = [each.name for each in (*row.fields, *row.others)]
    return not row.others and [each.name for each in fields] == stored


def not_made(row: RowClass, error: Exception) -> InvalidValueError:
    """Return the error for a row that its class refuses."""
    return InvalidValueError(
        f"{row.name} refuses what the table has: {type(error).__name__}: {error}",
        hint="Change the class so that it takes what is in the table, or leave the row out by a "
        "filter.",
    )
