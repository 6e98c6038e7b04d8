"""The types of fields, as annotations of Python have them, and the Fluss types that follow.

A field that takes neither None nor has a default is NOT NULL. Inside of lists, dicts and nested
classes everything may be NULL in the table, as in SQL's `ARRAY<INT>`; a NULL that a field does not
take is refused when it is read. `typed.field_values` converts the values.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Literal, NewType, TypeAlias, get_args, get_origin
from uuid import UUID

from fluss.errors import FlussError, InvalidSchemaError
from fluss.model.schema.aggregation import AggFunction
from fluss.model.types import data_type as t
from fluss.model.types.given_types import data_type_of
from fluss.typed.class_fields import ClassField, class_fields_of, kind_of, name_of
from fluss.typed.markers import MARKERS, ColumnName, Comment, NotStored

DEPTH_MAX: Final = 32
_PAIR: Final = 2

# Classes of pydantic that are times with and without a zone.
_ZONED: Final = {"AwareDatetime": t.TimestampLtzType(6), "NaiveDatetime": t.TimestampType(6)}
_LISTS: Final[Mapping[Any, type]] = {
    list: list,
    Sequence: list,
    set: set,
    frozenset: frozenset,
    tuple: tuple,
}
_MAPS: Final = (dict, Mapping)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scalar:
    """A value without parts; `python` is Any where any value is taken."""

    python: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """A value out of some: of an Enum, or a Literal.

    Attributes:
        by_value: What the field has, by what the column has.
        python: The class of what the column has.
    """

    name: str
    by_value: Mapping[Any, Any]
    python: type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elements:
    """A list, or another container of elements."""

    container: type
    element: FieldType


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """A dict."""

    key: FieldType
    value: FieldType


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nested:
    """A class of rows within another."""

    row: RowClass


Shape: TypeAlias = Scalar | Choice | Elements | Pairs | Nested


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FieldType:
    """The type of a field.

    Attributes:
        text: The type as Python writes it.
        shape: What a value is.
        takes_none: Whether None is a value.
        declared: The type of the column, where the annotation names it.
        markers: What else `Annotated` adds.
    """

    text: str
    shape: Shape
    takes_none: bool = False
    declared: t.DataType | None = None
    markers: tuple[Any, ...] = ()

    def has(self, marker: type) -> bool:
        """Return whether the annotation has a marker."""
        return any(each is marker or isinstance(each, marker) for each in self.markers)

    def first(self, kind: type) -> Any:
        """Return the first marker of a class; None where there is none."""
        return next((each for each in self.markers if isinstance(each, kind)), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowField:
    """A field of a class of rows."""

    declared: ClassField
    type: FieldType

    @property
    def name(self) -> str:
        """The attribute, or the key of a TypedDict."""
        return self.declared.name

    @property
    def column(self) -> str:
        """The name of its column."""
        named = self.type.first(ColumnName)
        return self.name if named is None else str(named.name)

    @property
    def comment(self) -> str | None:
        """The description of its column."""
        found = self.type.first(Comment)
        if found is not None:
            return str(found.text)
        documented = next((each for each in self.type.markers if _is_doc(each)), None)
        return self.declared.comment if documented is None else str(documented.documentation)

    @property
    def takes_null(self) -> bool:
        """Whether it has a value for NULL: None, no key, or its default."""
        declared = self.declared
        has_other = declared.may_be_missing or declared.default is not None
        return self.type.takes_none or has_other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowClass:
    """A class of rows.

    Attributes:
        cls: The class.
        fields: The fields that are columns.
        others: The fields that are not stored.
    """

    cls: type
    fields: tuple[RowField, ...]
    others: tuple[RowField, ...]

    @property
    def name(self) -> str:
        """The name of the class."""
        return name_of(self.cls)

    def only(self, columns: Collection[str]) -> RowClass:
        """Return the class with the fields of these columns alone; the others are not stored."""
        kept = tuple(each for each in self.fields if each.column in columns)
        left_out = tuple(each for each in self.fields if each.column not in columns)
        return replace(self, fields=kept, others=(*self.others, *left_out))


def row_class_of(cls: type) -> RowClass:
    """Return the fields of a class and their types.

    Raises:
        InvalidSchemaError: It is no class of rows, or a field has a type of which there are no
            columns.
    """
    return _row_class(cls, 0)


def data_type(field: FieldType, place: str) -> t.DataType:
    """Return the type of the column of a field; it allows NULL where None is a value.

    Args:
        field: The type of the field.
        place: The field, for errors.

    Raises:
        InvalidSchemaError: The type of the column is not known.
    """
    found = _data_type(field, place)
    return found.as_nullable() if field.takes_none else found.not_null()


# --- classes --------------------------------------------------------------------------------------


def _row_class(cls: type, depth: int) -> RowClass:
    if depth > DEPTH_MAX:
        raise InvalidSchemaError(
            f"{name_of(cls)} is nested more than {DEPTH_MAX} levels deep, or holds itself."
        )
    made = [
        RowField(
            declared=each,
            type=_field_type(each.annotation, f"{name_of(cls)}.{each.name}", depth),
        )
        for each in class_fields_of(cls)
    ]
    stored = tuple(each for each in made if not each.type.has(NotStored))
    others = tuple(each for each in made if each.type.has(NotStored))
    for field in others:
        if not field.declared.has_default and not field.type.takes_none:
            raise InvalidSchemaError(
                f"The field {name_of(cls)}.{field.name} is not stored and has no default.",
                hint="Give it one: it is what rows that are read have.",
                column=field.name,
            )
    if not stored:
        raise InvalidSchemaError(f"{name_of(cls)} has no field that is a column.")
    _check_unique(cls, stored)
    return RowClass(cls=cls, fields=stored, others=others)


def _check_unique(cls: type, fields: Sequence[RowField]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        if field.column in seen:
            raise InvalidSchemaError(
                f"The fields {seen[field.column]} and {field.name} of {name_of(cls)} have one column, "
                f"{field.column!r}.",
                column=field.column,
            )
        seen[field.column] = field.name


# --- annotations ----------------------------------------------------------------------------------


def _field_type(annotation: Any, place: str, depth: int) -> FieldType:
    """Read an annotation from the outside to the inside."""
    if isinstance(annotation, NewType):
        return _field_type(annotation.__supertype__, place, depth)
    if type(annotation).__name__ == "TypeAliasType":  # `type Price = ...`, since Python 3.12
        return _field_type(annotation.__value__, place, depth)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = _field_type(arguments[0], place, depth)
        return _with_metadata(inner, annotation.__metadata__, place)
    if origin in {typing.Union, types.UnionType}:
        return _of_union(annotation, arguments, place, depth)
    text = _text(annotation)
    declared = None
    if isinstance(annotation, type) and annotation.__module__.startswith("pydantic"):
        declared = _ZONED.get(annotation.__name__)
    return FieldType(text=text, shape=_shape(annotation, place, depth), declared=declared)


def _of_union(annotation: Any, arguments: Sequence[Any], place: str, depth: int) -> FieldType:
    others = [each for each in arguments if each is not types.NoneType]
    if len(others) != 1:
        raise InvalidSchemaError(
            f"The field {place} is {_text(annotation)}, and a column has one type.",
            hint="Choose one type; `| None` is a column that may be NULL.",
            column=place.rpartition(".")[2],
        )
    inner = _field_type(others[0], place, depth)
    return replace(inner, takes_none=len(others) < len(arguments) or inner.takes_none)


def _with_metadata(inner: FieldType, metadata: Sequence[Any], place: str) -> FieldType:
    declared, markers = inner.declared, list(inner.markers)
    digits: dict[str, int] = {}
    for item in metadata:
        if _is_declaration(item):
            declared = _declared(item, place)
        elif _is_marker(item):
            markers.append(item)
        else:
            _note_digits(item, digits)
    if declared is None and digits.keys() == {"max_digits", "decimal_places"}:
        declared = t.DecimalType(digits["max_digits"], digits["decimal_places"])
    takes_none = inner.takes_none
    return replace(inner, declared=declared, markers=tuple(markers), takes_none=takes_none)


def _is_declaration(given: Any) -> bool:
    """Return whether this names the type of the column: a text, or a type of Fluss or Arrow."""
    if isinstance(given, str | t.DataType) or _is_type_class(given):
        return True
    return hasattr(given, "__arrow_c_schema__") and not isinstance(given, type)


def _declared(given: Any, place: str) -> t.DataType:
    try:
        return data_type_of(given() if _is_type_class(given) else given, place)
    except (FlussError, TypeError) as error:
        what = error.sentence if isinstance(error, FlussError) else str(error)
        raise InvalidSchemaError(
            f"The field {place} is declared as {given!r:.80}, which names no type: {what}",
            hint="Write a type such as 'DECIMAL(10, 2)'; a description is fluss.Comment('...').",
            column=place.rpartition(".")[2],
        ) from None


def _is_type_class(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, t.DataType)


def _is_marker(given: Any) -> bool:
    if any(given is each for each in MARKERS) or _is_doc(given):
        return True
    return isinstance(given, (*MARKERS, Comment, ColumnName, AggFunction))


def _is_doc(marker: Any) -> bool:
    """Return whether this is a `typing_extensions.Doc`."""
    return type(marker).__name__ == "Doc" and isinstance(
        getattr(marker, "documentation", None), str
    )


def _note_digits(constraint: Any, digits: dict[str, int]) -> None:
    """Note the digits of a decimal that pydantic limits."""
    for name in ("max_digits", "decimal_places"):
        found = getattr(constraint, name, None)
        if isinstance(found, int):
            digits[name] = found


def _shape(annotation: Any, place: str, depth: int) -> Shape:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if kind_of(annotation) is not None:
        return Nested(row=_row_class(annotation, depth + 1))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice(name_of(annotation), {each.value: each for each in annotation}, place)
    if origin is Literal:
        return _choice(_text(annotation), {each: each for each in arguments}, place)
    if origin in _LISTS and arguments:
        if origin is tuple and (len(arguments) != _PAIR or arguments[1] is not ...):
            raise _no_column(annotation, place, "Write tuple[int, ...]: a list has any length.")
        element = _field_type(arguments[0], f"{place}[]", depth + 1)
        return Elements(container=_LISTS[origin], element=element)
    if origin in _MAPS and len(arguments) == _PAIR:
        key = _field_type(arguments[0], f"{place}.key", depth + 1)
        return Pairs(key=key, value=_field_type(arguments[1], f"{place}.value", depth + 1))
    if annotation is Any or isinstance(annotation, type):
        return Scalar(python=annotation)
    raise _no_column(annotation, place, _HINT)


def _choice(name: str, by_value: Mapping[Any, Any], place: str) -> Choice:
    kinds = {type(each) for each in by_value}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        raise InvalidSchemaError(
            f"The values of {name}, the type of {place}, are not texts alone or numbers alone.",
            hint="Give each a text: a column has values of one type.",
            column=place.rpartition(".")[2],
        )
    return Choice(name=name, by_value=by_value, python=kinds.pop())


# --- types of columns -----------------------------------------------------------------------------

_HINT: Final = (
    "Take a type such as int, str, datetime, list[str] or another class, or name the type of the "
    "column: Annotated[..., 'STRING']."
)


def _data_type(field: FieldType, place: str) -> t.DataType:
    if field.declared is not None:
        return field.declared
    match field.shape:
        case Choice(python=python):
            return data_type_of(python, place)
        case Elements(element=element):
            return t.ArrayType(_data_type(element, f"{place}[]").as_nullable())
        case Pairs(key=key, value=value):
            values = _data_type(value, f"{place}.value").as_nullable()
            return t.MapType(_data_type(key, f"{place}.key"), values)
        case Nested(row=row):
            return t.RowType(tuple(_data_field(each, place) for each in row.fields))
        case Scalar(python=python):
            return _scalar_type(field, python, place)


def _data_field(field: RowField, place: str) -> t.DataField:
    found = _data_type(field.type, f"{place}.{field.name}").as_nullable()
    return t.DataField(field.column, found, field.comment)


def _scalar_type(field: FieldType, python: Any, place: str) -> t.DataType:
    if python is UUID:
        return t.StringType()
    if python is Decimal:
        raise InvalidSchemaError(
            f"The field {place} is Decimal, which does not say how many digits its column has.",
            hint="Write Annotated[Decimal, 'DECIMAL(10, 2)']: digits in all, and after the point.",
            column=place.rpartition(".")[2],
        )
    try:
        return data_type_of(python, place)
    except FlussError:
        raise _no_column(field.text, place, _HINT) from None


def _no_column(annotation: Any, place: str, hint: str) -> InvalidSchemaError:
    return InvalidSchemaError(
        f"The field {place} is {_text(annotation)}, and no column has this type.",
        hint=hint,
        column=place.rpartition(".")[2],
    )


def _text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__ if kind_of(annotation) else annotation.__name__
    return str(annotation).replace("typing.", "")
