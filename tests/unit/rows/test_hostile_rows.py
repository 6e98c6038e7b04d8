"""Damaged rows: both paths refuse the same ones, agree about the others, and stay small.

The rows are encoded values with bytes cut off, added and changed, because pure noise hardly ever
gets past the first field.
"""

from __future__ import annotations

import struct
import tracemalloc
from random import Random

import numpy as np
import pytest

from fluss.errors import CorruptDataError
from fluss.rows.formats.compacted import read_compacted_rows
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from fluss.rows.formats.indexed import read_indexed_rows
from fluss.rows.formats.indexed_row import IndexedRowReader, IndexedRowWriter
from tests.support.generators.encoded import joined
from tests.support.generators.random_columns import rows_in
from tests.support.generators.random_values import exact, random_rows, random_types

CODECS = {
    "compacted": (CompactedRowWriter, CompactedRowReader, read_compacted_rows),
    "indexed": (IndexedRowWriter, IndexedRowReader, read_indexed_rows),
}
TELLING_NUMBERS = (-1, 0, 8, 2**16, 2**28, 2**31 - 1, -(2**31))
PEAK_BYTES = 3_000_000


def damaged(rng, row):
    data = bytearray(row)
    if data and rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    elif rng.random() < 0.2:
        data += rng.randbytes(rng.randint(1, 9))
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        if data:
            at = rng.randrange(len(data))
            data[at] = rng.choice((0, 0x7F, 0x80, 0xFF, data[at] ^ 1 << rng.randrange(8)))
    if len(data) > 4 and rng.random() < 0.2:
        at = rng.randrange(len(data) - 3)
        data[at : at + 4] = struct.pack("<i", rng.choice(TELLING_NUMBERS))
    return bytes(data)


def read_single(reader, data, types):
    try:
        return reader(types).read(data)
    except CorruptDataError as error:
        return error


def read_as_column(read, data, types):
    try:
        columns = read(*joined([data]), types)
    except CorruptDataError as error:
        return error
    try:
        return rows_in(columns, length=1)[0]
    except UnicodeDecodeError as error:  # columns leave text to the Arrow border
        return CorruptDataError(f"utf-8: {error.reason}")


@pytest.mark.parametrize("codec", CODECS)
def test_both_paths_agree_about_damaged_rows(codec):
    writer, reader, read_rows = CODECS[codec]
    refused = accepted = 0
    for seed in range(150):
        rng = Random(f"{codec} {seed}")
        types = random_types(rng, rng.randint(1, 6), depth=rng.randrange(4))
        for row in random_rows(rng, types, 4):
            data = damaged(rng, writer(types).write(row))
            single = read_single(reader, data, types)
            column = read_as_column(read_rows, data, types)
            if isinstance(column, CorruptDataError):
                # Single values are Python ints and may leave 64 bits; columns may not.
                assert isinstance(single, CorruptDataError) or "64 bits" in column.message
                refused += 1
            else:
                assert exact(single) == exact(column), (seed, data.hex())
                accepted += 1
    assert min(refused, accepted) > 120, "the damage should be neither nothing nor everything"


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_rows_ask_for_little_memory(codec):
    writer, reader, read_rows = CODECS[codec]
    tracemalloc.start()
    try:
        for seed in range(40):
            rng = Random(f"memory {codec} {seed}")
            types = tuple(each.not_null() for each in random_types(rng, 3, depth=3))
            (row,) = random_rows(rng, types, 1)
            data = damaged(rng, writer(types).write(row))
            tracemalloc.reset_peak()
            read_single(reader, data, types)
            read_as_column(read_rows, data, types)
            assert tracemalloc.get_traced_memory()[1] < PEAK_BYTES, data.hex()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_noise_is_refused_or_read_but_never_breaks(codec):
    _, reader, read_rows = CODECS[codec]
    for seed in range(150):
        rng = Random(f"noise {codec} {seed}")
        types = random_types(rng, rng.randint(1, 4), depth=2)
        data = rng.randbytes(rng.choice((0, 1, 3, 17, 200)))
        read_single(reader, data, types)
        read_as_column(read_rows, data, types)


def test_one_damaged_row_among_many_is_found():
    rng = Random(7)
    types = random_types(rng, 5, depth=0)
    encoded = [CompactedRowWriter(types).write(row) for row in random_rows(rng, types, 50)]
    encoded[31] = encoded[31][:-1]
    with pytest.raises(CorruptDataError) as caught:
        read_compacted_rows(*joined(encoded), types)
    _, starts, ends = joined(encoded)
    assert caught.value.index == 31
    assert starts[31] <= caught.value.at <= ends[31] + 1


def test_offsets_that_wrap_around_are_refused():
    types = random_types(Random(1), 2, depth=0)
    edges = np.array([2**63 - 1, -(2**63), 2**62], np.int64)
    for start in edges:
        with pytest.raises(CorruptDataError, match="inside the data"):
            read_compacted_rows(np.zeros(9, np.uint8), np.array([start]), edges[:1], types)
