"""The names of the partitions that a server creates by time."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from fluss.model.tables.table_options import AutoPartitionUnit as Unit
from fluss_server.auto_partitions import auto_partition_name

MOMENT = datetime(2026, 11, 18, 23, 5)  # noqa: DTZ001 - what a clock on the wall shows


@pytest.mark.parametrize(
    ("unit", "offset", "name"),
    [
        (Unit.YEAR, 0, "2026"),
        (Unit.YEAR, -3, "2023"),
        (Unit.QUARTER, 0, "20264"),
        (Unit.QUARTER, 1, "20271"),
        (Unit.QUARTER, -4, "20254"),
        (Unit.MONTH, 0, "202611"),
        (Unit.MONTH, 2, "202701"),
        (Unit.MONTH, -11, "202512"),
        (Unit.DAY, 0, "20261118"),
        (Unit.DAY, 13, "20261201"),
        (Unit.HOUR, 0, "2026111823"),
        (Unit.HOUR, 1, "2026111900"),
        (Unit.HOUR, -24, "2026111723"),
    ],
)
def test_partitions_made_by_time_are_named_by_it(unit, offset, name):
    assert auto_partition_name(unit, MOMENT, offset=offset) == name
    if unit is not Unit.HOUR:
        assert auto_partition_name(unit, MOMENT.date(), offset=offset) == name


def test_a_month_later_is_a_month_later_even_on_the_31st():
    assert auto_partition_name(Unit.MONTH, date(2026, 1, 31), offset=1) == "202602"


def test_a_day_alone_has_hours_from_midnight_on():
    assert auto_partition_name(Unit.HOUR, date(2026, 1, 1), offset=-1) == "2025123123"


def test_hours_with_a_zone_pass_as_they_really_do():
    before = datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # then it is 3
    assert auto_partition_name(Unit.HOUR, before, offset=1) == "2026032903"
    assert auto_partition_name(Unit.HOUR, MOMENT.replace(tzinfo=UTC), offset=1) == "2026111900"
