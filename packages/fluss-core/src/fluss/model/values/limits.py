"""What the format in which a table keeps its rows adds to the limits of its types.

A value is refused by these when it is taken, because the encoder would find it only later: when
other rows have been sent, and rows have been brought into another order.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLimits:
    """The limits of a table; those of the types alone by default.

    Attributes:
        keeps_millis: Whether a TIME is kept in milliseconds, whatever its precision.
        counts_char_bytes: Whether CHAR(n) holds n bytes of UTF-8, and not n characters.
    """

    keeps_millis: bool = False
    counts_char_bytes: bool = False


NO_LIMITS = ValueLimits()
