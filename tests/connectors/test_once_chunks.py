"""The same rows make the same chunks, however they are handed over."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.connector.once_chunks import BLOCK_ROWS, chunks, weight_of

ROWS = 7_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "text": [None if each % 11 == 0 else "x" * (each % 97) for each in range(ROWS)],
        "many": [list(range(each % 5)) for each in range(ROWS)],
        "map": pa.array([[("k" * (each % 3), each)] for each in range(ROWS)], pa.map_("str", "i8")),
        "pair": [{"a": each, "b": str(each)} for each in range(ROWS)],
    }
)


@given(
    cuts=st.lists(st.integers(0, ROWS), max_size=8), bytes_max=st.sampled_from([1, 200_000, 2**30])
)
def test_chunks_do_not_depend_on_how_rows_were_handed_over(cuts, bytes_max):
    edges = [0, *sorted(cuts), ROWS]
    batches = [
        each
        for start, stop in pairwise(edges)
        for each in TABLE.slice(start, stop - start).to_batches()
    ]
    expected = [each.num_rows for each in chunks(TABLE.to_batches(), bytes_max=bytes_max)]
    found = list(chunks(batches, bytes_max=bytes_max))
    assert [each.num_rows for each in found] == expected
    assert pa.concat_tables(found) == TABLE.combine_chunks()


def test_chunks_end_where_they_are_large_enough():
    enough = [sum(map(weight_of, each.columns)) for each in TABLE.to_batches(BLOCK_ROWS)]
    sizes = [each.num_rows for each in chunks(TABLE.to_batches(), bytes_max=max(enough) // 2 + 1)]
    assert sizes == [BLOCK_ROWS] * 3 + [ROWS - 3 * BLOCK_ROWS]
    assert [each.num_rows for each in chunks(TABLE.to_batches(), bytes_max=2**40)] == [ROWS]
    assert list(chunks([], bytes_max=1)) == []


@pytest.mark.parametrize("size", [100, 2_048, 5_000])
def test_wide_rows_come_in_smaller_chunks(size):
    texts = ["x" * (10_000 if each < 3_000 else 10) for each in range(ROWS)]
    wide = pa.table({"text": texts}).to_batches(max_chunksize=size)
    found = list(chunks(wide, bytes_max=1_000_000))
    assert max(each.nbytes for each in found) < 2_100_000
    assert [each.num_rows for each in found][:17] == [128] * 17
    assert pa.concat_tables(found) == pa.Table.from_batches(wide)
    one = list(chunks(pa.table({"text": ["x" * 5_000] * 3}).to_batches(), bytes_max=1))
    assert [each.num_rows for each in one] == [1, 1, 1]


@pytest.mark.parametrize("column", TABLE.column_names)
def test_a_slice_weighs_what_a_copy_weighs(column):
    array = TABLE[column].combine_chunks()
    part = array.slice(1_234, 777)
    copied = pa.array(part.to_pylist(), part.type)
    assert weight_of(part) == weight_of(copied)
    assert weight_of(array) == weight_of(part) + weight_of(array[:1_234]) + weight_of(
        array[1_234 + 777 :]
    )
