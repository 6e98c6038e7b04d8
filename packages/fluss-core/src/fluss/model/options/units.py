"""Sizes and durations as Fluss's configuration writes them: `2mb`, `10 s`, `7 d`.

The spellings are Java's (`MemorySize`, `TimeUtils`). A number without a unit is taken as bytes or
milliseconds, which Java refuses and the other clients write. Errors are `ValueError`s, because
only the caller knows the key of the text.
"""

from __future__ import annotations

import re
from datetime import timedelta

# Both travel as 64-bit integers.
QUANTITY_MAX = 2**64 - 1

_TEXT = re.compile(r"\s*([0-9]{1,20})\s*([a-zµ]*)\s*", re.IGNORECASE | re.ASCII)

_BYTES = {
    1: ("", "b", "bytes"),
    2**10: ("k", "kb", "kibibytes"),
    2**20: ("m", "mb", "mebibytes"),
    2**30: ("g", "gb", "gibibytes"),
    2**40: ("t", "tb", "tebibytes"),
}
_NANOSECONDS = {
    1: ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
    10**3: ("µs", "micro", "micros", "microsecond", "microseconds"),
    10**6: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
    10**9: ("s", "sec", "secs", "second", "seconds"),
    60 * 10**9: ("m", "min", "minute", "minutes"),
    3600 * 10**9: ("h", "hour", "hours"),
    86400 * 10**9: ("d", "day", "days"),
}
_BYTES_OF = {label: size for size, labels in _BYTES.items() for label in labels}
_NANOSECONDS_OF = {label: size for size, labels in _NANOSECONDS.items() for label in labels}


def parse_size(value: object) -> int:
    """Return a size in bytes, from an int or from text such as `2097152`, `2mb`, `64 kb`.

    Raises:
        ValueError: When the value is no size.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _in_range(value, "a size")
    number, unit = _number_and_unit(value, "a size", "2mb")
    if unit not in _BYTES_OF:
        raise ValueError(f"{unit!r} is no unit of size; write b, kb, mb, gb or tb")
    return _in_range(number * _BYTES_OF[unit], "a size")


def parse_duration_ms(value: object) -> int:
    """Milliseconds, from an int, a timedelta, or text such as `500`, `10s`, `3 min`, `7d`.

    What is shorter than a millisecond is cut off, as in Java.

    Raises:
        ValueError: When the value is no duration.
    """
    if isinstance(value, timedelta):
        return _in_range(value // timedelta(milliseconds=1), "a duration")
    if isinstance(value, int) and not isinstance(value, bool):
        return _in_range(value, "a duration")
    number, unit = _number_and_unit(value, "a duration", "10s")
    if unit not in _NANOSECONDS_OF:
        raise ValueError(f"{unit!r} is no unit of time; write ms, s, min, h or d")
    return _in_range(number * _NANOSECONDS_OF[unit] // 10**6, "a duration")


def _number_and_unit(value: object, what: str, example: str) -> tuple[int, str]:
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not {what}; write a number and a unit, such as {example!r}")
    return int(found[1]), found[2].lower()


def _in_range(number: int, what: str) -> int:
    if not 0 <= number <= QUANTITY_MAX:
        raise ValueError(f"{number} is out of range for {what}")
    return number
