"""Keys are found as Arrow finds them, whatever they are and however many."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fluss.records.arrow import key_sieve
from fluss.records.arrow.key_index import KeyIndex

RNG = np.random.default_rng(5)
COUNT = 20_000


def spread(count):
    return np.unique(RNG.integers(-(2**63), 2**63 - 1, count, dtype=np.int64))


def texts_of(numbers):
    return pa.array([f"k{each}" for each in numbers.tolist()])


def texts_of_all_lengths(numbers):
    """Texts of 1 to 60 characters."""
    return pa.array([f"{each}"[: 1 + each % 20] + "-" * (each % 41) for each in numbers.tolist()])


CASES = {
    "few": lambda: (pa.array([5, 1]), pa.array([1, 2, 5, None])),
    "close numbers": lambda: (
        pa.array(RNG.permutation(COUNT) * 3 + 100),
        pa.array(RNG.integers(-10, 70_000, 50_000)),
    ),
    "close numbers at the ends": lambda: (
        pa.array(np.arange(2**63 - COUNT, 2**63 - 1, dtype=np.int64)),
        pa.array(np.array([-(2**63), 0, 2**63 - 1, 2**63 - 2, 2**63 - COUNT - 1], np.int64)),
    ),
    "the least numbers": lambda: (
        pa.array(np.arange(-(2**63), -(2**63) + COUNT, dtype=np.int64)),
        pa.array(np.array([-(2**63), 0, 2**63 - 1, -(2**63) + COUNT], np.int64)),
    ),
    "scattered numbers": lambda: (
        pa.array(keys := spread(COUNT)),
        pa.array(np.concatenate([keys[::3], spread(COUNT)])),
    ),
    "small integers": lambda: (
        pa.array(RNG.permutation(COUNT), pa.int32()),
        pa.array(RNG.integers(0, 2 * COUNT, COUNT), pa.int32()),
    ),
    "texts": lambda: (
        texts_of(keys := spread(COUNT)),
        texts_of(np.concatenate([keys[::2], spread(COUNT)])),
    ),
    "bytes, cut out of an array": lambda: (
        texts_of(keys := spread(COUNT)).cast(pa.binary())[7:],
        texts_of(keys[::2]).cast(pa.binary())[3:],
    ),
    "rows with NULL": lambda: (
        pa.array(RNG.permutation(COUNT)),
        pa.array([1, None, COUNT, 0]),
    ),
    "a NULL among the keys": lambda: (
        pa.array([None, *spread(COUNT).tolist()]),
        pa.array([1, None]),
    ),
    "few of many rows": lambda: (
        pa.array(keys := spread(COUNT)),
        pa.array(np.concatenate([spread(40 * COUNT), keys[:9]])),
    ),
    "texts of all lengths": lambda: (
        texts_of_all_lengths(keys := spread(COUNT)).unique(),
        texts_of_all_lengths(np.concatenate([keys[::9], spread(10 * COUNT)])),
    ),
    "long texts that differ in the middle": lambda: (
        pa.array([f"{'a' * 20}{each:06d}{'z' * 20}" for each in range(COUNT)]),
        pa.array([f"{'a' * 20}{each:06d}{'z' * 20}" for each in range(COUNT - 9, COUNT + 9)]),
    ),
    "texts that begin and end alike": lambda: (
        pa.array(["", *(f"0{'0' * (each % 30)}{each // 30}" for each in range(COUNT))]).unique(),
        pa.array(["", "0", "00", "000", "1", "0" * 31 + "1"]),
    ),
    "decimals": lambda: (
        pa.array(range(COUNT)).cast(pa.decimal128(20, 0)),
        pa.array([1, COUNT]).cast(pa.decimal128(20, 0)),
    ),
    "no rows": lambda: (pa.array(RNG.permutation(COUNT)), pa.array([], pa.int64())),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_places_are_those_of_arrow(case):
    keys, rows = case()
    expected = pc.fill_null(pc.index_in(rows, value_set=keys), -1).to_pylist()
    assert KeyIndex(keys).places(rows).tolist() == expected


def test_keys_of_one_slot_are_distinguished(monkeypatch):
    monkeypatch.setattr(key_sieve, "_MULTIPLIER", np.uint64(1))  # all numbers share a slot
    keys = pa.array(np.arange(0, COUNT * 1_000, 1_000)[:5_000])
    found = KeyIndex(keys).places(pa.array([4_999_000, 4_999_001, 0]))
    assert found.tolist() == [4_999, -1, 0]
