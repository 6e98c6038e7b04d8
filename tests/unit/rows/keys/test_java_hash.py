"""Java's hash codes of text; the expected ones are those of JDK 17."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.rows.keys.java_hash import decimal_hashes, string_hash, string_hashes


def runs_of(texts):
    encoded = [text.encode() for text in texts]
    lengths = np.array([len(each) for each in encoded], np.int64)
    starts = np.cumsum(lengths) - lengths
    return np.frombuffer(b"".join(encoded), np.uint8), starts, lengths


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("abc", 96354), ("true", 3569038), ("é€😀", 16752006)],
)
def test_a_text_hashes_as_in_java(text, code):
    assert string_hash(text) == code


@given(st.lists(st.text() | st.text("abc")))
def test_many_texts_hash_like_each_of_them(texts):
    assert string_hashes(*runs_of(texts)).tolist() == [string_hash(each) for each in texts]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_many_integers_hash_like_their_texts(values):
    hashes = decimal_hashes(np.array(values, np.int64))
    assert hashes.tolist() == [string_hash(str(each)) for each in values]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_of_every_width_hash_like_their_texts(dtype):
    ends = np.iinfo(dtype)
    values = np.array([ends.min, -1, 0, 1, ends.max], dtype)
    assert decimal_hashes(values).tolist() == [string_hash(str(each)) for each in values.tolist()]


def test_a_character_cut_in_two_is_refused():
    data = np.frombuffer("aéb".encode(), np.uint8)
    whole = string_hashes(data, np.array([0]), np.array([4]))
    assert whole.tolist() == [string_hash("aéb")]
    for starts, lengths in (([0, 2], [2, 2]), ([0], [2]), ([2], [2])):
        with pytest.raises(UnicodeDecodeError):
            string_hashes(data, np.array(starts), np.array(lengths))


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(UnicodeEncodeError):
        string_hash("\ud83d")
