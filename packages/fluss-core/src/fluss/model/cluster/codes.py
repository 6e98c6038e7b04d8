"""Names whose order is their number in the protocol."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean


class NamedCode(StrEnum):
    """A name with a number. The first member has the number `_first()`, each next one 1 more."""

    @classmethod
    def of(cls, name: str) -> Self:
        """The member with this name, in upper or lower case.

        Raises:
            InvalidValueError: There is none; the hint has the nearest.
        """
        try:
            return cls(name.strip().upper().replace("-", "_").replace(" ", "_"))
        except ValueError:
            pass
        names = [str(each) for each in cls]
        raise InvalidValueError(
            f"{name!r} is no {cls.__name__}.",
            hint=did_you_mean(name, names) or f"There are: {', '.join(names)}.",
        )

    @classmethod
    def from_code(cls, code: int) -> Self | None:
        """The member with this number of the protocol; None for a number that is not known."""
        members = list(cls)
        place = code - cls._first()
        return members[place] if 0 <= place < len(members) else None

    @property
    def code(self) -> int:
        """Its number in the protocol."""
        return list(type(self)).index(self) + self._first()

    @classmethod
    def _first(cls) -> int:
        return 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"
