"""Every hint has a text at every door, and what a text names exists there."""

import string

import pytest

from fluss.hints import (
    CALL_HINTS,
    DATA_HINTS,
    DOOR_FALL_BACKS,
    FRAME_FALL_BACKS,
    Door,
    FrameKind,
    Hint,
    HintKey,
    render,
)
from fluss.model.scan_options import SCAN_OPTIONS

ROWS = [
    *((key, door, text) for key, texts in CALL_HINTS.items() for door, text in texts.items()),
    *((key, frame, text) for key, texts in DATA_HINTS.items() for frame, text in texts.items()),
]


def fields_of(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def facts_of(key):
    """The facts that the texts of a key name; what is no fact is an option of a scan."""
    texts = {**CALL_HINTS, **DATA_HINTS}[key].values()
    return {name for text in texts for name in fields_of(text)} - SCAN_OPTIONS.keys()


def hint_of(key):
    return Hint(key, **{name: f"<{name}>" for name in facts_of(key)})


def test_every_key_is_in_one_table():
    assert set(CALL_HINTS) | set(DATA_HINTS) == set(HintKey)
    assert not set(CALL_HINTS) & set(DATA_HINTS)


@pytest.mark.parametrize("key", HintKey)
@pytest.mark.parametrize("door", [None, *Door])
@pytest.mark.parametrize("frame", [None, *FrameKind])
def test_every_hint_has_a_text_at_every_door_and_for_every_frame(key, door, frame):
    text = render(hint_of(key), door, frame)
    assert text
    assert "{" not in text.replace("{bucket: offset}", "").replace("{(", "").replace(
        '{"', ""
    ).replace("{'", "")


def test_fall_backs_are_short_and_lead_somewhere():
    for table, falls in ((CALL_HINTS, DOOR_FALL_BACKS), (DATA_HINTS, FRAME_FALL_BACKS)):
        for texts in table.values():
            assert set(falls.values()) <= set(texts)


@pytest.mark.parametrize(
    ("door", "said"),
    [
        (None, "mode='changelog'"),
        (Door.POLARS, "mode='changelog'"),
        (Door.DUCKDB, "mode := 'changelog'"),
        (Door.CLI, "--mode changelog"),
    ],
)
def test_an_option_is_written_as_its_door_takes_it(door, said):
    assert said in render(Hint(HintKey.CHANGELOG_OR_AS_OF), door)


def test_a_door_that_shows_its_frames_decides_what_is_said_of_them():
    facts = {name: name for name in facts_of(HintKey.CAST_COLUMN)}
    hint = Hint(HintKey.CAST_COLUMN, **facts)
    assert "pl.col" in render(hint, Door.SESSION, FrameKind.POLARS)
    assert ".withColumn" in render(hint, Door.SPARK, FrameKind.ARROW)
    assert "column.cast" in render(hint, Door.SESSION)
