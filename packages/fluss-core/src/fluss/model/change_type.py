"""The five kinds of change in a log, in all their spellings."""

from __future__ import annotations

from enum import IntEnum

from fluss.errors import InvalidValueError


class ChangeType(IntEnum):
    """One kind of change. The numbers are those in the bytes of a log batch.

    The member names are the documented ones. Log tables only have `AppendOnly`.
    """

    AppendOnly = 0
    Insert = 1
    UpdateBefore = 2
    UpdateAfter = 3
    Delete = 4

    def short_string(self) -> str:
        """`+A`, `+I`, `-U`, `+U` or `-D`."""
        return _NAMES[self][0]

    @property
    def long_name(self) -> str:
        """`insert`, `update_before`, `update_after` or `delete`, as in the column `_change_type`.

        A row appended to a log reads `insert` there, as in Fluss's own changelog tables.
        """
        return _NAMES[self][1]

    @staticmethod
    def parse(text: str) -> ChangeType:
        """Return the change for a short string or a long name; `insert` is `Insert`.

        Raises:
            InvalidValueError: When it is neither.
        """
        folded = text.strip().lower()
        for change in reversed(ChangeType):  # so that `insert` is Insert before it is AppendOnly
            short, long = _NAMES[change]
            if folded in {short.lower(), long, change.name.lower()}:
                return change
        known = (*(short for short, _ in _NAMES.values()), *(long for _, long in _NAMES.values()))
        raise InvalidValueError(
            f"{text!r} is not a kind of change.",
            hint=f"write one of {', '.join(dict.fromkeys(known))}",
            value=text,
        )

    def __str__(self) -> str:
        return self.short_string()

    def __repr__(self) -> str:
        return f"ChangeType.{self.name}"


# The short string and the long name of each.
_NAMES = {
    ChangeType.AppendOnly: ("+A", "insert"),
    ChangeType.Insert: ("+I", "insert"),
    ChangeType.UpdateBefore: ("-U", "update_before"),
    ChangeType.UpdateAfter: ("+U", "update_after"),
    ChangeType.Delete: ("-D", "delete"),
}
