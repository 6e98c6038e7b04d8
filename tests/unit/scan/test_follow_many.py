"""Batches are given out in turn, and the cursor of many tables is a text."""

import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError
from fluss.model.options.bounds import Cursor
from fluss.model.options.many_cursor import ManyCursor
from fluss.scan.follow_many import in_turn


@given(items=st.lists(st.tuples(st.integers(0, 4), st.integers())))
def test_groups_take_turns_and_keep_their_order(items):
    found = list(in_turn(items, lambda each: each[0]))
    assert sorted(found) == sorted(items)
    for group in range(5):
        of_group = [each for each in items if each[0] == group]
        assert [each for each in found if each[0] == group] == of_group
        if of_group:
            # The n-th of a group comes before the n+1-th of any other.
            before = found[: found.index(of_group[0])]
            assert len({each[0] for each in before}) == len(before)


CURSORS = st.builds(
    Cursor,
    table_id=st.integers(0, 2**40),
    offsets=st.lists(
        st.tuples(st.tuples(st.none() | st.integers(0, 9), st.integers(0, 99)), st.integers(0, 2**62)),
        max_size=5,
    ).map(tuple),
)  # fmt: skip


@given(tables=st.dictionaries(st.sampled_from(["d.a", "d.ä", 'x."y"']), CURSORS))
def test_a_cursor_is_read_back(tables):
    cursor = ManyCursor(tables=tables)
    assert ManyCursor.from_json(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"version":2,"tables":{}}', '{"version":1,"tables":[]}', '{"version":1,"tables":{"d.a":{}}}', "[" * 100_000],
)  # fmt: skip
def test_other_texts_are_refused(text):
    with pytest.raises(InvalidValueError, match="not a cursor of many tables"):
        ManyCursor.from_json(text)
