"""The target of a conversion, and how values are refused; shared by the converters.

Values of numpy and pandas are recognised by the module of their class, so that neither is loaded.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluss.errors import InvalidValueError
from fluss.hints import Hint
from fluss.model.types.data_type import DataType
from fluss.model.values.limits import NO_LIMITS, ValueLimits

Converter = Callable[[Any], Any]

_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = 60


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a conversion.

    Attributes:
        type: The type of the physical value.
        column: The column; a whole row has none.
        limits: What the table adds to the limits of its types.
    """

    type: DataType
    column: str
    limits: ValueLimits = NO_LIMITS

    @property
    def place(self) -> str:
        """The target as the subject of a sentence."""
        return f"The column {self.column!r}" if self.column else "The row"

    def nothing(self) -> None:
        """Return NULL if the type allows it.

        Raises:
            InvalidValueError: The type is NOT NULL.
        """
        if not self.type.nullable:
            raise InvalidValueError(
                f"{self.place} is {self.type} and was given no value.",
                hint="give it a value; a column that may be empty is declared without NOT NULL",
                column=self.column,
                value=None,
            )

    def refuse(
        self, value: object, why: str = "", hint: str | Hint | None = None
    ) -> InvalidValueError:
        """Return the error for a value that is not of this type."""
        reason = f": {why}" if why else ""
        return InvalidValueError(
            f"{self.place} is {self.type} and does not take "
            f"{shown(value)} ({type(value).__name__}){reason}.",
            hint=hint,
            column=self.column,
            value=value,
        )


def shown(value: object) -> str:
    """Return a value as a message shows it, cut to a line."""
    try:
        return _shown.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"a {type(value).__name__}"


def is_nothing(value: object) -> bool:
    """Return whether this is NULL: None, or pandas's NA or NaT; a NaN is a number."""
    if value is None:
        return True
    kind = type(value)
    return kind.__name__ in {"NAType", "NaTType"} and kind.__module__.startswith("pandas.")


def is_numpy(value: object) -> bool:
    """Return whether this is a value of numpy's own."""
    return type(value).__module__ == "numpy"


def is_truth(value: object) -> bool:
    """Return whether this is a boolean of Python or numpy, which are no numbers here."""
    return isinstance(value, bool) or (
        is_numpy(value) and type(value).__name__ in {"bool", "bool_"}
    )


def give_back(value: Any) -> Any:
    """Return the value: the converter of types whose physical values are Python values."""
    return value
