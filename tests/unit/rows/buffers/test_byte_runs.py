"""Runs of bytes: many are copied together exactly as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import LimitExceededError
from fluss.rows.buffers.byte_runs import (
    BYTES_MAX,
    LONG_RUN_BYTES,
    Words,
    check_bytes_max,
    copy_runs,
    fixed_words,
    gather_runs,
    join_parts,
    narrow_offsets,
    offsets_of,
    runs_of,
    words_of,
    zeros,
)

LENGTHS = st.integers(0, 40) | st.sampled_from(
    [63, 64, 65, 127, LONG_RUN_BYTES - 1, LONG_RUN_BYTES, LONG_RUN_BYTES + 1]
)


def int64(values):
    return np.array(values, np.int64)


def bytes_of(size):
    return np.random.default_rng(size).integers(1, 256, size).astype(np.uint8)


@given(st.lists(LENGTHS, max_size=30), st.integers(0, 9), st.randoms(use_true_random=False))
def test_runs_are_copied_and_nothing_beside_them(lengths, gap, rng):
    source = bytes_of(2 * LONG_RUN_BYTES)
    starts = int64([rng.randint(0, len(source) - each) for each in lengths])
    target_starts = offsets_of(int64(lengths) + gap)[:-1] + gap
    target = np.zeros(sum(lengths) + gap * (len(lengths) + 1), np.uint8)
    expected = target.copy()
    for start, to, length in zip(starts, target_starts, lengths, strict=True):
        expected[to : to + length] = source[start : start + length]
    copy_runs(
        source=source,
        source_starts=starts,
        target=target,
        target_starts=target_starts,
        lengths=int64(lengths),
    )
    assert target.tobytes() == expected.tobytes()


@given(st.lists(LENGTHS, max_size=20))
def test_gathered_runs_lie_back_to_back(lengths):
    source = bytes_of(2 * LONG_RUN_BYTES)
    starts = int64([len(source) - each for each in lengths])
    gathered, offsets = gather_runs(source, starts, int64(lengths))
    assert gathered.tobytes() == b"".join(source[start:].tobytes() for start in starts)
    assert offsets.tolist() == [sum(lengths[:index]) for index in range(len(lengths) + 1)]


def test_words_overlap_and_need_no_alignment():
    data = np.arange(6, dtype=np.uint8)
    assert [int(each) for each in words_of(data, "<u4")] == [0x03020100, 0x04030201, 0x05040302]
    assert len(words_of(data[:3], "<u4")) == 0


def test_parts_are_joined_row_by_row():
    words = fixed_words(np.array([0x0201, 0x0403], np.uint64), 2, None)
    text = np.frombuffer(b"abcdef", np.uint8)
    runs = runs_of(text, int64([0, 3]), int64([3, 0]))
    joined = join_parts([words, runs, zeros(int64([0, 2]))], 2)
    assert list(joined) == [b"\x01\x02abc", b"\x03\x04\0\0"]


@pytest.mark.parametrize("after", [0, 20])
def test_words_of_every_length_stay_inside_their_row(after):
    """With room behind them they are written as whole words, else exactly."""
    lengths = int64(list(range(11)))
    full = 0x0807060504030201
    words = np.array([full & (1 << 8 * min(each, 8)) - 1 for each in range(11)], np.uint64)
    tails = np.full(11, 0x0A09, np.uint16)
    behind = np.full(after * 11, 0xEE, np.uint8)
    part = runs_of(behind, np.arange(11) * after, np.full(11, after))
    joined = join_parts([Words(words=words, lengths=lengths, tails=tails), part], 11)
    expected = bytes(range(1, 11))
    assert list(joined) == [expected[:each] + b"\xee" * after for each in range(11)]


def test_a_word_of_a_row_that_is_not_valid_writes_nothing():
    valid = np.array([False, True])
    part = fixed_words(np.array([7, 8], np.uint64), 4, valid)
    assert list(join_parts([part], 2)) == [b"", b"\x08\0\0\0"]


def test_no_rows_and_no_parts_give_no_bytes():
    assert list(join_parts([], 2)) == [b"", b""]
    assert list(join_parts([zeros(int64([]))], 0)) == []


def test_what_32_bits_cannot_count_is_refused():
    check_bytes_max(BYTES_MAX)
    with pytest.raises(LimitExceededError, match=str(BYTES_MAX + 1)):
        narrow_offsets(int64([0, BYTES_MAX + 1]))
    with pytest.raises(LimitExceededError):
        join_parts([zeros(int64([BYTES_MAX, 1]))], 2)
