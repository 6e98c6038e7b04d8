"""Every hint has a text at every door, and what a text names exists there."""

import importlib
import itertools
import pickle
import re
import string
from types import SimpleNamespace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss_duckdb
from fluss.cli.application import application
from fluss.hints import (
    DOOR_FALL_BACKS,
    FRAME_FALL_BACKS,
    Door,
    FrameKind,
    Hint,
    HintKey,
    render,
)
from fluss.model.options.scan_options import SCAN_OPTIONS
from fluss.session import Scan, Session, Table
from fluss.write.write_tally import WriteProgress

ROWS = [(key, place, text) for key in HintKey for place, text in key.texts.items()]


def fields_of(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def facts_of(key):
    """The facts that the texts of a key name; what is no fact is an option of a scan."""
    return {name for text in key.texts.values() for name in fields_of(text)} - SCAN_OPTIONS.keys()


def hint_of(key):
    return Hint(key, **{name: f"<{name}>" for name in facts_of(key)})


def test_the_texts_of_a_key_are_all_by_door_or_all_by_frame():
    for key in HintKey:
        assert {type(place) for place in key.texts} == {Door if key.is_call else FrameKind}


def test_a_hint_travels_between_processes_by_name():
    for key in HintKey:
        assert pickle.loads(pickle.dumps(key)) is key  # noqa: S301 - our own bytes
        assert key.name.encode() in pickle.dumps(key)


@pytest.mark.parametrize("key", HintKey)
def test_every_hint_has_a_text_at_every_door_and_for_every_frame(key):
    for door, frame in itertools.product([None, *Door], [None, *FrameKind]):
        check_text(render(hint_of(key), door, frame))


def check_text(text):
    assert text
    assert "{" not in text.replace("{bucket: offset}", "").replace("{(", "").replace(
        '{"', ""
    ).replace("{'", "")


def test_fall_backs_are_short_and_lead_somewhere():
    for key in HintKey:
        falls = DOOR_FALL_BACKS if key.is_call else FRAME_FALL_BACKS
        assert set(falls.values()) <= set(key.texts)


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


def test_a_door_that_shows_its_frames_decides_how_hints_name_them():
    facts = {name: name for name in facts_of(HintKey.CAST_COLUMN)}
    hint = Hint(HintKey.CAST_COLUMN, **facts)
    assert "pl.col" in render(hint, Door.SESSION, FrameKind.POLARS)
    assert ".withColumn" in render(hint, Door.SPARK, FrameKind.ARROW)
    assert "column.cast" in render(hint, Door.SESSION)


# --- what the texts name ------------------------------------------------------------------------


def objects_at(door):
    """What a name in a hint stands for at a door."""
    importlib.import_module("fluss.pandas")
    importlib.import_module("fluss_polars")
    common = {"fluss": fluss, "pa": pa, "pyarrow": pa, "pl": pl, "pd": pd, "scan": Scan}
    common["error"] = SimpleNamespace(progress=WriteProgress)
    session = {"session": Session, "table": Table, "column": pa.Array, "batch": pa.RecordBatch}
    match door:
        case Door.CLIENT | Door.AIO:
            door_fluss = fluss if door is Door.CLIENT else importlib.import_module("fluss.aio")
            return common | {
                "table": door_fluss.FlussTable,
                "connection": door_fluss.FlussConnection,
                "admin": fluss.FlussAdmin,
                "column": pa.Array,
                "batch": pa.RecordBatch,
                "scan": fluss.session.Scan,
                "col": fluss.col,
            }
        case Door.PANDAS:
            return common | session | {"df": pd.DataFrame}
        case Door.POLARS:
            return common | session | {"df": pl.DataFrame}
        case Door.DUCKDB:
            known = {"fluss_duckdb": fluss_duckdb, "Connection": fluss_duckdb.Connection}
            return common | session | known
        case _:
            return common | session


CALL = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(")
COMMAND = re.compile(r"`fluss (\w+)")
SQL = {"CAST", "coalesce", "fluss"}
SPARK = {"option", "load", "save", "withColumn", "where", "col", "lit"}
SPARK |= {"coalesce", "uuid", "rand", "current_timestamp"}


@pytest.mark.parametrize("door", Door)
def test_what_a_text_names_exists_at_its_door(door):
    known = objects_at(door)
    for key in HintKey:
        check_names(render(hint_of(key), door), door, known)


def check_names(text, door, known):
    for name in CALL.findall(text):
        first, *rest = name.split(".")
        if door is Door.SPARK and name in SPARK:
            continue
        if door in {Door.DUCKDB, Door.CLI} and name in SQL:
            continue
        if first in {"value", "len"}:
            continue
        assert first in known, f"{name} in {text!r}"
        found = known[first]
        for part in rest:
            assert hasattr(found, part), f"{name} in {text!r}"
            found = getattr(found, part)
            if isinstance(found, property):  # Expr.dt, for example
                break
    for command in COMMAND.findall(text):
        assert command in COMMANDS, text


COMMANDS = set(application().entries)
