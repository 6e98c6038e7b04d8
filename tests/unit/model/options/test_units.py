from __future__ import annotations

from datetime import timedelta

import pytest

from fluss.model.options.units import QUANTITY_MAX, parse_duration_ms, parse_size


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (0, 0),
        ("2097152", 2097152),
        ("1b", 1),
        ("2 bytes", 2),
        ("3k", 3 * 1024),
        ("4 KB", 4 * 1024),
        ("2mb", 2 * 1024**2),
        ("1 mebibytes", 1024**2),
        (" 16g ", 16 * 1024**3),
        ("1TB", 1024**4),
    ],
)
def test_a_size_is_written_as_in_java_or_in_bytes(written, size):
    assert parse_size(written) == size


@pytest.mark.parametrize(
    ("written", "duration_ms"),
    [
        (500, 500),
        ("0500", 500),
        ("500ms", 500),
        ("10s", 10_000),
        ("10 seconds", 10_000),
        ("3 min", 180_000),
        ("3m", 180_000),
        ("2h", 7_200_000),
        ("7 d", 604_800_000),
        ("1500 us", None),
        ("1500 micros", 1),
        ("1999 µs", 1),
        ("999999 ns", 0),
        (timedelta(seconds=1.5), 1500),
    ],
)
def test_a_duration_is_written_as_in_java_or_in_milliseconds(written, duration_ms):
    if duration_ms is None:
        with pytest.raises(ValueError, match="no unit of time"):
            parse_duration_ms(written)
    else:
        assert parse_duration_ms(written) == duration_ms


@pytest.mark.parametrize(
    "written", ["", "mb", "-1", "-1s", "1.5mb", "1 2", "1 parsec", None, 1.5, True, "1" * 30, -7]
)
def test_something_else_is_neither(written):
    with pytest.raises(ValueError, match=r"\w"):
        parse_size(written)
    with pytest.raises(ValueError, match=r"\w"):
        parse_duration_ms(written)


def test_what_64_bits_cannot_hold_is_refused():
    assert parse_duration_ms(str(QUANTITY_MAX)) == QUANTITY_MAX
    with pytest.raises(ValueError, match="out of range"):
        parse_duration_ms(QUANTITY_MAX + 1)
    with pytest.raises(ValueError, match="out of range"):
        parse_size("99999999999999999999 tb")
    with pytest.raises(ValueError, match="out of range"):
        parse_duration_ms(timedelta(days=-1))
