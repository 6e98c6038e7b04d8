"""Hashes; the expected ones are those of Fluss 0.9.1's `MurmurHashUtils` and of Guava."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.rows.buffers.columns import RowBytes
from fluss.rows.keys.murmur import FLUSS_SEED, Tail, hash_bytes, hash_int, hash_ints, hash_rows

# key, Fluss's hash, Guava's hash: signed, as Java prints them
JAVA = [
    ("8001", 1712308537, -179071365),
    ("ffffffffffffffffff01", -1529267776, 1021405426),
    ("808080808020", 491360406, 32266245),
    ("04", 542474506, 962700458),
    ("000a", 1530214680, -1435099420),
    ("c3a9", 2119106806, 269551495),
    ("61", 1485273170, 1009084850),
    ("00ff", 1246198977, -582037868),
    ("00000080", 723455942, -1718298732),
    ("ffffff", -132802961, -1089298394),
    ("3031323334353637", -2033393578, 1451431763),
]
SEEDS = {Tail.SIGNED_BYTES: FLUSS_SEED, Tail.ONE_WORD: 0}


def rows_of(keys):
    """Keys back to back, behind bytes that belong to none of them."""
    ends = np.cumsum([3, *(len(key) for key in keys)], dtype=np.int64)
    return RowBytes(data=np.frombuffer(b"\xee\xee\xee" + b"".join(keys), np.uint8), offsets=ends)


def hashes_one_by_one(keys, tail):
    return [hash_bytes(key, seed=SEEDS[tail], tail=tail) for key in keys]


@pytest.mark.parametrize(("key", "fluss", "guava"), JAVA)
def test_a_key_hashes_as_in_java(key, fluss, guava):
    key = bytes.fromhex(key)
    assert hash_bytes(key, seed=FLUSS_SEED, tail=Tail.SIGNED_BYTES) == fluss % 2**32
    assert hash_bytes(key, seed=0, tail=Tail.ONE_WORD) == guava % 2**32


def test_the_dialects_differ_only_in_the_tail():
    whole_words = b"\x80\xff\x00\x01" * 3
    signed, one_word = (hash_bytes(whole_words, seed=FLUSS_SEED, tail=tail) for tail in Tail)
    assert signed == one_word
    for key in (b"12345", b"1234\x80"):
        signed, one_word = (hash_bytes(key, seed=FLUSS_SEED, tail=tail) for tail in Tail)
        assert signed != one_word


@given(st.lists(st.binary(max_size=40)), st.sampled_from(Tail))
def test_many_keys_hash_like_each_of_them(keys, tail):
    hashes = hash_rows(rows_of(keys), seed=SEEDS[tail], tail=tail)
    assert hashes.dtype == np.uint32
    assert hashes.tolist() == hashes_one_by_one(keys, tail)


@given(
    st.integers(0, 17) | st.integers(254, 261),
    st.integers(1, 20),
    st.randoms(),
    st.sampled_from(Tail),
)
def test_keys_of_one_length_hash_like_each_of_them(length, count, rng, tail):
    keys = [rng.randbytes(length) for _ in range(count)]
    hashes = hash_rows(rows_of(keys), seed=SEEDS[tail], tail=tail)
    assert hashes.tolist() == hashes_one_by_one(keys, tail)


@pytest.mark.parametrize("tail", Tail)
def test_more_keys_than_one_step_takes_hash_like_each_of_them(tail):
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 14, 40_000)
    lengths[:33_000] = 8  # the first step has keys of one length, the second has not
    lengths[39_990:] = 3_000
    data = rng.integers(0, 256, int(lengths.sum()), dtype=np.uint8)
    keys = RowBytes(data=data, offsets=np.concatenate(([0], np.cumsum(lengths))))
    hashes = hash_rows(keys, seed=SEEDS[tail], tail=tail)
    chosen = [*range(0, 40_000, 97), *range(39_980, 40_000)]
    assert hashes[chosen].tolist() == hashes_one_by_one([keys[row] for row in chosen], tail)


@pytest.mark.parametrize("tail", Tail)
def test_keys_of_very_different_lengths_hash_like_each_of_them(tail):
    keys = [b"\x80", b"ab" * 35_001, b"", b"x" * 9, b"y" * 70_000]
    assert hash_rows(rows_of(keys), seed=SEEDS[tail], tail=tail).tolist() == hashes_one_by_one(
        keys, tail
    )


def test_no_keys_have_no_hashes():
    assert hash_rows(rows_of([]), seed=FLUSS_SEED, tail=Tail.SIGNED_BYTES).tolist() == []


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_many_integers_hash_like_each_of_them(values):
    assert hash_ints(np.array(values, np.uint32)).tolist() == [hash_int(each) for each in values]
