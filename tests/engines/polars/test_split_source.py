"""Batches for Polars: text is laid out as Polars holds it, and stays the same."""

import polars as pl
import pyarrow as pa
import pytest

from fluss.records.arrow.views import with_views

LONG = "a text that is longer than the twelve bytes of a view " * 20
TEXTS = pa.array(["", "short", None, LONG, "äöü €", "exactly 12 b", None, LONG], pa.string())
BLOBS = pa.array([b"", b"\x00\xff", None, LONG.encode(), b"4", b"5", None, b"7"], pa.binary())
NUMBERS = pa.array([1, None, 3, 4, 5, 6, 7, 8], pa.int64())
NESTED = pa.array([["a", None], None, [], ["b"], [LONG], ["c"], [None], ["d"]])
STRUCTS = pa.array([{"t": LONG, "n": 1}, None, *({"t": "x", "n": each} for each in range(6))])

BATCHES = {
    "mixed": pa.RecordBatch.from_arrays(
        [NUMBERS, TEXTS, BLOBS, NESTED, STRUCTS], ["n", "text", "blob", "nested", "struct"]
    ),
    "only text": pa.RecordBatch.from_arrays([TEXTS], ["text"]),
    "no text": pa.RecordBatch.from_arrays([NUMBERS, NESTED], ["n", "nested"]),
    "thirty columns": pa.RecordBatch.from_arrays(
        [TEXTS if each % 3 else NUMBERS for each in range(30)], [f"c{each}" for each in range(30)]
    ),
    "no columns": pa.RecordBatch.from_arrays([], []),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("cut", [slice(0, 8), slice(2, 5), slice(3, 3)])
def test_rows_are_those_that_polars_makes_of_the_plain_batch(name, cut):
    batch = BATCHES[name].slice(cut.start, cut.stop - cut.start)
    given = pl.DataFrame(with_views(batch))
    plain = pl.DataFrame(batch)
    assert given.schema == plain.schema
    assert given.equals(plain)


def test_a_batch_without_text_is_passed_on_as_it_is():
    batch = BATCHES["no text"]
    assert with_views(batch) is batch


def test_columns_that_are_no_text_keep_their_memory():
    batch = BATCHES["mixed"]
    assert with_views(batch)["n"].buffers()[1].address == batch["n"].buffers()[1].address
