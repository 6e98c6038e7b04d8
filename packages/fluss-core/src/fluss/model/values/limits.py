"""Limits that a table's row format adds to those of its types.

They are checked when a value is accepted, because the encoder would find it only later: after other
rows have been sent, and rows have been reordered.
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
