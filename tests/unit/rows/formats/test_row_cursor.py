"""Walks through many rows in parallel, and stops at the first damaged one."""

from __future__ import annotations

import numpy as np
import pytest

from fluss.errors import CorruptDataError
from fluss.rows.formats.row_cursor import RowCursor
from tests.support.generators.encoded import joined


def cursor_over(*rows):
    return RowCursor.over(*joined(rows), what="test row")


def test_rows_are_read_side_by_side():
    cursor = cursor_over(b"\x01\x00\x05\x80\x01", b"\x02\x00\x7f\x07")
    assert cursor.fixed(None, "<i2").tolist() == [1, 2]
    assert cursor.varints(None).tolist() == [5, 127]
    assert cursor.varlongs(None).tolist() == [128, 7]
    cursor.finish()


def test_only_the_rows_asked_for_move():
    cursor = cursor_over(b"\x01\x02", b"\x03")
    assert cursor.fixed(np.array([0]), "i1").tolist() == [1]
    assert cursor.fixed(None, "i1").tolist() == [2, 3]
    cursor.finish()


def test_a_run_is_found_behind_its_length():
    cursor = cursor_over(b"\x02ab", b"\x00")
    starts, lengths = cursor.runs(None)
    assert lengths.tolist() == [2, 0]
    assert cursor.source.data[starts[0] : starts[0] + 2].tobytes() == b"ab"
    cursor.finish()


def test_a_fork_moves_by_itself():
    cursor = cursor_over(b"\x01\x02")
    fork = cursor.fork()
    fork.skip(None, 1)
    assert cursor.fixed(None, "i1").tolist() == [1]
    assert fork.fixed(None, "i1").tolist() == [2]


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (lambda cursor: cursor.fixed(None, "<i8"), "middle of a value"),
        (lambda cursor: cursor.varints(None), "within 5 bytes"),
        (lambda cursor: cursor.runs(np.array([2])), "a length leads out"),
        (lambda cursor: cursor.skip(None, np.array([0, -1, 0])), "middle of a value"),
        (lambda cursor: cursor.finish(), "left over"),
    ],
    ids=["cut off", "unending", "long run", "backwards", "too long"],
)
def test_a_row_that_lies_is_named_with_its_byte(read, why):
    rows = (bytes(8), b"\x80" * 6, b"\x09abcdefgh\0\0"[:8])
    cursor = cursor_over(*rows)
    with pytest.raises(CorruptDataError, match=why) as caught:
        read(cursor)
    bad = caught.value.index
    _, starts, ends = joined(rows)
    assert caught.value.what == "test row"
    assert starts[bad] <= caught.value.at <= ends[bad]


def test_a_negative_length_is_refused():
    with pytest.raises(CorruptDataError, match="a length leads out"):
        cursor_over(b"\xff\xff\xff\xff\x0f").runs(None)


def test_a_number_may_not_reach_into_what_follows_its_row():
    data = np.frombuffer(b"\x80\x01", np.uint8)
    cursor = RowCursor.over(data, np.array([0]), np.array([1]), what="test row")
    with pytest.raises(CorruptDataError, match="middle of a value"):
        cursor.varints(None)


def test_no_rows_are_walked_without_complaint():
    nothing = np.zeros(0, np.int64)
    cursor = RowCursor.over(np.zeros(0, np.uint8), nothing, nothing, what="test row")
    assert cursor.varints(None).tolist() == []
    assert cursor.fixed(None, "<f8").tolist() == []
    cursor.finish()
