"""Columns laid out as dictionaries have the values of the columns that they are made of."""

import pyarrow as pa
import pytest

from fluss.records.arrow.dictionaries import (
    DICTIONARY,
    dictionary_schema,
    with_dictionaries,
    without_dictionaries,
)
from fluss.scan.split_reader import coalesced

TEXTS = ["", "short", None, "a text that is longer than twelve bytes", "äöü €"]
PLAIN = pa.record_batch(
    {
        "n": pa.array(range(20)),
        "text": pa.array(TEXTS * 4),
        "other": pa.array(["x", None] * 10),
        "bytes": pa.array([b"x", None] * 10),
        "list": pa.array([["a", None], None] * 10),
    }
)
SCHEMA = dictionary_schema(PLAIN.schema, ["n", "text", "bytes", "list", "unknown"])


def with_stored_dictionary(batch):
    return batch.set_column(1, "text", batch.column(1).dictionary_encode())


def test_only_strings_are_dictionaries():
    chosen = [each.name for each in SCHEMA if pa.types.is_dictionary(each.type)]
    assert (chosen, SCHEMA.field("text").type) == (["text"], DICTIONARY)
    assert dictionary_schema(PLAIN.schema, []) == PLAIN.schema
    required = pa.schema([pa.field("text", pa.string(), nullable=False, metadata={"a": "b"})])
    field = dictionary_schema(required, ["text"]).field(0)
    assert (field.nullable, field.metadata) == (False, {b"a": b"b"})


@pytest.mark.parametrize("cut", [(0, 20), (3, 11), (19, 1), (5, 0)], ids=str)
@pytest.mark.parametrize("stored", [lambda each: each, with_stored_dictionary])
def test_the_values_are_the_same(cut, stored):
    given = stored(PLAIN).slice(*cut)
    found = with_dictionaries(given, SCHEMA)
    found.validate(full=True)
    assert found.schema == SCHEMA
    assert found.to_pylist() == PLAIN.slice(*cut).to_pylist()
    plain = without_dictionaries(found)
    assert plain.schema == PLAIN.schema
    assert plain == PLAIN.slice(*cut)


def test_texts_are_not_copied():
    (found,) = with_dictionaries(
        PLAIN.select(["text"]), SCHEMA.remove(0).remove(1).remove(1).remove(1)
    ).columns
    assert found.dictionary.buffers()[2].address == PLAIN["text"].buffers()[2].address


def test_all_texts_get_numbers_whatever_their_count():
    for rows in (1, 131_072, 131_073, 400_000):
        batch = pa.record_batch({"text": pa.nulls(rows, pa.string())})
        found = with_dictionaries(batch, dictionary_schema(batch.schema, ["text"]))
        found.validate(full=True)
        assert found.column(0).null_count == 0  # NULLs are entries
        assert found.column(0).cast(pa.string()).null_count == rows


def test_a_dictionary_of_more_texts_than_rows_is_left():
    many = pa.array([f"text {each}" for each in range(1_000)])
    numbers = pa.array([3, None, 999], pa.int32())
    batch = pa.record_batch({"text": pa.DictionaryArray.from_arrays(numbers, many)})
    (found,) = with_dictionaries(batch, batch.schema).columns
    assert len(found.dictionary) == 3
    assert found.to_pylist() == ["text 3", None, "text 999"]


def test_large_texts_and_other_numbers_are_converted():
    stored = pa.array(["a", None, "b", "a"], pa.large_string()).dictionary_encode()
    batch = pa.record_batch({"text": stored.cast(pa.dictionary(pa.int8(), pa.large_string()))})
    found = with_dictionaries(batch, pa.schema({"text": DICTIONARY}))
    found.validate(full=True)
    assert found.column(0).type == DICTIONARY
    assert found.column(0).to_pylist() == ["a", None, "b", "a"]


def test_batches_without_dictionaries_or_columns_are_as_they_were():
    assert with_dictionaries(PLAIN, PLAIN.schema) is PLAIN
    assert without_dictionaries(PLAIN) is PLAIN
    nothing = PLAIN.select([])
    assert with_dictionaries(nothing, nothing.schema).num_rows == PLAIN.num_rows


def test_small_batches_with_and_without_dictionaries_are_joined():
    stored = with_stored_dictionary(PLAIN)
    for batches in ([PLAIN, stored, PLAIN], [stored, PLAIN], [stored, stored.slice(7)]):
        (joined,) = coalesced(iter(batches), PLAIN.schema)
        assert joined.schema == PLAIN.schema
        expected = [row for each in batches for row in each.to_pylist()]
        assert with_dictionaries(joined, SCHEMA).to_pylist() == expected
