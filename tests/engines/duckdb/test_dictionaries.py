"""DuckDB looks texts up in the dictionary of their own batch, as streams of a lake need it."""

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from fluss.records.arrow.dictionaries import DICTIONARY, with_dictionaries

SCHEMA = pa.schema({"id": pa.int64(), "text": DICTIONARY})
DIFFERENT = 97


def text_of(number, is_long):
    if number % 13 == 0:
        return None
    return f"{'a text that is not short: ' * is_long}{number % DIFFERENT}"


def batches_of(seed, count, rows_max):
    """Batches of plain texts, and the same batches with dictionaries of several kinds."""
    rng, start = random.Random(seed), 0
    for _ in range(count):
        rows, is_long = rng.randint(0, rows_max), rng.random() < 0.5
        ids = range(start, start + rows)
        start += rows
        texts = pa.array([text_of(each, is_long) for each in ids], pa.string())
        plain = pa.record_batch({"id": pa.array(ids, pa.int64()), "text": texts})
        stored = texts.dictionary_encode()
        order = np.array(rng.sample(range(len(stored.dictionary)), len(stored.dictionary)))
        shuffled = pa.DictionaryArray.from_arrays(
            pa.array(np.argsort(order).astype(np.int32)).take(stored.indices)
            if len(order)
            else stored.indices,
            stored.dictionary.take(pa.array(order, pa.int64())),
        )
        with_null = texts.dictionary_encode(null_encoding="encode")
        longer = pa.concat_arrays([pa.array(["not this"] * 3, pa.string()), texts])
        for_each_row = pa.record_batch({"id": plain["id"], "text": longer.slice(3)})
        dictionary = rng.choice(
            [stored, shuffled, with_null, with_dictionaries(for_each_row, SCHEMA)["text"]]
        )
        yield plain, pa.record_batch([plain["id"], dictionary], schema=SCHEMA)


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize(("count", "rows_max"), [(800, 40), (150, 3_000), (20, 40_000)])
def test_each_batch_has_a_dictionary_of_its_own(threads, count, rows_max):
    made = list(batches_of(threads, count, rows_max))
    expected = pa.Table.from_batches([plain for plain, _ in made])
    with duckdb.connect() as con:
        con.execute(f"SET threads = {threads}")

        def answer(sql, batches):
            stream = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
            return con.sql(sql.format("stream")).to_arrow_table() if stream else None

        for sql in (
            "SELECT * FROM {} ORDER BY id",
            "SELECT text, count(*) FROM {} GROUP BY text ORDER BY text",
            "SELECT id FROM {} WHERE text IS NULL OR text LIKE '%7' ORDER BY id",
        ):
            plain, found = (answer(sql, [each[which] for each in made]) for which in (0, 1))
            assert found.schema == plain.schema
            assert found.equals(plain)
        assert answer("SELECT * FROM {} ORDER BY id", [each[1] for each in made]).equals(expected)
