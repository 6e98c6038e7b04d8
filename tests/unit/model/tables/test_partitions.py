from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from fluss.errors import InvalidNameError, InvalidSchemaError
from fluss.model.tables.partitions import (
    PartitionInfo,
    PartitionSpec,
    auto_partition_name,
    check_new_partition,
    parse_partition_name,
    parse_qualified_partition_name,
    partition_name,
    partition_values,
    qualified_partition_name,
)
from fluss.model.tables.table_options import AutoPartitionUnit as Unit
from tests.support.copies import pickled

KEYS = ("year", "region")


def test_a_partition_is_named_by_its_values_in_the_order_of_the_keys():
    spec = PartitionSpec({"region": "EU", "year": "2026"})
    assert partition_values(spec, KEYS) == ("2026", "EU")
    assert partition_name(spec, KEYS) == "2026$EU"
    assert parse_partition_name("2026$EU", KEYS) == spec
    assert spec.get_spec_map() == {"region": "EU", "year": "2026"}
    assert PartitionSpec(spec) == spec


def test_a_qualified_name_tells_keys_too():
    spec = PartitionSpec({"year": "2026", "region": "EU"})
    assert qualified_partition_name(spec.spec_map) == str(spec) == "year=2026/region=EU"
    assert parse_qualified_partition_name("year=2026/region=EU") == spec


@pytest.mark.parametrize("name", ["2026", "2026$EU$x", "2026$", "$", "2026$a b"])
def test_a_name_with_other_values_than_keys_is_refused(name):
    with pytest.raises(InvalidNameError):
        parse_partition_name(name, KEYS)


@pytest.mark.parametrize("name", ["", "2026", "year=2026/EU", "=2026", "a=1/a=2", "a="])
def test_a_qualified_name_that_is_none_is_refused(name):
    with pytest.raises(InvalidNameError):
        parse_qualified_partition_name(name)


def test_a_spec_with_other_keys_than_the_table_is_refused():
    with pytest.raises(InvalidSchemaError, match="lacks the partition key 'region'"):
        partition_name(PartitionSpec({"year": "2026"}), KEYS)
    with pytest.raises(InvalidSchemaError) as caught:
        partition_name(PartitionSpec({"yaer": "2026", "region": "EU"}), KEYS)
    assert caught.value.hint == "did you mean 'year'?"


@pytest.mark.parametrize("value", ["", "a/b", "2026-01-01 10", 2026, None, "a$b"])
def test_a_value_that_cannot_be_in_a_name_is_refused_with_its_key(value):
    with pytest.raises(InvalidNameError, match="'year'"):
        PartitionSpec({"year": value})


def test_a_partition_of_fluss_itself_may_be_named_but_not_made():
    spec = PartitionSpec({"year": "__historical__"})
    with pytest.raises(InvalidNameError, match="reserved"):
        check_new_partition(spec)
    check_new_partition(PartitionSpec({"year": "2026"}))


def test_a_spec_can_be_hashed_and_pickled():
    spec = PartitionSpec({"year": "2026"})
    assert hash(pickled(spec)) == hash(spec)
    assert pickled(spec) == spec


def test_a_partition_that_exists_has_its_documented_accessors():
    info = PartitionInfo(7, "2026$EU")
    assert info.partition_id == info.get_partition_id() == 7
    assert info.partition_name == info.get_partition_name() == "2026$EU"
    assert repr(info) == "PartitionInfo(partition_id=7, partition_name='2026$EU')"


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
