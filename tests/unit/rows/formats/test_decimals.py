"""Decimals of up to 38 digits, as two words and as few bytes as possible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.model.types.data_type import DecimalType
from fluss.rows.formats.decimals import check_digits, shortest_bytes, words_of_runs

WIDEST = DecimalType(38, 0)
EDGES = [s * 2**b + d for b in range(127) for s in (1, -1) for d in (-1, 0)]
VALUES = st.lists(
    (st.sampled_from(EDGES) | st.integers(-(10**38) + 1, 10**38 - 1)).filter(
        lambda value: abs(value) < 10**38
    ),
    max_size=30,
)


class RefusedError(Exception):
    pass


def refuse(wrong, why):
    raise RefusedError(wrong.tolist(), why)


def words(values):
    pairs = [(value & 2**64 - 1, value >> 64) for value in values]
    low = np.array([pair[0] for pair in pairs], np.uint64).view(np.int64)
    return low, np.array([pair[1] for pair in pairs], np.int64)


def java_bytes(value):
    """BigInteger.toByteArray."""
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


@given(VALUES)
def test_a_value_takes_as_few_bytes_as_in_java(values):
    runs = shortest_bytes(*words(values))
    written = [
        runs.data[start : start + length].tobytes()
        for start, length in zip(runs.starts, runs.lengths, strict=True)
    ]
    assert written == [java_bytes(value) for value in values]
    read = words_of_runs(runs.data, runs.starts, runs.lengths, WIDEST, refuse)
    assert [int(high) * 2**64 + int(low) % 2**64 for low, high in read] == values


@pytest.mark.parametrize("precision", [1, 18, 19, 20, 38])
def test_the_digits_of_a_type_are_a_hard_limit(precision):
    largest, data_type = 10**precision - 1, DecimalType(precision, 0)
    check_digits(*words([largest, -largest, 0]), data_type, refuse)
    for value in (largest + 1, -largest - 1):
        with pytest.raises(RefusedError) as caught:
            check_digits(*words([0, value]), data_type, refuse)
        assert caught.value.args[0] == [False, True]


@pytest.mark.parametrize("length", [0, 17])
def test_no_bytes_and_too_many_bytes_are_refused(length):
    data = np.zeros(32, np.uint8)
    with pytest.raises(RefusedError, match="1 to 16"):
        words_of_runs(data, np.array([0]), np.array([length]), WIDEST, refuse)


def test_superfluous_leading_bytes_are_read():
    data = np.frombuffer(b"\0\0\x05\xff\xff\xfb", np.uint8)
    read = words_of_runs(data, np.array([0, 3]), np.array([3, 3]), WIDEST, refuse)
    assert read.tolist() == [[5, 0], [-5, -1]]
