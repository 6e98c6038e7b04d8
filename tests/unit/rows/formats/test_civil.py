from datetime import date

import pytest
from hypothesis import given, strategies as st

from fluss.rows.formats.civil import civil_from_days, days_from_civil, is_civil

EPOCH = date(1970, 1, 1)


@given(st.dates())
def test_a_day_is_the_one_that_python_knows(day):
    days = (day - EPOCH).days
    assert civil_from_days(days) == (day.year, day.month, day.day)
    assert days_from_civil(day.year, day.month, day.day) == days


@given(st.integers(-(2**40), 2**40))
def test_a_day_number_comes_back_from_its_date(days):
    parts = civil_from_days(days)
    assert is_civil(*parts)
    assert days_from_civil(*parts) == days


def test_the_year_before_the_first_is_zero():
    assert civil_from_days(days_from_civil(1, 1, 1) - 1) == (0, 12, 31)


@pytest.mark.parametrize(
    ("parts", "exists"),
    [
        ((2024, 2, 29), True),
        ((2023, 2, 29), False),
        ((1900, 2, 29), False),
        ((2000, 2, 29), True),
        ((2000, 4, 31), False),
        ((2000, 0, 1), False),
        ((2000, 13, 1), False),
        ((2000, 1, 0), False),
        ((-4, 2, 29), True),
    ],
)
def test_the_calendar_knows_its_days(parts, exists):
    assert is_civil(*parts) is exists
