"""Partition names as Java writes them, for values of every type a partition column may have."""

from __future__ import annotations

from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest

from fluss.model.tables.partitions import PartitionSpec, partition_name, qualified_partition_name
from fluss.model.tables.table_options import AutoPartitionUnit
from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    DoubleType,
    FloatType,
    TimestampLtzType,
    TimestampType,
)
from fluss.rows.keys.partition_codes import VALUE_BYTES_MAX, partition_codes
from fluss.rows.keys.partition_text import partition_text, partition_value
from fluss_server.auto_partitions import auto_partition_name
from tests.support.generators.random_columns import column_of
from tests.support.generators.seeded_values import KEY_TYPES, corners, exact, random_value

PARTITION_TYPES = [each.not_null() for each in KEY_TYPES if each.root != "DECIMAL"]
VALUES_EACH = 400
SECONDS_OF_YEAR_1 = -62_135_596_800


@pytest.fixture
def values_of(oracle):
    def values_of(data_type):
        if isinstance(data_type, FloatType | DoubleType):
            skip_newer_digits(oracle)
        rng = Random(data_type.root)
        found = [random_value(rng, data_type) for _ in range(VALUES_EACH)]
        return [*corners(data_type), *found]

    return values_of


def skip_newer_digits(oracle):
    if int(oracle.java_version.split(".")[0]) >= 19:
        pytest.skip("Since JDK 19 Double.toString prints other digits; run with JDK 17.")


@pytest.mark.parametrize("data_type", PARTITION_TYPES, ids=str)
def test_a_value_has_the_text_that_java_gives_it(oracle, compare, values_of, data_type):
    values = values_of(data_type)
    java = oracle.partition_texts(data_type, values)
    ours = [partition_text(value, data_type) for value in values]
    compare.values("partition texts", data_type, values, ours=ours, java=java)


@pytest.mark.parametrize("data_type", PARTITION_TYPES, ids=str)
def test_a_column_has_the_texts_that_java_gives_it(oracle, compare, values_of, data_type):
    values = [each for each in values_of(data_type) if size(each) <= VALUE_BYTES_MAX]
    java = oracle.partition_texts(data_type, values)
    found, codes = partition_codes([column_of(data_type, values)])
    ours = [found[code][0] for code in codes]
    compare.values("partition texts of columns", data_type, values, ours=ours, java=java)


@pytest.mark.parametrize("data_type", PARTITION_TYPES, ids=str)
def test_the_text_that_java_gives_is_read_as_the_value(oracle, values_of, data_type):
    values = [each for each in values_of(data_type) if not is_before_christ(each, data_type)]
    texts = oracle.partition_texts(data_type, values)
    read = [partition_value(text, data_type) for text in texts]
    assert exact(read) == exact(values)


def size(value):
    """The bytes of a text or of bytes; nothing else can be too long for a partition name."""
    data = value.encode() if isinstance(value, str) else value
    return len(data) if isinstance(data, bytes) else 0


def is_before_christ(value, data_type):
    """Return whether it is a timestamp whose year Java prints without its era."""
    if not isinstance(data_type, TimestampType | TimestampLtzType):
        return False
    return value < SECONDS_OF_YEAR_1 * UNITS_PER_SECOND[data_type.unit]


def test_the_name_of_a_partition_is_that_of_java(oracle, compare):
    rng = Random(91)
    for count in (1, 2, 4):
        keys = [f"k{index}" for index in range(count)]
        values = [rng.choice(("2025", "EU", "-5", "a_b", "x" * 40)) for _ in keys]
        spec = PartitionSpec(dict(zip(keys, values, strict=True)))
        ours = (partition_name(spec, keys), qualified_partition_name(spec.spec_map))
        java = oracle.partition_names(keys, values)
        compare.others("partition names", [spec], ours=[ours], java=[java])


@pytest.mark.parametrize("unit", AutoPartitionUnit)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu"])
def test_the_partition_of_a_moment_is_that_of_java(oracle, compare, zone, unit):
    """Includes the hours that daylight saving time skips and repeats."""
    rng = Random(f"{zone} {unit}")
    millis = [rng.randrange(2**42) for _ in range(60)]
    for change in (1_711_846_800_000, 1_729_990_800_000, 1_710_054_000_000, 1_730_613_600_000):
        millis += [change + hour * 1_800_000 for hour in range(-5, 6)]
    moments = [(each, rng.choice((0, 1, -1, 5, -13))) for each in millis]
    java = oracle.auto_partitions(zone, unit.value, moments)
    ours = [
        auto_partition_name(unit, datetime.fromtimestamp(at / 1_000, ZoneInfo(zone)), offset=offset)
        for at, offset in moments
    ]
    compare.others("automatic partitions", moments, ours=ours, java=java)
