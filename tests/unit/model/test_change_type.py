from __future__ import annotations

import pytest

from fluss.errors import InvalidValueError
from fluss.model.change_type import ChangeType
from tests.support.copies import pickled


@pytest.mark.parametrize(
    ("change", "number", "short", "long"),
    [
        (ChangeType.AppendOnly, 0, "+A", "insert"),
        (ChangeType.Insert, 1, "+I", "insert"),
        (ChangeType.UpdateBefore, 2, "-U", "update_before"),
        (ChangeType.UpdateAfter, 3, "+U", "update_after"),
        (ChangeType.Delete, 4, "-D", "delete"),
    ],
)
def test_each_change_has_its_number_and_its_names(change, number, short, long):
    assert int(change) == number
    assert change == number
    assert ChangeType(number) is change
    assert change.short_string() == str(change) == f"{change}" == short
    assert change.long_name == long
    assert repr(change) == f"ChangeType.{change.name}"
    assert ChangeType.parse(short.lower()) is change
    assert pickled(change) is change


def test_long_names_are_read_too():
    assert ChangeType.parse("insert") is ChangeType.Insert
    assert ChangeType.parse(" UPDATE_AFTER ") is ChangeType.UpdateAfter
    assert ChangeType.parse("AppendOnly") is ChangeType.AppendOnly


def test_changes_are_compared_and_are_keys():
    assert ChangeType.Insert < ChangeType.Delete
    assert {ChangeType.Insert: 1}[ChangeType.Insert] == 1


@pytest.mark.parametrize("text", ["", "I", "+", "upsert", "1"])
def test_another_text_is_no_change(text):
    with pytest.raises(InvalidValueError, match="kind of change"):
        ChangeType.parse(text)
