"""Rows of every format: our bytes are Java's, and each side reads the other's."""

from __future__ import annotations

import struct
from random import Random

import pytest

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import ArrayType, CharType, DoubleType
from tests.support.differential.oracle import JavaRefusedError
from tests.support.differential.oracle_rows import with_full_binaries
from tests.support.generators.row_codecs import ROW_CODECS
from tests.support.generators.seeded_values import (
    ALL_TYPES,
    random_rows,
    random_types,
    random_value,
)

ROWS_EACH = 60
WIDTHS = (1, 2, 7, 8, 9, 16, 17, 33)

CODECS = pytest.mark.parametrize("codec", ROW_CODECS, ids=str)
CODECS_AND_TYPES = pytest.mark.parametrize(
    ("codec", "data_type"), [(codec, each) for codec in ROW_CODECS for each in codec.types], ids=str
)
NESTING = {"COMPACTED": 3, "INDEXED": 3, "ALIGNED": 0}


def values_of(data_type, seed):
    rng = Random(f"{seed} {data_type}")
    return [(random_value(rng, data_type),) for _ in range(ROWS_EACH)]


@CODECS_AND_TYPES
def test_we_write_what_java_writes(oracle, compare, codec, data_type):
    types, rows = (data_type,), values_of(data_type, 1)
    java = oracle.write_rows(codec.row_format, types, rows)
    compare.rows(f"{codec}: our bytes", types, rows, ours=codec.write(types, rows), java=java)


@CODECS_AND_TYPES
def test_we_read_what_java_writes(oracle, compare, codec, data_type):
    types, rows = (data_type,), values_of(data_type, 2)
    encoded = oracle.write_rows(codec.row_format, types, rows, fresh=False)
    ours = codec.read(types, encoded)
    compare.rows(f"{codec}: Java's read by us", types, rows, ours=ours, java=rows)


@CODECS_AND_TYPES
def test_java_reads_what_we_write(oracle, compare, codec, data_type):
    types, rows = (data_type,), values_of(data_type, 3)
    read = oracle.read_rows(codec.row_format, types, codec.write(types, rows))
    java = with_full_binaries(codec.row_format, types, read)
    compare.rows(f"{codec}: ours read by Java", types, rows, ours=rows, java=java)


@CODECS
@pytest.mark.parametrize("width", WIDTHS)
def test_wide_rows_agree(oracle, compare, codec, width):
    """Null bits fill several bytes, and nested values are adjacent."""
    rng = Random(width)
    types = random_types(rng, width, depth=NESTING[codec.row_format])
    rows = random_rows(rng, types, 40)
    java = oracle.write_rows(codec.row_format, types, rows)
    compare.rows(f"{codec}: our bytes", types, rows, ours=codec.write(types, rows), java=java)
    ours = codec.read(types, oracle.write_rows(codec.row_format, types, rows, fresh=False))
    compare.rows(f"{codec}: Java's read by us", types, rows, ours=ours, java=rows)


@CODECS
def test_a_nan_keeps_its_bits_in_a_row_and_loses_them_in_an_array(oracle, compare, codec):
    (odd,) = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")
    types, rows = (DoubleType(),), [(odd,)]
    if codec.types == ALL_TYPES:
        types, rows = (DoubleType(), ArrayType(DoubleType())), [(odd, [odd, 1.0])]
    java = oracle.write_rows(codec.row_format, types, rows)
    compare.rows(f"{codec}: our bytes", types, rows, ours=codec.write(types, rows), java=java)


@CODECS
def test_rows_with_all_types_agree(oracle, compare, codec):
    rows = random_rows(Random(6), codec.types, 100)
    java = oracle.write_rows(codec.row_format, codec.types, rows)
    ours = codec.write(codec.types, rows)
    compare.rows(f"{codec}: our bytes", codec.types, rows, ours=ours, java=java)


INDEXED = pytest.mark.parametrize(
    "codec", [each for each in ROW_CODECS if each.row_format == "INDEXED"], ids=str
)


@INDEXED
def test_a_char_with_nuls_at_its_end_loses_them_in_an_indexed_row_as_in_java(
    oracle, compare, codec
):
    types, rows = (CharType(6), CharType(2)), [("a\x00\x00", "\x00"), ("\x00b\x00", "é")]
    java = oracle.write_rows("INDEXED", types, rows)
    compare.rows(f"{codec}: our bytes", types, rows, ours=codec.write(types, rows), java=java)
    read_by_java = oracle.read_rows("INDEXED", types, java)
    assert read_by_java == [("a", ""), ("\x00b", "é")]
    ours = codec.read(types, java)
    compare.rows(f"{codec}: Java's read by us", types, rows, ours=ours, java=read_by_java)


@INDEXED
def test_a_char_whose_bytes_do_not_fit_an_indexed_row_is_refused_by_both(oracle, codec):
    types, rows = (CharType(2),), [("éa",)]
    with pytest.raises(JavaRefusedError, match="ArrayIndexOutOfBounds"):
        oracle.write_rows("INDEXED", types, rows)
    with pytest.raises(InvalidValueError):
        codec.write(types, rows)
