"""Aligned rows; the expected bytes are those of `AlignedRowEncoder` of Fluss 0.9.1.

`PaimonKeyEncoder` gave the same bytes for the same rows.
"""

import struct
from random import Random

import pytest
from hypothesis import given

from fluss.errors import CorruptDataError, InvalidValueError, UnsupportedTypeError
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BooleanType,
    BytesType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.rows.formats.aligned import write_aligned_rows
from fluss.rows.formats.aligned_row import AlignedRowReader, AlignedRowWriter
from tests.support.generators.random_columns import columns_of
from tests.support.generators.random_values import LEAF_TYPES, exact, random_rows, tables

JAVA = [
    (
        (IntType(), StringType()),
        (1, "abcdefg"),
        "0000000000000000 0100000000000000 6162636465666787",
    ),
    (
        (IntType(), StringType()),
        (None, "abcdefgh"),
        "0001000000000000 0000000000000000 0800000018000000 6162636465666768",
    ),
    (
        (DecimalType(19, 0), TimestampType(6)),
        (-129, 1_000_001),
        (
            "0000000000000000 0200000018000000 e803000028000000"
            "ff7f000000000000 0000000000000000 e803000000000000"
        ),
    ),
    (
        (BooleanType(), TinyIntType(), SmallIntType(), BigIntType(), FloatType(), DoubleType()),
        (True, -1, -2, -3, 1.5, -2.5),
        (
            "0000000000000000 0100000000000000 ff00000000000000 feff000000000000"
            "fdffffffffffffff 0000c03f00000000 00000000000004c0"
        ),
    ),
    (
        (TimestampLtzType(3), DecimalType(18, 2), DateType(), TimeType(3)),
        (-1, -5, -1, 86399999),
        "0000000000000000 ffffffffffffffff fbffffffffffffff ffffffff00000000 ff5b260500000000",
    ),
    ((BytesType(),), (b"",), "0000000000000000 0000000000000080"),
]


@pytest.mark.parametrize(("types", "row", "encoded"), JAVA)
def test_a_row_has_the_bytes_that_java_gives_it(types, row, encoded):
    encoded = bytes.fromhex(encoded)
    assert AlignedRowWriter(types).write(row) == encoded
    assert list(write_aligned_rows(columns_of(types, [row, row]))) == [encoded, encoded]
    assert exact(AlignedRowReader(types).read(encoded)) == exact(row)


def test_null_bits_go_on_in_a_second_word():
    types = (IntType(),) * 57
    row = tuple(None if index in {0, 55, 56} else 0 for index in range(57))
    assert AlignedRowWriter(types).write(row)[:16].hex() == "00010000000000800100000000000000"
    assert write_aligned_rows(columns_of(types, [row]))[0] == AlignedRowWriter(types).write(row)


def test_the_row_kind_of_others_is_not_looked_at():
    row, types = (7, None), (IntType(), IntType())
    encoded = AlignedRowWriter(types).write(row)
    assert encoded[0] == 0
    assert AlignedRowReader(types).read(b"\x03" + encoded[1:]) == row


@given(tables(depth=0))
def test_columns_and_single_rows_become_the_same_bytes_and_come_back(table):
    types, rows = table
    encoded = [AlignedRowWriter(types).write(row) for row in rows]
    assert list(write_aligned_rows(columns_of(types, rows))) == encoded
    assert exact([AlignedRowReader(types).read(each) for each in encoded]) == exact(rows)


def test_a_row_of_every_type_comes_back():
    rng = Random(5)
    types = LEAF_TYPES * 4  # more fields than fit two words of null bits
    rows = random_rows(rng, types, 9)
    encoded = write_aligned_rows(columns_of(types, rows))
    assert list(encoded) == [AlignedRowWriter(types).write(row) for row in rows]
    assert exact([AlignedRowReader(types).read(each) for each in encoded]) == exact(rows)


@pytest.mark.parametrize("cut", [0, 7, 8, 23, 24, 31])
def test_a_row_that_is_cut_off_is_refused(cut):
    types = (IntType(), StringType())
    encoded = AlignedRowWriter(types).write((1, "a longer text"))[:cut]
    with pytest.raises(CorruptDataError) as caught:
        AlignedRowReader(types).read(encoded)
    assert caught.value.what == "aligned row"


def slot(low, high):
    return bytes(8) + struct.pack("<II", low, high)


@pytest.mark.parametrize(
    ("data_type", "encoded", "why"),
    [
        (StringType(), slot(9, 16) + bytes(8), "points out"),
        (StringType(), slot(1, 0xFFFFFF00 & 0x7FFFFFFF), "points out"),
        (StringType(), slot(0x7FFFFFFF, 16), "points out"),
        (StringType(), bytes(15) + b"\x88", "room for"),
        (DecimalType(20, 0), slot(0, 16), "1 to 16 bytes"),
        (DecimalType(20, 0), slot(17, 16) + bytes(24), "1 to 16 bytes"),
        (DecimalType(20, 0), slot(16, 16) + b"\x7f" * 16, "more than 20 digits"),
        (DecimalType(5, 0), bytes(8) + b"\xff" * 7 + b"\x7f", "more than 5 digits"),
        (TimestampType(6), slot(0, 17) + bytes(8), "points out"),
        (TimestampType(6), slot(1_000_000, 16) + bytes(8), "nanoseconds"),
    ],
)
def test_a_slot_that_cannot_be_is_refused(data_type, encoded, why):
    with pytest.raises(CorruptDataError, match=why):
        AlignedRowReader([data_type]).read(encoded)


def test_slots_that_share_one_long_run_are_refused():
    encoded = bytes(8) + struct.pack("<II", 64, 24) * 2 + b"x" * 64
    with pytest.raises(CorruptDataError, match="share"):
        AlignedRowReader([StringType(), StringType()]).read(encoded)


def test_rubbish_is_refused_or_read_but_does_no_harm():
    rng = Random(11)
    types = (IntType(), StringType(), TimestampType(9), DecimalType(38, 3), BytesType())
    refused = 0
    for _ in range(300):
        data = bytearray(
            AlignedRowWriter(types).write((1, "longer text", 7, -(10**30), b"\x00" * 12))
        )
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            AlignedRowReader(types).read(bytes(data))
        except CorruptDataError:
            refused += 1
    assert refused > 50


def test_nested_types_are_refused():
    types = [ArrayType(IntType())]
    for refused in (
        lambda: AlignedRowWriter(types).write(([1],)),
        lambda: write_aligned_rows(columns_of(types, [([1],)])),
        lambda: AlignedRowReader(types).read(bytes(16)),
    ):
        with pytest.raises(UnsupportedTypeError, match="aligned row"):
            refused()


def test_a_value_that_does_not_fit_is_refused_with_its_column():
    types = (IntType(), TinyIntType().not_null())
    with pytest.raises(InvalidValueError, match="Field 1") as caught:
        AlignedRowWriter(types).write((1, 128))
    assert caught.value.column == 1
    with pytest.raises(InvalidValueError, match="NULL") as caught:
        AlignedRowWriter(types).write((1, None))
    assert caught.value.column == 1
    with pytest.raises(InvalidValueError, match="2 fields"):
        AlignedRowWriter(types).write((1,))
    with pytest.raises(InvalidValueError, match="row 1") as caught:
        write_aligned_rows(columns_of([IntType(), DecimalType(2, 0)], [(1, 5), (2, 100)]))
    assert (caught.value.column, caught.value.row) == (1, 1)
