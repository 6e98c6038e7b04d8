"""Days since 1970-01-01 and the proleptic Gregorian calendar, for every year Java has.

Python's `datetime` ends at the years 1 and 9999; Fluss's DATE and TIMESTAMP do not.
"""

from __future__ import annotations

_DAYS_PER_ERA = 146_097  # 400 years, after which the calendar repeats
_EPOCH_IN_ERA_ZERO = 719_468  # days from 0000-03-01 to 1970-01-01
_DAYS_OF_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year (0 is 1 BC), month and day of a day number."""
    # Years are counted from March, so that the leap day is the last day of one.
    era, day_of_era = divmod(days + _EPOCH_IN_ERA_ZERO, _DAYS_PER_ERA)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the day number of a date that exists; see `is_civil`."""
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_ERA + day_of_era - _EPOCH_IN_ERA_ZERO


def is_civil(year: int, month: int, day: int) -> bool:
    """Return whether the calendar has this day."""
    if not 1 <= month <= 12:
        return False
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS_OF_MONTH[month - 1] + (month == 2 and is_leap)
