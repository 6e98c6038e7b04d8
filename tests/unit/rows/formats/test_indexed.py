"""Indexed rows: hand-worked bytes, both paths against each other, there and back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given

from fluss.errors import CorruptDataError, InvalidValueError, LimitExceededError
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataField,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    RowType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.rows.buffers.columns import Column
from fluss.rows.formats.indexed import read_indexed_rows, write_indexed_rows
from fluss.rows.formats.indexed_row import IndexedRowReader, IndexedRowWriter
from tests.support.generators.encoded import joined
from tests.support.generators.random_columns import column_of, columns_of, rows_in
from tests.support.generators.random_values import exact, random_rows, random_types, tables

# Worked by hand from the table in the codec: the length, where the type has no width; the field.
FIELDS = [
    (BooleanType(), True, "", "01"),
    (TinyIntType(), -2, "", "fe"),
    (SmallIntType(), -2, "", "feff"),
    (IntType(), 300, "", "2c010000"),
    (BigIntType(), -1, "", "ff" * 8),
    (FloatType(), 1.5, "", "0000c03f"),
    (DoubleType(), -0.0, "", "0000000000000080"),
    (CharType(4), "é", "", "c3a90000"),
    (CharType(2), "", "", "0000"),
    (StringType(), "", "00000000", ""),
    (StringType(), "abc", "03000000", "616263"),
    (BinaryType(2), b"\1\0", "", "0100"),
    (BytesType(), b"\0\0", "02000000", "0000"),
    (DecimalType(5, 2), -1, "", "ff" * 8),
    (DecimalType(19, 0), 128, "02000000", "0080"),
    (DateType(), 1, "", "01000000"),
    (TimeType(0), 1, "", "e8030000"),
    (TimeType(6), 2_000, "", "02000000"),
    (TimestampType(3), -1, "", "ff" * 8),
    (TimestampType(6), -1, "", "ff" * 8 + "583e0f00"),
    (TimestampLtzType(9), 1_000_001, "", "0100000000000000" + "01000000"),
    (ArrayType(IntType()), [7], "10000000", "01000000000000000700000000000000"),
    (MapType(TinyIntType(), TinyIntType()), [], "14000000", "08000000" + "00" * 16),
    # An indexed row inside an indexed row, with null bits and a length of its own.
    (
        RowType((DataField("a", IntType()), DataField("s", StringType()))),
        (None, "xy"),
        "07000000",
        "01" + "02000000" + "7879",
    ),
]


def encode(types, rows):
    """Each row by both paths, which must agree."""
    by_columns = list(write_indexed_rows(columns_of(types, rows)))
    assert by_columns == [IndexedRowWriter(types).write(row) for row in rows]
    return by_columns


def decode(types, encoded):
    by_columns = rows_in(read_indexed_rows(*joined(encoded), types), length=len(encoded))
    assert exact(by_columns) == exact([IndexedRowReader(types).read(each) for each in encoded])
    return by_columns


@pytest.mark.parametrize(("data_type", "value", "length", "field"), FIELDS, ids=str)
def test_every_type_has_its_hand_worked_bytes(data_type, value, length, field):
    encoded = bytes.fromhex("00" + length + field)
    assert encode((data_type,), [(value,)]) == [encoded]
    assert decode((data_type,), [encoded]) == [(value,)]


def test_lengths_of_null_fields_are_left_out_and_the_room_for_them_stays():
    types = (StringType(), IntType(), StringType(), BytesType())
    rows = [("a", 1, None, b"bc"), (None, None, None, None), (None, 2, "d", None)]
    assert [each.hex() for each in encode(types, rows)] == [
        "04" + "01000000" + "02000000" + "00000000" + "61" + "01000000" + "6263",
        "0f" + "00" * 12,
        "09" + "01000000" + "00" * 8 + "02000000" + "64",
    ]
    assert decode(types, encode(types, rows)) == rows


def test_a_row_inside_an_array_is_an_indexed_row():
    inner = RowType((DataField("s", StringType()),))
    (encoded,) = encode((ArrayType(inner),), [([("x",)],)])
    array = "01000000" + "00000000" + "06000000" + "10000000"
    assert encoded.hex() == "00" + "18000000" + array + "00" + "01000000" + "78" + "0000"


@given(tables())
def test_what_was_written_is_read(table):
    types, rows = table
    assert exact(decode(types, encode(types, rows))) == exact(rows)


@pytest.mark.parametrize("seed", range(20))
def test_wide_and_deep_tables_come_back(seed):
    rng = Random(seed)
    types = random_types(rng, rng.randint(1, 20), depth=3)
    rows = random_rows(rng, types, rng.choice([1, 2, 40]))
    assert exact(decode(types, encode(types, rows))) == exact(rows)


def test_rows_without_columns_are_empty():
    assert IndexedRowWriter(()).write(()) == b""
    assert IndexedRowReader(()).read(b"") == ()


def test_a_row_is_read_from_a_view_of_it():
    types, row = (IntType(), StringType()), (5, "five")
    encoded = IndexedRowWriter(types).write(row)
    assert IndexedRowReader(types).read(memoryview(encoded)) == row


def test_zeros_at_the_end_of_a_char_are_padding():
    """As for a Java reader; the zero inside stays."""
    assert decode((CharType(6),), encode((CharType(6),), [("a\0b\0",)])) == [("a\0b",)]


def test_zeros_at_the_end_of_a_binary_stay():
    """Java's `IndexedRow.getBinary` cuts them off; the type says n bytes."""
    assert decode((BinaryType(4),), [b"\0ab\0\0"]) == [(b"ab\0\0",)]
    assert IndexedRowWriter((BinaryType(4),)).write((b"ab",)) == b"\0ab\0\0"


