from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError, UnsupportedTypeError
from fluss.model.types.data_type import (
    BinaryType,
    BytesType,
    DateType,
    DecimalType,
    DoubleType,
    IntType,
    StringType,
    TimeType,
)
from fluss.rows.buffers.columns import Column
from fluss.rows.keys.partition_codes import VALUE_BYTES_MAX, partition_codes
from fluss.rows.keys.partition_text import partition_text
from tests.support.generators.random_columns import column_of, columns_of
from tests.support.generators.random_values import KEY_TYPES, values

PARTITION_TYPES = [each.not_null() for each in KEY_TYPES if not isinstance(each, DecimalType)]


@st.composite
def partitioned(draw):
    """Types, and rows that take their values from a few per column."""
    types = draw(st.lists(st.sampled_from(PARTITION_TYPES), min_size=1, max_size=3))
    pools = [draw(st.lists(_short(each), min_size=1, max_size=4)) for each in types]
    rows = draw(st.lists(st.tuples(*(st.sampled_from(pool) for pool in pools)), max_size=30))
    return types, rows


def _short(data_type):
    return values(data_type).filter(
        lambda value: not isinstance(value, str | bytes) or len(value) <= VALUE_BYTES_MAX // 4
    )


@given(partitioned())
def test_every_row_has_the_partition_of_its_values(case):
    types, rows = case
    partitions, codes = partition_codes(columns_of(types, rows))
    expected = [tuple(map(partition_text, row, types)) for row in rows]
    assert codes.dtype == np.int32
    assert [partitions[code] for code in codes] == expected
    assert partitions == list(dict.fromkeys(expected))  # in order of first appearance


def test_two_values_of_one_text_are_one_partition():
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0], np.uint64).view(np.float64)
    doubles = Column(type=DoubleType(), length=3, values=nans)
    partitions, codes = partition_codes([doubles])
    assert partitions == [("NaN",), ("0_0",)]
    assert codes.tolist() == [0, 0, 1]
    partitions, codes = partition_codes([column_of(TimeType(6), [1_000, 1_001, 2_000])])
    assert partitions == [("00-00-00_001",), ("00-00-00_002",)]
    assert codes.tolist() == [0, 0, 1]


def test_negative_zero_is_a_partition_of_its_own():
    partitions, codes = partition_codes([column_of(DoubleType(), [0.0, -0.0, 0.0])])
    assert partitions == [("0_0",), ("-0_0",)]
    assert codes.tolist() == [0, 1, 0]


def test_texts_that_share_a_beginning_are_distinguished():
    texts = ["12345678", "12345678\x00", "123456789", "1234567", "", "12345678" * 3]
    partitions, codes = partition_codes([column_of(StringType(), texts * 2)])
    assert [text for (text,) in partitions] == texts
    assert codes.tolist() == [*range(6), *range(6)]


def test_no_rows_have_no_partitions():
    partitions, codes = partition_codes(columns_of([StringType(), DateType()], []))
    assert partitions == []
    assert codes.tolist() == []


def test_null_is_refused_with_its_row_and_column():
    columns = columns_of([IntType(), StringType()], [(1, "a"), (2, None), (3, "c")])
    with pytest.raises(InvalidValueError, match="In row 1: Partition column 1 is NULL") as caught:
        partition_codes(columns)
    assert (caught.value.column, caught.value.row) == (1, 1)
    with pytest.raises(
        InvalidValueError, match="In row 1: Partition column region is NULL"
    ) as caught:
        partition_codes(columns, names=["id", "region"])
    assert (caught.value.column, caught.value.row) == ("region", 1)


@pytest.mark.parametrize(
    ("data_type", "short", "long"),
    [
        (StringType(), "a" * VALUE_BYTES_MAX, "a" * (VALUE_BYTES_MAX + 1)),
        (BytesType(), b"", b"\x00" * (VALUE_BYTES_MAX + 1)),
    ],
)
def test_a_value_longer_than_any_name_is_refused(data_type, short, long):
    assert partition_codes([column_of(data_type, [short])])[1].tolist() == [0]
    with pytest.raises(InvalidValueError, match="In row 1: ") as caught:
        partition_codes([column_of(data_type, [short, long])])
    assert caught.value.row == 1
    with pytest.raises(InvalidValueError, match="In row 0: "):
        partition_codes([column_of(BinaryType(201), [b"\x00" * 201])])


def test_a_type_without_partition_names_is_refused():
    with pytest.raises(UnsupportedTypeError, match="partition column"):
        partition_codes([column_of(DecimalType(5, 1), [1])])


def test_text_that_is_no_utf_8_is_refused():
    as_bytes = column_of(BytesType(), [b"ab", b"\xff\xfe"])
    with pytest.raises(InvalidValueError, match="UTF-8"):
        partition_codes([replace(as_bytes, type=StringType())])
