"""The change per key that counts, against a dict, within memory and beyond it."""

import numpy as np
import pyarrow as pa
import pytest

from fluss.state.key_changes import Changes
from fluss.state.key_column import parts_of

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
MUCH = 64 << 20
LITTLE = 20_000


def rows_of(ids, texts):
    return pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), pa.array(texts)], schema=SCHEMA)


def keys_of(rows, *, as_bytes):
    ids = rows.column(0)
    return ids.cast(pa.string()).cast(pa.binary()) if as_bytes else ids


def changed(counts, memory, *, seed=0, as_bytes=False, keys=300, stored=()):
    """What `Changes` makes of random changes, and what a dict makes of them."""
    jitter = np.random.default_rng(seed)
    changes = Changes(SCHEMA, counts=counts, memory_bytes_max=memory)
    model = {}
    for number in range(40):
        ids = jitter.integers(0, keys, 50)
        is_there = jitter.random(50) < 0.7
        texts = [f"{number}-{place}" for place in range(50)]
        rows = rows_of(ids, texts)
        changes.add(keys_of(rows, as_bytes=as_bytes), rows, is_there)
        for key, text, there in zip(ids.tolist(), texts, is_there.tolist(), strict=True):
            if counts == "last" or key not in model:
                model[key] = text if there else None
    beneath = rows_of(list(stored), ["stored"] * len(stored))
    pairs = [(keys_of(beneath, as_bytes=as_bytes), beneath)] if stored else []
    found = {}
    for batch in changes.over(pairs):
        assert batch.schema == SCHEMA
        for row in batch.to_pylist():
            assert row["id"] not in found
            found[row["id"]] = row["text"]
    expected = dict.fromkeys(stored, "stored") | model
    is_spilled = changes._spill is not None
    changes.close()
    return found, {key: text for key, text in expected.items() if text is not None}, is_spilled


@pytest.mark.parametrize("counts", ["last", "first"])
@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("memory", [MUCH, LITTLE])
def test_the_change_that_counts_is_the_one_that_a_dict_keeps(counts, as_bytes, memory):
    found, expected, is_spilled = changed(counts, memory, as_bytes=as_bytes, stored=range(250, 400))
    assert found == expected
    assert is_spilled == (memory == LITTLE)


def test_few_keys_stay_in_memory_however_many_changes_there_are():
    found, expected, is_spilled = changed("last", 100_000, keys=5)
    assert found == expected
    assert not is_spilled


def test_without_changes_stored_rows_stay_as_they_are():
    changes = Changes(SCHEMA, counts="last", memory_bytes_max=MUCH)
    rows = rows_of([1, 2], ["a", "b"])
    (batch,) = changes.over([(rows.column(0), rows)])
    assert batch.equals(rows)


@pytest.mark.parametrize("as_bytes", [False, True])
def test_keys_of_one_bucket_spread_over_all_parts(as_bytes):
    rows = rows_of(np.arange(0, 320_000, 32), [""] * 10_000)
    keys = keys_of(rows, as_bytes=as_bytes)
    counts = np.bincount(parts_of(keys, 32), minlength=32)
    assert counts.min() > 200
    assert (parts_of(keys.slice(500, 100), 32) == parts_of(keys, 32)[500:600]).all()
