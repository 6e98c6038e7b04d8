"""Views have the values of the columns that they are made of, and share their texts."""

import pyarrow as pa
import pytest

from fluss.records.arrow.views import VIEWS, view_schema, views_of, with_views
from fluss.scan.split_reader import coalesced

LONG = "a text that is longer than the twelve bytes of a view"
TEXTS = ["", "short", "exactly 12 b", LONG, "äöü €", LONG * 20]
INDICES = pa.array([5, 0, None, 3, 3, 1, None, 2, 4, 5], pa.int32())


def column(kind, values=TEXTS, indices=INDICES):
    plain = [each.encode() if pa.types.is_large_binary(kind) else each for each in values]
    stored = pa.array(plain, pa.large_string() if pa.types.is_large_string(kind) else None)
    return pa.DictionaryArray.from_arrays(indices, stored.cast(kind))


KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def plain_of(kind):
    return pa.string() if "string" in str(kind) else pa.binary()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("cut", [slice(0, 10), slice(3, 7), slice(2, 3), slice(4, 4)], ids=str)
def test_the_values_are_those_of_the_dictionary(kind, cut):
    given = column(kind).slice(cut.start, cut.stop - cut.start)
    views = views_of(given, VIEWS[plain_of(kind)])
    views.validate(full=True)
    assert views.type == VIEWS[plain_of(kind)]
    assert views.to_pylist() == given.to_pylist()
    assert views.null_count == given.null_count


def test_a_dictionary_may_be_a_slice_or_empty():
    values = pa.array(["not this", *TEXTS]).slice(1)
    given = pa.DictionaryArray.from_arrays(INDICES, values)
    assert views_of(given, pa.string_view()).to_pylist() == given.to_pylist()
    nothing = pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int32()), pa.array([], pa.string()))
    assert views_of(nothing, pa.string_view()).to_pylist() == [None] * 3


def test_all_rows_share_the_texts_of_the_dictionary():
    rows = pa.array([3] * 10_000, pa.int32())
    views = views_of(column(pa.string(), indices=rows), pa.string_view())
    assert sum(each.size for each in views.buffers()[2:]) < 10 * len(LONG) * len(TEXTS)


def test_small_batches_with_and_without_views_are_joined():
    texts = pa.DictionaryArray.from_arrays(INDICES, pa.array(TEXTS))
    plain = pa.record_batch({"n": INDICES, "text": texts.cast(pa.string())})
    viewed = with_views(plain)
    assert viewed.schema == view_schema(plain.schema)
    for batches in ([plain, viewed, plain], [viewed, plain]):
        (joined,) = coalesced(iter(batches), plain.schema)
        found = with_views(joined)
        assert found.schema == viewed.schema
        assert found.to_pylist() == plain.to_pylist() * len(batches)
