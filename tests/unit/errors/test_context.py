"""An error gains the place where it happened in one way, and loses nothing by it."""

import pickle

import pytest

from fluss.errors import FlussError, InvalidValueError, SchemaMismatchError, ServerError
from fluss.hints import Door, Hint, HintKey
from fluss.model.paths import TableBucket


def refused(**facts):
    return InvalidValueError("It does not fit.", hint="Fill it.", column="a", **facts)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"row": 5}, "In row 5: It does not fit."),
        ({"column": "b"}, "In column 'b': It does not fit."),
        ({"table": "d.t"}, "In d.t: It does not fit."),
        ({"table": "d.t", "row": 5}, "In row 5 of d.t: It does not fit."),
        (
            {"table": "d.t", "bucket": 3, "offset": 7},
            "In bucket 3 of d.t at offset 7: It does not fit.",
        ),
        ({"partition": "x", "table": "d.t"}, "In partition 'x' of d.t: It does not fit."),
        ({"row": 1, "inside": "ARRAY<INT>"}, "In row 1 of ARRAY<INT>: It does not fit."),
        ({"bucket": TableBucket(7, 2)}, "In bucket 2: It does not fit."),
        ({"offset": 7}, "At offset 7: It does not fit."),
        ({"table": None}, "It does not fit."),
        ({"during": "3 rows were lost"}, "3 rows were lost: It does not fit."),
        ({"ending": "code 7"}, "It does not fit. [code 7]"),
        ({"attempt": 2}, "It does not fit."),
    ],
)
def test_the_place_is_the_beginning_of_the_message(place, message):
    error = refused().with_context(**place)
    assert error.message == error.args[0] == message
    for name in place.keys() - {"during", "ending"}:
        if place[name] is not None:
            assert getattr(error, name) == place[name]
    assert error.hint == "Fill it."
    assert str(error) == f"{message}\n  hint: Fill it."
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (vars(twin), twin.args, str(twin)) == (
        {**vars(error), "__notes__": []},
        error.args,
        str(error),
    )


def test_what_the_sentence_names_is_not_said_again():
    error = SchemaMismatchError("There is no bucket 3 in d.t.")
    assert error.with_context(table="d.t", bucket=3).message == "There is no bucket 3 in d.t."
    other = error.with_context(table="d.tt", bucket=33)
    assert other.message == "In bucket 33 of d.tt: There is no bucket 3 in d.t."
    failed = FlussError("It hung up.").with_context(during="5 rows for bucket 3 of d.t failed")
    assert (
        failed.with_context(table="d.t").message == "5 rows for bucket 3 of d.t failed: It hung up."
    )


def test_the_last_caller_counts_the_rows():
    error = refused().with_context(row=5).with_context(row=1_005)
    assert (error.message, error.row) == ("In row 1005: It does not fit.", 1_005)


def test_the_same_context_again_changes_nothing():
    error = refused().with_context(table="d.t", row=5, during="a write", ending="code 7")
    again = error.with_context(table="d.t", row=5, during="a write", ending="code 7")
    assert vars(again) == vars(error)


def test_a_copy_is_a_copy():
    first = ServerError("It failed.", 10, server_trace="at X", bucket=3)
    first.add_note("seen")
    first.__cause__ = OSError("no")
    second = first.with_context(table="d.t", hint="Wait.")
    assert (first.message, first.facts, first.hint) == ("It failed.", {"bucket": 3}, None)
    assert type(second) is ServerError
    assert (second.error_code, second.server_trace, second.bucket) == (10, "at X", 3)
    assert (second.__notes__, second.__cause__, second.__traceback__) == (
        ["seen"],
        first.__cause__,
        None,
    )
    second.add_note("later")
    assert first.__notes__ == ["seen"]


def test_context_in_place_is_the_same_error():
    error = refused()
    assert error.add_context(row=5) is error
    assert str(error) == "In row 5: It does not fit.\n  hint: Fill it."


def test_hints_are_replaced_or_added_to():
    error = refused()
    assert error.with_context(hint="Wait.").hint == "Wait."
    assert error.with_context(hint=(*error.hints, "Wait.")).hint == "Fill it. Wait."
    assert FlussError("No.", hint=(None, "first", "then", None)).hint == "first. then"
    assert FlussError("No.", hint=("Again.", "Again.")).hint == "Again."
    assert error.with_context(hint=None).hint == "Fill it."
    assert FlussError("No.", hint="").hint is None


def test_the_outermost_door_counts():
    error = FlussError("No.", hint=Hint(HintKey.UPSERT_INSTEAD, table="d.t"))
    assert "table.new_upsert()" in error.hint
    error.add_context(door=Door.SESSION)
    assert "session.upsert('d.t', ...)" in error.hint
    error.add_context(door=Door.PANDAS)
    assert "df.fluss.upsert('d.t')" in error.hint
    assert pickle.loads(pickle.dumps(error)).hint == error.hint  # noqa: S301 - our own bytes
