"""Tables with an entry for each data type, in which codecs look up their functions.

A table is checked when it is made, which is when its module is imported. A new type that a codec
does not handle is then reported by name, and not at its first value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from fluss.errors import UnsupportedTypeError
from fluss.model.types.data_type import DATA_TYPES, DataType

Entry = TypeVar("Entry")
Keys = type[DataType] | tuple[type[DataType], ...]


class PerType(Generic[Entry]):
    """An entry for each data type; a look-up costs as much as that of a dict."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Keys, Entry]) -> None:
        """Check the entries and spread those of families.

        Args:
            entries: By class; the entry of a family is used for its types that have none of their
                own.

        Raises:
            TypeError: A type has no entry, or an entry belongs to no type.
        """
        given: dict[type, Entry] = {}
        for keys, entry in entries.items():
            given |= dict.fromkeys(keys if isinstance(keys, tuple) else (keys,), entry)
        nearest = {
            each: next((base for base in each.__mro__ if base in given), None)
            for each in DATA_TYPES
        }
        missing = [each.__name__ for each, found in nearest.items() if found is None]
        unused = [each.__name__ for each in given.keys() - set(nearest.values())]
        if missing or unused:
            raise TypeError(f"data types without an entry: {missing}; entries unused: {unused}")
        self._entries = {each: given[found] for each, found in nearest.items() if found is not None}

    def __getitem__(self, data_type: DataType) -> Entry:
        """Return the entry of a type.

        Raises:
            UnsupportedTypeError: The type is none of Fluss's.
        """
        try:
            return self._entries[type(data_type)]
        except KeyError:
            raise UnsupportedTypeError(
                f"{type(data_type).__name__} is not a data type of Fluss.", type=repr(data_type)
            ) from None

    def of_class(self, kind: type[DataType]) -> Entry:
        """Return the entry of a type by its class."""
        return self._entries[kind]
