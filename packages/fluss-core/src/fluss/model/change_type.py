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
        return _SHORT[self]

    @property
    def long_name(self) -> str:
        """`insert`, `update_before`, `update_after` or `delete`, as in the column `_change_type`.

        A row appended to a log reads `insert` there, as in Fluss's own changelog tables.
        """
        return _LONG[self]

    @staticmethod
    def parse(text: str) -> ChangeType:
        """Return the change for a short string or a long name; `insert` is `Insert`.

        Raises:
            InvalidValueError: When it is neither.
        """
        folded = text.strip().lower()
        for change in reversed(ChangeType):  # so that `insert` is Insert before it is AppendOnly
            if folded in {_SHORT[change].lower(), _LONG[change], change.name.lower()}:
                return change
        raise _no_change(text)

    def __str__(self) -> str:
        return self.short_string()

    def __repr__(self) -> str:
        return f"ChangeType.{self.name}"


_SHORT = {
    ChangeType.AppendOnly: "+A",
    ChangeType.Insert: "+I",
    ChangeType.UpdateBefore: "-U",
    ChangeType.UpdateAfter: "+U",
    ChangeType.Delete: "-D",
}
_LONG = {
    ChangeType.AppendOnly: "insert",
    ChangeType.Insert: "insert",
    ChangeType.UpdateBefore: "update_before",
    ChangeType.UpdateAfter: "update_after",
    ChangeType.Delete: "delete",
}


def _no_change(text: object) -> InvalidValueError:
    return InvalidValueError(
        f"{text!r} is not a kind of change.",
        hint=f"write one of {', '.join(_SHORT.values())}, {', '.join(dict.fromkeys(_LONG.values()))}",
        value=text,
    )
