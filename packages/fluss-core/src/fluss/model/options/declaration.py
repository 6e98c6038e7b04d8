"""Declarations of options: key, default, meaning and accepted values.

A subclass of `OptionSet` lists its options as attributes; the properties, the table in the
documentation and the "did you mean" come from that list. The options themselves are in
`model.options.config_options` and `model.tables.table_options`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, overload

from fluss.errors import ConfigError
from fluss.model.options.units import QUANTITY_MAX, parse_duration_ms, parse_size

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
MaybeFlag = TypeVar("MaybeFlag", bool, bool | None)
MaybeText = TypeVar("MaybeText", str, str | None)
MaybeInt = TypeVar("MaybeInt", int, int | None)
INT_MAX: Final = 2**31 - 1


class Option(Generic[T]):
    """One option: an attribute of an `OptionSet`, and its description.

    Args:
        key: The key in configuration files.
        default: The value where nothing is set.
        parse: Converts a given value; raises ValueError with the reason if it is invalid.
        doc: What the option does, in a sentence or two.
        aliases: Other keys that mean the same.
        since: The first server that knows the option, where that matters.
        secret: Whether the value may be shown.
    """

    def __init__(
        self,
        key: str,
        default: T,
        parse: Callable[[Any], T],
        doc: str,
        *,
        aliases: tuple[str, ...] = (),
        since: str = "",
        secret: bool = False,
    ) -> None:
        self.key = key
        self.default = default
        self.parse = parse
        self.aliases = aliases
        self.since = since
        self.secret = secret
        self.name = ""
        self.__doc__ = doc

    @property
    def doc(self) -> str:
        """What the option does."""
        return self.__doc__ or ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: OptionSet, owner: type) -> T: ...
    def __get__(self, instance: OptionSet | None, owner: type) -> T | Self:
        if instance is None:
            return self
        return instance.value_of(self)

    def __set__(self, instance: OptionSet, value: Any) -> None:
        instance.set_value(self, value)

    def read(self, value: object) -> T:
        """Convert a given value to the option's type.

        Raises:
            ConfigError: When the value is invalid.
        """
        why = "its value, not shown here, is not one it takes"
        try:
            return self.parse(value)
        except ValueError as error:
            if not self.secret:
                why = str(error)
        # Raised outside the handler: the parser's error quotes the value, and would be the context.
        raise ConfigError(f"The option {self.key!r}: {why}.", key=self.key)


class OptionSet:
    """Values of options, read as attributes; subclasses decide whether they can be set."""

    __slots__ = ("_values",)

    OPTIONS: ClassVar[Mapping[str, Option[Any]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        found = (each for each in vars(cls).values() if isinstance(each, Option))
        cls.OPTIONS = {**cls.OPTIONS, **{each.key: each for each in found}}

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def value_of(self, option: Option[T]) -> T:
        """Return the value of an option, or its default."""
        value: T = self._values.get(option.key, option.default)
        return value

    def set_value(self, option: Option[Any], value: object) -> None:
        """Give an option a value.

        Raises:
            ConfigError: When the value is invalid.
        """
        self._values[option.key] = option.read(value)

    def is_set(self, option: Option[Any]) -> bool:
        """Return whether a value was given, even if it is the default."""
        return option.key in self._values


# --- the usual kinds of options -----------------------------------------------------------------


def flag(key: str, default: MaybeFlag, doc: str, **more: Any) -> Option[MaybeFlag]:
    """Return an option that is true or false."""
    return Option(key, default, boolean, doc, **more)


def whole(
    key: str, default: MaybeInt, doc: str, *, low: int = 1, high: int = INT_MAX, **more: Any
) -> Option[MaybeInt]:
    """Return an option that is a whole number."""
    return Option(key, default, integer(low, high), doc, **more)


def size(
    key: str, default: int, doc: str, *, low: int = 1, high: int = INT_MAX, **more: Any
) -> Option[int]:
    """Return an option that is a size in bytes."""
    return Option(key, default, size_bytes(low, high), doc, **more)


def duration(
    key: str,
    default: MaybeInt,
    doc: str,
    *,
    low: int = 0,
    high: int = QUANTITY_MAX,
    unit_required: bool = False,
    **more: Any,
) -> Option[MaybeInt]:
    """Return an option that is a duration in milliseconds."""
    parse = duration_ms(low, high, unit_required=unit_required)
    return Option(key, default, parse, doc, **more)


def words(key: str, default: MaybeText, doc: str, **more: Any) -> Option[MaybeText]:
    """Return an option that is a text."""
    return Option(key, default, text, doc, **more)


def choice(key: str, default: E, doc: str) -> Option[E]:
    """Return an option that is one of the members of its default's enum."""
    return Option(key, default, member(type(default)), doc)


# --- parsers of values --------------------------------------------------------------------------


def text(value: object) -> str:
    """Parse text, unchanged."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")  # noqa: TRY004 - Option.read waits for ValueError
    return value


def boolean(value: object) -> bool:
    """Parse `true` or `false` in any case, or a bool."""
    if isinstance(value, bool):
        return value
    folded = value.lower() if isinstance(value, str) else ""
    if folded not in {"true", "false"}:
        raise ValueError(f"{value!r} is neither true nor false")
    return folded == "true"


def integer(low: int, high: int) -> Callable[[object], int]:
    """Return a parser of integers between two limits, or their text."""

    def parse(value: object) -> int:
        number = value
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            number = int(value)
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise ValueError(f"{value!r} is not a whole number from {low} to {high}")
        return number

    return parse


def size_bytes(low: int, high: int = 2**63 - 1) -> Callable[[object], int]:
    """Return a parser of sizes: bytes, or text such as `2mb`."""

    def parse(value: object) -> int:
        size = parse_size(value)
        if not low <= size <= high:
            raise ValueError(f"{value!r} is not a size from {low} to {high} bytes")
        return size

    return parse


def duration_ms(
    low: int = 0, high: int = QUANTITY_MAX, *, unit_required: bool = False
) -> Callable[[object], int]:
    """Return a parser of durations: milliseconds, a timedelta, or text such as `10s`."""

    def parse(value: object) -> int:
        if unit_required and isinstance(value, str) and value.strip().isdecimal():
            raise ValueError(f"{value!r} does not say in which unit; write '7d' or '500ms'")
        duration = parse_duration_ms(value)
        if not low <= duration <= high:
            raise ValueError(f"{value!r} is not a duration from {low} to {high} ms")
        return duration

    return parse


def member(members: type[E]) -> Callable[[object], E]:
    """Return a parser of the members of an enum, or their values in any case."""
    by_value = {str(each.value).lower(): each for each in members}

    def parse(value: object) -> E:
        if isinstance(value, members):
            return value
        found = by_value.get(value.lower()) if isinstance(value, str) else None
        if found is None:
            known = ", ".join(str(each.value) for each in members)
            raise ValueError(f"{value!r} is not one of {known}")
        return found

    return parse
