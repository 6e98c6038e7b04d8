"""One row as a user gives it, as a tuple of physical values in the order of the table's columns.

A row is a mapping by column name, or a sequence by position. The converters are made once per
writer; every value is converted when the row is taken, so an error concerns the row that is being
written and nothing of it has been queued. Frames take another way (`records.cast`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from fluss.client.row_function import row_function
from fluss.errors import InvalidValueError
from fluss.model.nearest import did_you_mean
from fluss.model.types import DataType
from fluss.model.values import to_physical

Values = tuple[Any, ...]


class RowReader:
    """Reads rows of some columns of a table; any thread may use it.

    Args:
        names: The columns that a row gives, in order.
        types: Their types.
        places: Where their values stand in the table; others are left NULL.
        width: How many columns the table has.
        ignored: Further columns that a mapping may have without their being read.
        what: What such a row is called in errors.
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[DataType],
        *,
        places: Sequence[int],
        width: int,
        ignored: frozenset[str] = frozenset(),
        what: str = "row",
    ) -> None:
        self._names = tuple(names)
        self._known = frozenset(names) | ignored
        self._ignored = ignored
        self._what = what
        self._convert = row_function(
            types, [to_physical(each, name) for each, name in zip(types, names, strict=True)]
        )
        self._count = len(self._names)
        self._pick = _picker(self._names)
        self._is_whole = tuple(places) == tuple(range(width))
        self._places = tuple(places)
        self._width = width

    def read(self, row: Any) -> tuple[Values, int]:
        """The row's physical values, one for each column of the table, and roughly their bytes.

        Args:
            row: A mapping by name or a sequence by position.

        Raises:
            InvalidValueError: A value is missing, unknown, or does not fit its column.
        """
        kind = type(row)
        if kind is dict and len(row) == self._count:
            try:
                given = self._pick(row)
            except KeyError:
                given = self._by_name(row)
        elif (kind is tuple or kind is list) and len(row) == self._count:
            given = row
        else:
            given = self._otherwise(row)
        if self._is_whole:
            return self._convert(given)
        values, size = self._convert(given)
        return self._spread(values), size

    def _otherwise(self, row: Any) -> Sequence[Any]:
        if isinstance(row, Mapping):
            return self._by_name(row)
        if isinstance(row, str | bytes | bytearray) or not isinstance(row, Sequence):
            raise InvalidValueError(
                f"A {self._what} is a dict, a list or a tuple, not {type(row).__name__}: "
                f"{_shown(row)}.",
                hint=f"The columns are {', '.join(self._names)}.",
            )
        if len(row) == self._width and not self._is_whole:
            return [row[place] for place in self._places]
        if len(row) != self._count:
            raise InvalidValueError(
                f"The {self._what} has {len(row)} values for {self._count} columns.",
                hint=f"The columns are {', '.join(self._names)}, in this order.",
            )
        return row

    def _by_name(self, row: Mapping[Any, Any]) -> Sequence[Any]:
        if not self._known.issuperset(row):
            unknown = next(each for each in row if each not in self._known)
            raise InvalidValueError(
                f"There is no column {unknown!r} for this {self._what}; its columns are "
                f"{', '.join(self._names)}.",
                hint=did_you_mean(str(unknown), self._names),
                column=str(unknown),
            )
        # A column that is not there is NULL; the converter of a NOT NULL column refuses that.
        return [row.get(name) for name in self._names]

    def _spread(self, values: Values) -> Values:
        whole: list[Any] = [None] * self._width
        for place, value in zip(self._places, values, strict=True):
            whole[place] = value
        return tuple(whole)


def in_row(error: InvalidValueError, number: int) -> InvalidValueError:
    """The same error, which also says in which row of the writer it is."""
    return InvalidValueError(
        f"In row {number}: {error.message}",
        error.error_code,
        hint=error.hint,
        **{**error.facts, "row": number},
    )


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    if len(names) == 1:  # where itemgetter gives the value instead of a tuple
        (name,) = names
        return lambda row: (row[name],)
    return itemgetter(*names)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004 - enough to recognise it
