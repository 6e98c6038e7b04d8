"""The oracle itself: Java reads through our pipe what Java wrote.

The values must be those that were sent. This also pins five quirks of Java that our codecs do not
share; comparisons that must allow for one name it.
"""

from __future__ import annotations

import math
import struct
from random import Random

import pytest

from fluss.model.types.data_type import (
    ArrayType,
    BinaryType,
    CharType,
    DataField,
    DoubleType,
    IntType,
    RowType,
    StringType,
    TimestampType,
)
from tests.support.differential.oracle import JavaRefusedError
from tests.support.differential.oracle_rows import (
    rows_java_reads_in_arrow,
    types_java_reads_in_arrow,
    with_full_binaries,
)
from tests.support.differential.oracle_types import BatchHeader
from tests.support.generators.seeded_values import ALL_TYPES, exact, random_rows, random_types

FORMATS = ("COMPACTED", "INDEXED", "ALIGNED")


@pytest.mark.parametrize("row_format", FORMATS)
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "reused"])
def test_java_reads_back_the_rows_it_wrote(oracle, row_format, fresh):
    rng = Random(17)
    for types in (ALL_TYPES, *(random_types(rng, rng.randint(1, 9)) for _ in range(20))):
        rows = random_rows(rng, types, 12)
        encoded = oracle.write_rows(row_format, types, rows, fresh=fresh)
        read = oracle.read_rows(row_format, types, encoded)
        assert exact(with_full_binaries(row_format, types, read)) == exact(rows)


@pytest.mark.parametrize("log_format", ["ARROW", "INDEXED", "COMPACTED"])
def test_java_reads_back_the_log_it_wrote(oracle, log_format):
    rng = Random(18)
    rows = rows_java_reads_in_arrow(ALL_TYPES, random_rows(rng, ALL_TYPES, 30))
    header = BatchHeader(schema_id=3, base_offset=70, timestamp=99, writer_id=5, sequence=2)
    data = oracle.write_log(log_format, ALL_TYPES, [(0, row) for row in rows], header)
    asked = types_java_reads_in_arrow(ALL_TYPES) if log_format == "ARROW" else ALL_TYPES
    (batch,) = oracle.read_log(log_format, asked, data)
    assert batch.is_valid
    assert (batch.base_offset, batch.next_offset, batch.size) == (70, 100, len(data))
    assert [each[:3] for each in batch.records] == [(70 + i, 99, 0) for i in range(30)]
    read = with_full_binaries(log_format, ALL_TYPES, [each[3] for each in batch.records])
    assert exact(read) == exact(rows)


def test_java_reports_its_refusals(oracle):
    with pytest.raises(JavaRefusedError, match="Assigned key must not be empty"):
        oracle.buckets([b""], 3)
    assert oracle.buckets([b"\x04"], 7) == [6], "the next question is answered again"


def test_java_leaves_old_bytes_in_the_null_slots_of_reused_arrays(oracle):
    types = (ArrayType(ArrayType(StringType())),)
    rows = [([["first", "x"], [None, "y"]],)]
    (fresh,) = oracle.write_rows("COMPACTED", types, rows, fresh=True)
    (reused,) = oracle.write_rows("COMPACTED", types, rows, fresh=False)
    assert len(fresh) == len(reused)
    assert fresh.count(b"first") == 1
    assert reused.count(b"first") == 2, "the slot of the null still shows the other array"


def test_java_writes_any_nan_as_one_in_arrays_but_keeps_its_bits_in_rows(oracle):
    odd_bits = b"\x01\x00\x00\x00\x00\x00\xf8\xff"
    (odd,) = struct.unpack("<d", odd_bits)
    assert math.isnan(odd)
    (row,) = oracle.write_rows("COMPACTED", (DoubleType(),), [(odd,)])
    (array,) = oracle.write_rows("COMPACTED", (ArrayType(DoubleType()),), [([odd],)])
    assert row.endswith(odd_bits)
    assert array.endswith(b"\x00\x00\x00\x00\x00\x00\xf8\x7f")


def test_java_strips_the_zeros_at_the_end_of_a_binary_in_an_indexed_row(oracle):
    types = (RowType((DataField("b", BinaryType(4)), DataField("i", IntType()))), BinaryType(2))
    rows = [((b"\x01\x00\x02\x00", 5), b"\x00\x00")]
    read = oracle.read_rows("INDEXED", types, oracle.write_rows("INDEXED", types, rows))
    assert read == [((b"\x01\x00\x02", 5), b"")]
    assert with_full_binaries("INDEXED", types, read) == rows


def test_java_cannot_read_microseconds_before_1970_from_an_arrow_batch(oracle):
    types = (TimestampType(6),)
    written = oracle.write_log("ARROW", types, [(0, (-1,))], BatchHeader())
    with pytest.raises(JavaRefusedError, match="IllegalArgumentException"):
        oracle.read_log("ARROW", types, written)
    assert rows_java_reads_in_arrow(types, [(-1,), (-1_001,), (-2_000,), (1,)]) == [
        (0,),
        (-1_000,),
        (-2_000,),
        (1,),
    ]


def test_java_reads_a_char_in_an_array_of_an_arrow_batch_beyond_its_end(oracle):
    types = (ArrayType(CharType(4)),)
    written = oracle.write_log("ARROW", types, [(0, (["a"],))], BatchHeader())
    (wrong,) = oracle.read_log("ARROW", types, written)
    (right,) = oracle.read_log("ARROW", types_java_reads_in_arrow(types), written)
    assert wrong.records[0][3] != (["a"],)
    assert right.records[0][3] == (["a"],)
