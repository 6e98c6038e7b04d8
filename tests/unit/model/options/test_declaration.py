from __future__ import annotations

from enum import StrEnum

import pytest

from fluss.errors import ConfigError
from fluss.model.options.declaration import (
    Option,
    OptionSet,
    boolean,
    duration_ms,
    integer,
    member,
    size_bytes,
    text,
)
from tools.docs.option_pages import markdown_table


class Colour(StrEnum):
    RED = "red"
    BLUE = "BLUE"


class Paints(OptionSet):
    """Options of a made-up component."""

    __slots__ = ()

    colour = Option[Colour]("paint.colour", Colour.RED, member(Colour), "What it looks like.")
    coats = Option[int | None]("paint.coats", None, integer(1, 9), "How often.", since="1.0")
    key = Option[str]("paint.key", "", text, "Where it is kept.", secret=True)


class MorePaints(Paints):
    """The same and one more."""

    __slots__ = ()

    gloss = Option[bool]("paint.gloss", False, boolean, "Whether it shines.")


def test_an_option_is_an_attribute_with_a_default():
    paints = Paints()
    assert paints.colour is Colour.RED
    assert not paints.is_set(Paints.colour)
    paints.colour = "blue"
    assert paints.colour is Colour.BLUE
    assert paints.is_set(Paints.colour)


def test_the_class_knows_its_options_by_key_and_by_name():
    assert list(Paints.OPTIONS) == ["paint.colour", "paint.coats", "paint.key"]
    assert list(MorePaints.OPTIONS) == [*Paints.OPTIONS, "paint.gloss"]
    assert Paints.colour.name == "colour"
    assert Paints.colour.doc == Paints.colour.__doc__ == "What it looks like."


def test_a_value_that_an_option_does_not_take_is_refused_with_its_key():
    paints = Paints()
    with pytest.raises(ConfigError, match=r"'paint.colour': 'green' is not one of red, BLUE") as e:
        paints.colour = "green"
    assert e.value.key == "paint.colour"
    assert paints.colour is Colour.RED


def test_the_value_of_a_secret_is_not_repeated_in_its_error():
    with pytest.raises(ConfigError) as caught:
        Paints().key = 12345
    assert "12345" not in str(caught.value)


def test_an_attribute_that_is_no_option_cannot_be_set():
    with pytest.raises(AttributeError):
        Paints().color = "red"  # type: ignore[attr-defined]


def test_the_documentation_is_a_table_of_the_options():
    assert markdown_table(Paints.OPTIONS.values()).splitlines() == [
        "| key | default | meaning |",
        "|---|---|---|",
        "| `paint.colour` | `red` | What it looks like. |",
        "| `paint.coats` |  | How often. Since 1.0. |",
        "| `paint.key` |  | Where it is kept. |",
    ]


@pytest.mark.parametrize(
    ("parse", "taken", "refused"),
    [
        (text, ["", "a"], [1, None, b"a"]),
        (boolean, [True, False, "TRUE", "false"], ["yes", 1, None, "", " true"]),
        (integer(-1, 5), [-1, 5, "3", "+3", "-1"], [6, "6", "3.0", 3.0, True, "", "--1", " 3"]),
        (size_bytes(1, 1024), [1, "1kb"], [0, "2kb", None]),
        (duration_ms(1, 1000), [1, "1s", "5"], [0, "2s", None]),
        (duration_ms(unit_required=True), ["1s", " 5 ms "], ["5", " 5 ", None]),
        (member(Colour), [Colour.RED, "Red", "blue"], ["green", 1, None, " red"]),
    ],
    ids=["text", "boolean", "integer", "size", "duration", "unit", "member"],
)
def test_what_an_option_takes_and_what_it_refuses(parse, taken, refused):
    for each in taken:
        parse(each)
    for each in refused:
        with pytest.raises(ValueError, match=r"\w"):
            parse(each)
