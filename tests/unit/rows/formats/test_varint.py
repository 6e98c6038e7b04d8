"""Varints, one at a time and a whole column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptDataError
from fluss.rows.buffers.byte_runs import join_parts, padded
from fluss.rows.formats.varint import (
    UNENDING,
    read_varint,
    read_varint_column,
    read_varlong,
    varint,
    varint_column,
    varlong,
)

EDGES = sorted({s * (2**b) + d for b in range(64) for s in (1, -1) for d in (-1, 0, 1)})
INTS = [each for each in EDGES if -(2**31) <= each < 2**31]
LONGS = [each for each in EDGES if -(2**63) <= each < 2**63]


def slow_leb128(value, bits):
    value &= 2**bits - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (16384, "808001"), (-1, "ffffffff0f")],
)
def test_small_numbers_have_the_bytes_of_the_handbook(value, encoded):
    assert varint(value).hex() == encoded


def test_a_negative_long_takes_ten_bytes():
    assert varlong(-1).hex() == "ffffffffffffffffff01"


def test_every_edge_is_written_as_leb128_and_read_back():
    for value in INTS:
        encoded = varint(value)
        assert encoded == slow_leb128(value, 32)
        assert read_varint(b"\x80" + encoded + b"\x80", 1) == (value, 1 + len(encoded))
    for value in LONGS:
        encoded = varlong(value)
        assert encoded == slow_leb128(value, 64)
        assert read_varlong(b"\x80" + encoded + b"\x80", 1) == (value, 1 + len(encoded))


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**32, 2**63])
def test_a_number_too_wide_for_its_type_is_refused(value):
    with pytest.raises(OverflowError):
        varint(value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_long_too_wide_is_refused(value):
    with pytest.raises(OverflowError):
        varlong(value)


@pytest.mark.parametrize("read", [read_varint, read_varlong])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff"])
def test_a_number_that_is_cut_off_is_an_index_error(read, data):
    with pytest.raises(IndexError):
        read(data, 0)


@pytest.mark.parametrize(("read", "bytes_max"), [(read_varint, 5), (read_varlong, 10)])
def test_a_number_that_does_not_end_is_corrupt(read, bytes_max):
    with pytest.raises(CorruptDataError, match=f"beyond {bytes_max} bytes") as caught:
        read(b"\x01" + b"\x80" * 11, 1)
    assert caught.value.at == 1


@given(st.lists(st.sampled_from(LONGS) | st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_a_column_is_written_like_its_values_and_read_back(values):
    column = np.array(values, np.int64)
    encoded = join_parts([varint_column(column)], len(values))
    assert list(encoded) == [varlong(each) for each in values]
    read, lengths = read_varint_column(padded(encoded.data), encoded.offsets[:-1])
    assert read.view(np.int64).tolist() == values
    assert lengths.tolist() == [len(varlong(each)) for each in values]


@given(st.lists(st.sampled_from(INTS), max_size=40))
def test_a_column_of_ints_is_written_as_32_bits(values):
    encoded = join_parts([varint_column(np.array(values, np.int32))], len(values))
    assert list(encoded) == [varint(each) for each in values]


def test_a_column_says_which_number_does_not_end():
    data = padded(np.frombuffer(b"\x05" + b"\x80" * 10, np.uint8))
    _, lengths = read_varint_column(data, np.array([0, 1]))
    assert lengths.tolist() == [1, UNENDING]
