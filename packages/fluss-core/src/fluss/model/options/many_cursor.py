"""The cursor of a reader of many tables: the position in each table, stored as one text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from fluss.errors import InvalidValueError
from fluss.model.options.bounds import CURSOR_LENGTH_MAX, Cursor

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyCursor:
    """The positions of a reader of many tables. `to_json` and `str` return it as text.

    A reader that starts from this cursor reads tables that the cursor does not have from their
    beginning.

    Attributes:
        tables: The cursor of each table, by `database.table`.
    """

    tables: Mapping[str, Cursor]

    def to_json(self) -> str:
        """Return the cursor as text."""
        tables = {name: json.loads(each.to_json()) for name, each in sorted(self.tables.items())}
        return json.dumps({"version": _VERSION, "tables": tables}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the text of a cursor.

        Raises:
            InvalidValueError: The text is not a cursor of many tables.
        """
        if len(text) > CURSOR_LENGTH_MAX:
            raise InvalidValueError(
                f"The text is too long for a cursor: it has {len(text)} characters, and a cursor at most "
                f"{CURSOR_LENGTH_MAX}."
            )
        try:
            found = json.loads(text)
            if found["version"] != _VERSION:
                raise ValueError(f"its version is {found['version']!r}")  # noqa: TRY301 - one way out
            tables = {name: _cursor(each) for name, each in found["tables"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidValueError(
                f"The text {text[:40]!r} is not a cursor of many tables: {error}.",
                hint="Pass the text of the cursor of a reader of many tables.",
            ) from None
        return cls(tables=tables)

    def __str__(self) -> str:
        return self.to_json()


def _cursor(found: Any) -> Cursor:
    """Raise ValueError where it is none: the message is that of the whole text."""
    try:
        return Cursor.from_json(json.dumps(found))
    except InvalidValueError as error:
        raise ValueError(error.sentence) from None