@pytest.mark.parametrize("text", ["abc", "é€"])
def test_text_of_more_bytes_than_its_char_is_refused(text):
    with pytest.raises(InvalidValueError, match="more than 2") as caught:
        IndexedRowWriter((IntType(), CharType(2))).write((1, text))
    assert caught.value.column == 1
    columns = [column_of(IntType(), [1, 1]), column_of(CharType(2), ["ok", text])]
    with pytest.raises(InvalidValueError, match="more than 2") as caught:
        write_indexed_rows(columns)
    assert (caught.value.column, caught.value.row) == (1, 1)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [(IntType(), 2**31), (BinaryType(1), b"ab"), (StringType(), 5), (IntType().not_null(), None)],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused_with_its_column(data_type, value):
    with pytest.raises(InvalidValueError) as caught:
        IndexedRowWriter((StringType(), data_type)).write(("x", value))
    assert caught.value.column == 1


def test_padding_that_no_batch_can_hold_is_refused_before_memory_is_asked_for():
    column = column_of(CharType(2**30), ["a", "b"])
    with pytest.raises(LimitExceededError, match="these would have"):
        write_indexed_rows([column])


@pytest.mark.parametrize(
    ("types", "encoded", "why"),
    [
        ((IntType(),), "00010000", "middle of a value|no 4 bytes"),
        ((IntType(),), "000100000000", "left over|should end"),
        ((StringType(),), "00ffffffff", "length|no -1 bytes"),
        ((StringType(),), "000200000061", "length|no 2 bytes"),
        ((StringType(),), "000100", "middle of a value"),
        ((CharType(2**31 - 1),), "0061", "length|no 2147483647 bytes"),
        ((TimestampType(6),), "00" + "00" * 8 + "40420f00", "nanoseconds"),
        ((StringType(), IntType()), "", "middle of a value"),
    ],
    ids=str,
)
def test_bytes_that_cannot_be_a_row_are_refused_by_both_paths(types, encoded, why):
    data = bytes.fromhex(encoded)
    with pytest.raises(CorruptDataError, match=why):
        IndexedRowReader(types).read(data)
    with pytest.raises(CorruptDataError, match=why):
        read_indexed_rows(*joined([data]), types)


def test_an_error_names_the_row_and_the_byte():
    data, starts, ends = joined([b"\0\1\0\0\0", b"\0\1\0"])
    with pytest.raises(CorruptDataError) as caught:
        read_indexed_rows(data, starts, ends, (IntType(),))
    assert (caught.value.what, caught.value.index) == ("indexed row", 1)
    assert caught.value.at == starts[1] + 1
    with pytest.raises(CorruptDataError) as caught:
        IndexedRowReader((IntType(), IntType())).read(b"\0\1\0\0\0\2")
    assert caught.value.at == 5


def test_rubbish_under_null_is_not_written():
    column = Column(
        type=CharType(3),
        length=2,
        valid=np.array([False, True]),
        values=np.frombuffer(b"too longab", np.uint8),
        offsets=np.array([0, 8, 10], np.int32),
    )
    assert list(write_indexed_rows([column])) == [b"\1", b"\0ab\0"]
