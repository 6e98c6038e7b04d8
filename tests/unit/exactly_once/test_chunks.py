"""The same rows make the same chunks, however they are handed over."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.exactly_once import chunks as once_chunks
from fluss.exactly_once.chunks import chunks, weight_of

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
    cuts=st.lists(st.integers(0, ROWS), max_size=8),
    bytes_max=st.sampled_from([9_000, 200_000, 2**30]),
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


def test_a_chunk_ends_with_the_row_that_makes_it_large_enough():
    def weight(rows):
        return rows.num_rows + sum(map(weight_of, rows.columns))

    rows = TABLE.combine_chunks().to_batches()[0]
    found = list(chunks([rows], bytes_max=50_000))
    assert len(found) > 3
    start = 0
    for each in found[:-1]:
        assert weight(rows.slice(start, each.num_rows)) >= 50_000
        assert weight(rows.slice(start, each.num_rows - 1)) < 50_000
        start += each.num_rows
    assert weight(rows.slice(start)) < 50_000
    assert [each.num_rows for each in chunks([rows], bytes_max=2**40)] == [ROWS]
    assert [each.num_rows for each in chunks([rows.slice(0, 3)], bytes_max=1)] == [1, 1, 1]
    assert list(chunks([], bytes_max=1)) == []


def test_a_column_without_values_moves_no_end():
    plain = [each.num_rows for each in chunks(TABLE.to_batches(), bytes_max=50_000)]
    for kind in (pa.int64(), pa.string(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())])):
        more = TABLE.append_column("more", pa.nulls(ROWS, kind))
        assert [each.num_rows for each in chunks(more.to_batches(), bytes_max=50_000)] == plain


def test_rows_without_values_end_somewhere_too():
    rows = pa.record_batch({"text": pa.nulls(10_000, pa.string())})
    assert [each.num_rows for each in chunks([rows], bytes_max=4_000)] == [4_000, 4_000, 2_000]


def test_wide_rows_are_not_gathered_beyond_a_chunk():
    taken = []

    def batches():
        for each in range(100):
            taken.append(each)
            yield pa.record_batch({"text": ["x" * 200_000]})

    for count, chunk in enumerate(chunks(batches(), bytes_max=1_000_000), 1):
        assert chunk.num_rows == 5
        assert len(taken) == count * 5


def test_a_batch_of_many_rows_is_not_weighed_again_for_each_chunk(monkeypatch):
    weighed = []

    def noticed(rows):
        weighed.append(rows.num_rows)
        return weight_of_rows(rows)

    weight_of_rows = once_chunks._weight_of_rows
    monkeypatch.setattr(once_chunks, "_weight_of_rows", noticed)
    rows = pa.record_batch({"id": pa.array(range(1_000_000), pa.int64())})
    assert len(list(chunks([rows], bytes_max=45_000))) == 200
    assert sum(weighed) < 10 * rows.num_rows


@pytest.mark.parametrize("column", TABLE.column_names)
def test_a_slice_weighs_what_a_copy_weighs(column):
    array = TABLE[column].combine_chunks()
    part = array.slice(1_234, 777)
    copied = pa.array(part.to_pylist(), part.type)
    assert weight_of(part) == weight_of(copied)
    assert weight_of(array) == weight_of(part) + weight_of(array[:1_234]) + weight_of(
        array[1_234 + 777 :]
    )
