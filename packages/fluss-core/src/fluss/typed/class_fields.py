"""The fields of a class of rows, of whichever kind the class is.

====================  ==============================================================
kind                  recognised by
====================  ==============================================================
dataclass             `dataclasses.is_dataclass`
attrs                 `__attrs_attrs__`
pydantic              `model_fields` and `model_validate`
TypedDict             a class of dicts with `__required_keys__`
NamedTuple            a class of tuples with `_fields`
====================  ==============================================================

attrs and pydantic are not imported: a class of theirs brings all that is necessary.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, NotRequired, Required, get_args, get_origin

from fluss.errors import InvalidSchemaError

_TAKEN: Final = "Give a dataclass, a TypedDict, a NamedTuple, or a class of pydantic or attrs."
_EXTENSIONS: Final = {"NotRequired", "Required", "ReadOnly"}


class ClassKind(Enum):
    """The kinds of classes."""

    DATACLASS = "dataclass"
    ATTRS = "attrs"
    PYDANTIC = "pydantic"
    TYPED_DICT = "TypedDict"
    NAMED_TUPLE = "NamedTuple"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassField:
    """A field, as its class declares it.

    Attributes:
        name: The attribute, or the key of a TypedDict.
        argument: The constructor's argument.
        annotation: Its type, with what `Annotated` adds.
        has_default: Whether the constructor can do without it.
        default: Makes its default; None where it has none, or one that depends on other fields.
        may_be_missing: Whether a TypedDict may lack it.
        is_keyword_only: Whether the constructor takes it by name alone.
        comment: Its description, where the class has one in its own way.
    """

    name: str
    argument: str
    annotation: Any
    has_default: bool = False
    default: Callable[[], Any] | None = None
    may_be_missing: bool = False
    is_keyword_only: bool = False
    comment: str | None = None


def kind_of(cls: object) -> ClassKind | None:
    """Return the kind of a class of rows; None for all else."""
    if not isinstance(cls, type):
        return None
    if dataclasses.is_dataclass(cls):
        return ClassKind.DATACLASS
    if hasattr(cls, "__attrs_attrs__"):
        return ClassKind.ATTRS
    if hasattr(cls, "model_fields") and hasattr(cls, "model_validate"):
        return ClassKind.PYDANTIC
    if issubclass(cls, dict) and hasattr(cls, "__required_keys__"):
        return ClassKind.TYPED_DICT
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return ClassKind.NAMED_TUPLE
    return None


def class_fields_of(cls: type) -> list[ClassField]:
    """Return the fields that the constructor of a class takes.

    Raises:
        InvalidSchemaError: It is no class of rows, or a type in it cannot be found.
    """
    kind = kind_of(cls)
    if kind is None:
        raise InvalidSchemaError(f"{name_of(cls)} is no class of rows.", hint=_TAKEN)
    return list(_READERS[kind](cls))


def name_of(cls: object) -> str:
    """Return the name of a class, or the text of anything else."""
    return cls.__name__ if isinstance(cls, type) else f"{cls!r:.80}"


def _of_dataclass(cls: Any) -> Iterator[ClassField]:
    hints = _hints(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        factory: Any = field.default_factory
        has_factory = factory is not dataclasses.MISSING
        default = factory if has_factory else _constant(field.default, dataclasses.MISSING)
        yield ClassField(
            name=field.name,
            argument=field.name,
            annotation=hints[field.name],
            has_default=default is not None,
            default=default,
            is_keyword_only=field.kw_only is True,
            comment=_comment_in(field.metadata),
        )


def _of_attrs(cls: Any) -> Iterator[ClassField]:
    hints = _hints(cls)
    for attribute in cls.__attrs_attrs__:
        if not attribute.init:
            continue
        has_default = (
            type(attribute.default).__name__ != "_Nothing" and repr(attribute.default) != "NOTHING"
        )
        factory = getattr(attribute.default, "factory", None) if has_default else None
        takes_self = getattr(attribute.default, "takes_self", False)
        default: Callable[[], Any] | None = None
        if factory is not None:
            default = None if takes_self else factory
        elif has_default:
            default = _constant(attribute.default)
        yield ClassField(
            name=attribute.name,
            argument=getattr(attribute, "alias", None) or attribute.name.lstrip("_"),
            annotation=hints.get(attribute.name, attribute.type),
            has_default=has_default,
            default=default,
            is_keyword_only=attribute.kw_only,
            comment=_comment_in(attribute.metadata),
        )


def _of_pydantic(cls: Any) -> Iterator[ClassField]:
    settings: Mapping[str, Any] = cls.model_config
    by_name = settings.get("populate_by_name") or settings.get("validate_by_name")
    for name, field in cls.model_fields.items():
        annotation = field.annotation
        for more in field.metadata:  # pydantic has moved them out of the annotation
            annotation = Annotated[annotation, more]
        is_required = field.is_required()
        takes_data = bool(getattr(field, "default_factory_takes_validated_data", False))
        yield ClassField(
            name=name,
            argument=name if by_name else _pydantic_argument(cls, name, field),
            annotation=annotation,
            has_default=not is_required,
            default=None if is_required or takes_data else _pydantic_default(field),
            is_keyword_only=True,
            comment=field.description,
        )


def _pydantic_default(field: Any) -> Callable[[], Any]:
    return lambda: field.get_default(call_default_factory=True)


def _pydantic_argument(cls: type, name: str, field: Any) -> str:
    alias = field.validation_alias or field.alias or name
    choices = getattr(alias, "choices", None)
    if choices:
        alias = next((each for each in choices if isinstance(each, str)), alias)
    if not isinstance(alias, str):
        raise InvalidSchemaError(
            f"The field {name_of(cls)}.{name} is filled by a path, not by a name.",
            hint="Switch validate_by_name on in its model_config.",
            column=name,
        )
    return alias


def _of_typed_dict(cls: Any) -> Iterator[ClassField]:
    for name, hint in _hints(cls).items():
        may_be_missing, annotation = name not in cls.__required_keys__, hint
        while (word := _qualifier(annotation)) is not None:
            if word != "ReadOnly":
                may_be_missing = word == "NotRequired"
            annotation = get_args(annotation)[0]
        yield ClassField(
            name=name,
            argument=name,
            annotation=annotation,
            has_default=may_be_missing,
            may_be_missing=may_be_missing,
            is_keyword_only=True,
        )


def _qualifier(annotation: Any) -> str | None:
    origin = get_origin(annotation)
    if origin is NotRequired or origin is Required:
        return "NotRequired" if origin is NotRequired else "Required"
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
    return name if name in _EXTENSIONS else None


def _of_named_tuple(cls: Any) -> Iterator[ClassField]:
    hints = _hints(cls)
    for name in cls._fields:
        if name not in hints:
            raise InvalidSchemaError(
                f"The field {name_of(cls)}.{name} has no type.",
                hint="Declare the class with typing.NamedTuple.",
                column=name,
            )
        has_default = name in cls._field_defaults
        yield ClassField(
            name=name,
            argument=name,
            annotation=hints[name],
            has_default=has_default,
            default=_constant(cls._field_defaults[name]) if has_default else None,
        )


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise InvalidSchemaError(
            f"{name_of(cls)} has a type that cannot be found: {error}.",
            hint="Define the class, and import the types in it, at the top of a module: with "
            "`from __future__ import annotations` names of a function are not found.",
        ) from error


def _constant(value: Any, nothing: Any = None) -> Callable[[], Any] | None:
    if nothing is not None and value is nothing:
        return None
    return lambda: value


def _comment_in(metadata: Mapping[Any, Any]) -> str | None:
    found = metadata.get("comment") or metadata.get("description")
    return found if isinstance(found, str) else None


_READERS: Final[Mapping[ClassKind, Callable[[Any], Iterator[ClassField]]]] = {
    ClassKind.DATACLASS: _of_dataclass,
    ClassKind.ATTRS: _of_attrs,
    ClassKind.PYDANTIC: _of_pydantic,
    ClassKind.TYPED_DICT: _of_typed_dict,
    ClassKind.NAMED_TUPLE: _of_named_tuple,
}
