from __future__ import annotations

import pytest

from fluss.errors import InvalidNameError, InvalidSchemaError
from fluss.model.tables.partitions import (
    PartitionInfo,
    PartitionSpec,
    check_new_partition,
    parse_partition_name,
    parse_qualified_partition_name,
    partition_name,
    partition_values,
    qualified_partition_name,
)
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
