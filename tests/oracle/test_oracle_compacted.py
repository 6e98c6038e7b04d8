"""Compacted rows and keys: our bytes are Java's, and each side reads the other's."""

from __future__ import annotations

import struct
from random import Random

import pytest

from fluss.model.types import ArrayType, DoubleType
from fluss.rows.compacted import (
    read_compacted_keys,
    read_compacted_rows,
    write_compacted_keys,
    write_compacted_rows,
)
from tests.support.encoded import joined
from tests.support.random_columns import columns_of, rows_in
from tests.support.random_values import (
    ALL_TYPES,
    KEY_TYPES,
    random_rows,
    random_types,
    random_value,
)

KIND = "compacted rows"
ROWS_EACH = 120


def wide_table(width):
    """Rows of many columns: null bits fill bytes, and nested values stand side by side."""
    rng = Random(width)
    types = random_types(rng, width, depth=3)
    return types, random_rows(rng, types, 40)


def column_of_values(data_type, seed):
    rng = Random(f"{seed} {data_type}")
    return [(random_value(rng, data_type),) for _ in range(ROWS_EACH)]


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_columns_become_the_bytes_that_java_writes(oracle, compare, data_type):
    types, rows = (data_type,), column_of_values(data_type, 1)
    ours = list(write_compacted_rows(columns_of(types, rows), rows=len(rows)))
    java = oracle.write_rows("COMPACTED", types, rows)
    compare.rows(f"{KIND}: our bytes", types, rows, ours=ours, java=java)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_we_read_what_java_writes(oracle, compare, data_type):
    types, rows = (data_type,), column_of_values(data_type, 2)
    data, starts, ends = joined(oracle.write_rows("COMPACTED", types, rows, fresh=False))
    ours = rows_in(read_compacted_rows(data, starts, ends, types), length=len(rows))
    compare.rows(f"{KIND}: Java's read by us", types, rows, ours=ours, java=rows)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_java_reads_what_we_write(oracle, compare, data_type):
    types, rows = (data_type,), column_of_values(data_type, 3)
    ours = list(write_compacted_rows(columns_of(types, rows), rows=len(rows)))
    read = oracle.read_rows("COMPACTED", types, ours)
    compare.rows(f"{KIND}: ours read by Java", types, rows, ours=rows, java=read)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 33])
def test_wide_rows_agree_in_both_directions(oracle, compare, width):
    types, rows = wide_table(width)
    ours = list(write_compacted_rows(columns_of(types, rows), rows=len(rows)))
    java = oracle.write_rows("COMPACTED", types, rows)
    compare.rows(f"{KIND}: our bytes", types, rows, ours=ours, java=java)
    data, starts, ends = joined(oracle.write_rows("COMPACTED", types, rows, fresh=False))
    read = rows_in(read_compacted_rows(data, starts, ends, types), length=len(rows))
    compare.rows(f"{KIND}: Java's read by us", types, rows, ours=read, java=rows)


@pytest.mark.parametrize("data_type", [each.not_null() for each in KEY_TYPES], ids=str)
def test_a_key_is_what_java_makes_of_it(oracle, compare, data_type):
    types = (data_type,)
    rows = column_of_values(data_type, 4)
    ours = list(write_compacted_keys(columns_of(types, rows)))
    java = oracle.primary_keys(types, [0], rows)
    compare.rows("compacted keys: our bytes", types, rows, ours=ours, java=java)
    data, starts, ends = joined(java)
    read = rows_in(read_compacted_keys(data, starts, ends, types), length=len(rows))
    compare.rows("compacted keys: Java's read by us", types, rows, ours=read, java=rows)
    read_by_java = oracle.read_primary_keys(types, [0], ours)
    compare.rows("compacted keys: ours read by Java", types, rows, ours=rows, java=read_by_java)


def test_keys_of_several_columns_agree(oracle, compare):
    rng = Random(35)
    for width in (2, 3, 5):
        types = tuple(rng.choice(KEY_TYPES).not_null() for _ in range(width))
        rows = random_rows(rng, types, 100)
        ours = list(write_compacted_keys(columns_of(types, rows)))
        java = oracle.primary_keys(types, range(width), rows)
        compare.rows("compacted keys: our bytes", types, rows, ours=ours, java=java)


def test_a_nan_keeps_its_bits_in_a_row_and_loses_them_in_an_array(oracle, compare):
    (odd,) = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")
    types, rows = (DoubleType(), ArrayType(DoubleType())), [(odd, [odd, 1.0])]
    ours = list(write_compacted_rows(columns_of(types, rows), rows=1))
    java = oracle.write_rows("COMPACTED", types, rows)
    compare.rows(f"{KIND}: our bytes", types, rows, ours=ours, java=java)
