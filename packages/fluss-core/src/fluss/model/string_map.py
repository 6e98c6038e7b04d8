"""An immutable mapping of text to text: the properties of tables and databases.

Fluss stores properties as text. Numbers, booleans and members of enums are converted to Fluss's
spelling here; `model.tables.table_options` interprets the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, final

from fluss.errors import InvalidSchemaError
from fluss.model.options.secrets import shown_value


@final
class StringMap(Mapping[str, str]):
    """An immutable, hashable, picklable mapping of text to text."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None, *, what: str = "properties") -> None:
        self._items = {
            _checked_key(what, key): _text(what, key, value) for key, value in (items or {}).items()
        }

    def __getitem__(self, key: str) -> str:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self.shown())

    def shown(self) -> dict[str, str]:
        """Return the items for people, with `***` in place of secrets."""
        return {key: shown_value(key, value) for key, value in self._items.items()}

    def with_items(self, items: Mapping[str, Any]) -> StringMap:
        """Return the same mapping with these items put in or replaced."""
        return StringMap({**self._items, **items})


def _checked_key(what: str, key: object) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidSchemaError(f"A key of the {what} is {key!r}; keys are text.", key=key)
    return key


def _text(what: str, key: object, value: object) -> str:
    match value:
        case Enum():
            return _text(what, key, value.value)
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case _:
            raise InvalidSchemaError(
                f"The value of {key!r} in the {what} is {value!r}; values are text.",
                hint=f"write it as Fluss's configuration does, for example {key!r}: '3'",
                key=key,
            )
