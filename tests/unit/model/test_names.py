from __future__ import annotations

import pytest

from fluss.errors import InvalidNameError
from fluss.model.names import (
    NAME_LENGTH_MAX,
    RESERVED_COLUMN_NAMES,
    check_column_name,
    check_name,
    check_new_name,
    check_not_reserved,
    check_text,
)


@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * NAME_LENGTH_MAX, "__internal", "-"])
def test_a_name_of_letters_digits_and_two_signs_is_given_back(name):
    assert check_name("table name", name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a.b", "a b", "a/b", "größe", "a$b", "x" * (NAME_LENGTH_MAX + 1), "a\n"]
)
def test_another_name_is_refused(name):
    with pytest.raises(InvalidNameError):
        check_name("table name", name)


def test_the_error_says_which_character_and_what_to_do():
    with pytest.raises(
        InvalidNameError, match=r"table name 'sales\.events' has '.' at position 5"
    ) as e:
        check_name("table name", "sales.events")
    assert "letters, digits" in (e.value.hint or "")
    assert e.value.name == "sales.events"


def test_something_that_is_no_text_is_no_name():
    with pytest.raises(InvalidNameError, match="int"):
        check_name("table name", 7)
    with pytest.raises(InvalidNameError, match="NoneType"):
        check_column_name(None)


def test_a_new_name_cannot_begin_like_those_of_fluss():
    with pytest.raises(InvalidNameError, match="reserved"):
        check_new_name("partition value", "__historical__")
    assert check_new_name("partition value", "_mine") == "_mine"


def test_a_column_may_be_called_anything_that_is_not_empty():
    assert check_column_name("größe in €, 日本") == "größe in €, 日本"
    with pytest.raises(InvalidNameError, match="empty"):
        check_column_name("")


@pytest.mark.parametrize("name", RESERVED_COLUMN_NAMES)
def test_the_columns_of_fluss_itself_are_reserved(name):
    with pytest.raises(InvalidNameError, match="reserved"):
        check_not_reserved(name)


def test_half_a_surrogate_pair_is_not_text():
    with pytest.raises(InvalidNameError, match="surrogate pair at position 1"):
        check_text("comment", "a\ud800")
    with pytest.raises(InvalidNameError, match="is text, not int"):
        check_text("comment", 7)
