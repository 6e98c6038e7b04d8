"""Compacted rows and keys: hand-worked bytes, both paths against each other, there and back."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given

from fluss.errors import CorruptDataError, InvalidValueError
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
from fluss.rows.formats.compacted import (
    read_compacted_rows,
    write_compacted_keys,
    write_compacted_rows,
)
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from tests.support.generators.encoded import joined
from tests.support.generators.random_columns import column_of, columns_of, rows_in
from tests.support.generators.random_values import (
    KEY_TYPES,
    exact,
    random_rows,
    random_types,
    tables,
)

# Worked by hand from the table in the codec; the bits of NULLs are not part of these.
FIELDS = [
    (BooleanType(), True, "01"),
    (TinyIntType(), -2, "fe"),
    (SmallIntType(), -2, "feff"),
    (IntType(), 300, "ac02"),
    (IntType(), -1, "ffffffff0f"),
    (BigIntType(), -1, "ffffffffffffffffff01"),
    (BigIntType(), 2**56, "808080808080808001"),
    (FloatType(), 1.5, "0000c03f"),
    (DoubleType(), -0.0, "0000000000000080"),
    (CharType(5), "ab", "026162"),
    (StringType(), "", "00"),
    (StringType(), "é", "02c3a9"),
    (StringType(), "x" * 128, "8001" + "78" * 128),
    (BinaryType(2), b"\0\1", "020001"),
    (BytesType(), b"", "00"),
    (DecimalType(5, 2), -1, "ffffffffffffffffff01"),
    (DecimalType(19, 0), 128, "020080"),
    (DecimalType(38, 0), -128, "0180"),
    (DateType(), 19_000, "b89401"),
    (TimeType(0), 1, "e807"),
    (TimeType(9), 1_000_000, "01"),
    (TimestampType(0), 1, "e807"),
    (TimestampType(3), 1, "01"),
    (TimestampType(6), 1, "00e807"),
    (TimestampLtzType(9), -1, "ffffffffffffffffff01bf843d"),
    (ArrayType(IntType()), [7], "1001000000000000000700000000000000"),
    (MapType(TinyIntType(), TinyIntType()), [], "1408000000" + "00" * 16),
    (RowType((DataField("a", IntType()), DataField("b", IntType()))), (None, 5), "020105"),
]
HAND_WORKED = pytest.mark.parametrize(("data_type", "value", "encoded"), FIELDS, ids=str)


def encode(types, rows):
    """Each row by both paths, which must agree."""
    by_columns = list(write_compacted_rows(columns_of(types, rows)))
    assert by_columns == [CompactedRowWriter(types).write(row) for row in rows]
    return by_columns


def decode(types, encoded):
    by_columns = rows_in(read_compacted_rows(*joined(encoded), types), length=len(encoded))
    assert exact(by_columns) == exact([CompactedRowReader(types).read(each) for each in encoded])
    return by_columns


def test_the_worked_example_of_the_handbook_has_these_bytes():
    types = (IntType(), StringType(), DoubleType())
    assert encode(types, [(1, "part", None)])[0].hex() == "04" + "01" + "04" + "70617274"


@HAND_WORKED
def test_every_type_has_its_hand_worked_bytes(data_type, value, encoded):
    assert encode((data_type,), [(value,)])[0].hex() == "00" + encoded
    assert decode((data_type,), [bytes.fromhex("00" + encoded)]) == [(value,)]


@HAND_WORKED
def test_a_key_is_the_field_without_null_bits(data_type, value, encoded):
    types = (data_type.not_null(),)
    assert write_compacted_keys(columns_of(types, [(value,)]))[0].hex() == encoded
    assert CompactedRowWriter(types, is_key=True).write((value,)).hex() == encoded
    assert CompactedRowReader(types, is_key=True).read(bytes.fromhex(encoded)) == (value,)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 64, 65, 130])
def test_the_null_bits_of_field_i_is_bit_i(width):
    types = (TinyIntType(),) * width
    (encoded,) = encode(types, [tuple(None if i % 3 else 1 for i in range(width))])
    head = (width + 7) // 8
    bits = int.from_bytes(encoded[:head], "little")
    assert [bits >> i & 1 for i in range(width)] == [int(i % 3 > 0) for i in range(width)]
    assert encoded[head:] == b"\1" * ((width + 2) // 3)
    decode(types, [encoded])


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


def test_keys_of_every_type_come_back():
    rng = Random(1)
    types = tuple(each.not_null() for each in KEY_TYPES)
    rows = random_rows(rng, types, 60)
    encoded = list(write_compacted_keys(columns_of(types, rows)))
    assert encoded == [CompactedRowWriter(types, is_key=True).write(row) for row in rows]
    assert exact([CompactedRowReader(types, is_key=True).read(each) for each in encoded]) == exact(
        rows
    )


def test_a_nan_keeps_its_bits():
    odd = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    column = Column(type=DoubleType(), length=1, values=odd)
    (encoded,) = write_compacted_rows([column])
    assert encoded.hex() == "00" + "010000000000f87f"
    data, starts, ends = joined([encoded])
    (back,) = read_compacted_rows(data, starts, ends, [DoubleType()])
    assert back.values.tobytes() == odd.tobytes()
    assert (
        CompactedRowWriter([DoubleType()]).write([struct.unpack("<d", odd.tobytes())[0]]) == encoded
    )


def test_rows_without_columns_are_empty():
    nowhere = np.zeros(3, np.int64)
    assert read_compacted_rows(np.zeros(0, np.uint8), nowhere, nowhere, []) == []
    assert CompactedRowWriter(()).write(()) == b""
    assert CompactedRowReader(()).read(b"") == ()


def test_no_rows_become_columns_without_rows():
    types = (IntType(), StringType(), ArrayType(RowType((DataField("a", IntType()),))))
    encoded = write_compacted_rows(columns_of(types, []))
    assert len(encoded) == 0
    back = read_compacted_rows(encoded.data, encoded.offsets[:-1], encoded.offsets[1:], types)
    assert rows_in(back, length=0) == []


def test_a_binary_shorter_than_its_type_is_written_as_it_is():
    """As Java does, so that a key finds what Java wrote; columns always have full values."""
    assert CompactedRowWriter((BinaryType(4),), is_key=True).write((b"ab",)).hex() == "026162"
    assert decode((BinaryType(4),), [bytes.fromhex("00026162")]) == [(b"ab\0\0",)]


def test_a_row_is_read_from_a_view_of_it():
    types, row = (IntType(), StringType()), (5, "five")
    encoded = CompactedRowWriter(types).write(row)
    assert CompactedRowReader(types).read(memoryview(encoded)) == row


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (TinyIntType(), 128),
        (IntType(), 2**31),
        (BigIntType(), -(2**63) - 1),
        (IntType(), 1.5),
        (IntType(), "1"),
        (BooleanType(), "yes"),
        (FloatType(), 1e39),
        (DoubleType(), "1.0"),
        (StringType(), b"bytes"),
        (StringType(), "\ud800"),
        (BytesType(), "text"),
        (BinaryType(2), b"abc"),
        (DecimalType(3, 0), 1000),
        (DecimalType(20, 0), 10**20),
        (TimestampType(0), 2**62),
        (ArrayType(IntType()), 5),
        (ArrayType(IntType()), ["a"]),
        (MapType(IntType(), IntType()), [1]),
        (MapType(IntType(), IntType()), [(None, 1)]),
        (RowType((DataField("a", IntType()),)), (1, 2)),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused_with_its_column(data_type, value):
    with pytest.raises(InvalidValueError) as caught:
        CompactedRowWriter((StringType(), data_type)).write(("x", value))
    assert caught.value.column == 1


def test_a_row_of_another_width_is_refused():
    with pytest.raises(InvalidValueError, match="2 fields was given 1"):
        CompactedRowWriter((IntType(), IntType())).write((1,))


@pytest.mark.parametrize(
    "data_type", [IntType(), ArrayType(IntType().not_null()), MapType(IntType(), IntType())]
)
def test_null_is_refused_where_a_type_does_not_allow_it(data_type):
    value = {"ARRAY": [1, None], "MAP": [(None, 2)]}.get(data_type.root)
    required = data_type.not_null()
    with pytest.raises(InvalidValueError, match="NULL"):
        CompactedRowWriter((required,)).write((value,))
    # A column can only say so with a type that allows it.
    loose = columns_of((data_type,), [(None,)])[0]
    strict = replace(loose, type=required)
    with pytest.raises(InvalidValueError, match="NULL") as caught:
        write_compacted_rows([column_of(IntType(), [1]), strict])
    assert (caught.value.column, caught.value.row) == (1, 0)


@pytest.mark.parametrize("value", [[1, None], [(1, 1), (2, None)], (1, None)], ids=str)
def test_null_inside_a_nested_column_is_refused_where_a_type_does_not_allow_it(value):
    def nested(inner):
        row = RowType((DataField("a", IntType()), DataField("b", inner)))
        kinds = {int: ArrayType(inner), tuple: MapType(IntType(), inner)}
        return row if isinstance(value, tuple) else kinds[type(value[0])]

    loose = column_of(nested(IntType()), [None, value], rubbish=False)
    strict_type = nested(IntType().not_null())
    inside = tuple(
        replace(child, type=data_type)
        for child, data_type in zip(loose.children, strict_type.children(), strict=True)
    )
    with pytest.raises(InvalidValueError, match=r"In row 1 of .* is NULL") as caught:
        write_compacted_rows([replace(loose, type=strict_type, children=inside)])
    assert (caught.value.column, caught.value.row) == (0, 1)
    with pytest.raises(InvalidValueError, match="NULL"):
        CompactedRowWriter((strict_type,)).write((value,))


def test_null_in_a_key_is_refused():
    types = (IntType(), IntType())
    with pytest.raises(InvalidValueError, match="belongs to the key") as caught:
        CompactedRowWriter(types, is_key=True).write((1, None))
    assert caught.value.column == 1
    with pytest.raises(InvalidValueError, match="key is NULL") as caught:
        write_compacted_keys(columns_of(types, [(1, 1), (1, None)]))
    assert (caught.value.column, caught.value.row) == (1, 1)


def test_a_column_value_that_does_not_fit_is_refused_with_its_place():
    columns = [column_of(IntType(), [1, 2]), column_of(DecimalType(3, 0), [1, 1000])]
    with pytest.raises(InvalidValueError, match="3 digits") as caught:
        write_compacted_rows(columns)
    assert (caught.value.column, caught.value.row) == (1, 1)


def test_columns_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="differ in length"):
        write_compacted_rows([column_of(IntType(), [1]), column_of(IntType(), [1, 2])])


def test_null_in_a_not_null_column_is_read_as_null():
    """A Java reader would not look; a Rust writer may have written it."""
    assert decode((IntType().not_null(),), [b"\x01"]) == [(None,)]


def test_text_that_is_no_utf8_is_left_to_the_arrow_border_but_not_to_single_values():
    encoded = b"\x00\x02\xc3\x28"
    (column,) = read_compacted_rows(*joined([encoded]), (StringType(),))
    assert column.values.tobytes() == b"\xc3\x28"
    with pytest.raises(CorruptDataError, match="utf-8"):
        CompactedRowReader((StringType(),)).read(encoded)


def test_an_error_names_the_row_and_the_byte():
    data, starts, ends = joined([b"\x00\x05", b"\x00\x80", b"\x00\x07"])
    with pytest.raises(CorruptDataError) as caught:
        read_compacted_rows(data, starts, ends, (IntType(),))
    assert (caught.value.what, caught.value.index) == ("compacted row", 1)
    assert caught.value.at == starts[1] + 1
    with pytest.raises(CorruptDataError) as caught:
        CompactedRowReader((IntType(), IntType())).read(b"\x00\x05\x80")
    assert (caught.value.what, caught.value.at) == ("compacted row", 2)


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 7), (2**40, 2**40)])
def test_a_row_outside_of_the_data_is_refused(start, end):
    with pytest.raises(CorruptDataError, match="inside the data"):
        read_compacted_rows(
            np.zeros(6, np.uint8), np.array([0, start]), np.array([1, end]), (IntType(),)
        )


def test_a_value_inside_a_nested_column_is_refused_with_the_row_around_it():
    digits = DecimalType(3, 0)
    inner = RowType((DataField("a", IntType()), DataField("d", digits)))
    for data_type, good, bad in [
        (ArrayType(digits), [1, 2], [3, 1000]),
        (MapType(IntType(), digits), [(1, 1)], [(1, 1000)]),
        (inner, (1, 1), (1, 1000)),
        (ArrayType(inner), [(1, 1), (1, 2)], [(1, 1000)]),
    ]:
        columns = [column_of(IntType(), [1] * 4), column_of(data_type, [good, None, good, bad])]
        with pytest.raises(InvalidValueError, match="In row 3") as caught:
            write_compacted_rows(columns)
        assert (caught.value.column, caught.value.row) == (1, 3)


def test_a_row_without_fields_takes_a_length_and_nothing_else():
    types = (RowType(()), ArrayType(RowType(())))
    encoded = CompactedRowWriter(types).write(((), [()]))
    assert encoded.hex() == "00" + "00" + "10" + "01000000" + "00000000" + "0000000010000000"
    assert CompactedRowReader(types).read(encoded) == ((), [()])
    read = read_compacted_rows(*joined([encoded]), types)
    assert (read[0].length, read[1].children[0].length) == (1, 1)
    assert list(write_compacted_rows(read)) == [encoded]


def test_floats_of_every_kind_come_back_from_single_rows():
    row = (math.inf, -math.inf, -0.0, 5e-324)
    types = (DoubleType(),) * 4
    assert exact(decode(types, encode(types, [row]))) == exact([row])
