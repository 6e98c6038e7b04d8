import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import BytesType, DoubleType, IntType, StringType
from fluss.rows.buffers.columns import Column
from fluss.rows.buffers.distinct import distinct_numbers, distinct_values
from tests.support.generators.random_columns import column_of
from tests.support.generators.random_values import LEAF_TYPES, exact, values


@given(
    st.sampled_from(LEAF_TYPES).flatmap(
        lambda each: st.tuples(
            st.just(each),
            st.lists(values(each), min_size=1, max_size=4).flatmap(
                lambda pool: st.lists(st.sampled_from(pool), max_size=30)
            ),
        )
    )
)
def test_codes_and_values_give_back_the_column(case):
    data_type, rows = case
    distinct, found = distinct_values(column_of(data_type, rows))
    assert [exact(found[code]) for code in distinct.codes] == [exact(each) for each in rows]
    assert list(dict.fromkeys(distinct.codes.tolist())) == list(range(len(found)))
    firsts = [distinct.codes.tolist().index(code) for code in range(len(found))]
    assert distinct.rows.tolist() == firsts
    assert len({exact(each) for each in found}) == len(found)


def test_null_hides_what_stands_beneath_it():
    column = Column(
        type=IntType(),
        length=4,
        valid=np.array([False, True, False, True]),
        values=np.array([1, 1, 2, 2], np.int32),
    )
    distinct, found = distinct_values(column)
    assert found == [None, 1, 2]
    assert distinct.codes.tolist() == [0, 1, 0, 2]


def test_numbers_are_distinguished_by_their_bits():
    numbers = np.array([0.0, -0.0, math.nan, 0.0, math.nan])
    assert distinct_numbers(numbers).codes.tolist() == [0, 1, 2, 0, 2]
    assert distinct_values(column_of(DoubleType(), [0.0, -0.0]))[0].codes.tolist() == [0, 1]


def test_runs_are_compared_to_their_ends():
    texts = [b"", b"\x00", b"\x00" * 8, b"\x00" * 9, b"a" * 16, b"a" * 15 + b"b", b"a" * 15]
    distinct, found = distinct_values(column_of(BytesType(), texts * 3))
    assert found == texts
    assert distinct.codes.tolist() == [*range(7)] * 3


def test_text_that_is_no_utf_8_is_refused():
    broken = np.array([0xFF], np.uint8)
    offsets = np.array([0, 1], np.int32)
    with pytest.raises(InvalidValueError, match="UTF-8"):
        distinct_values(Column(type=StringType(), length=1, values=broken, offsets=offsets))
