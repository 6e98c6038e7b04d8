from __future__ import annotations

import itertools

from fluss.model.did_you_mean import (
    KNOWN_NAMES_MAX,
    NAME_LENGTH_MAX,
    did_you_mean,
    is_slip_of,
    nearest,
)

KNOWN = ("events", "orders", "users")


def test_the_likest_name_is_found():
    assert nearest("event", KNOWN) == "events"


def test_capitals_do_not_matter_and_the_known_spelling_is_given():
    assert nearest("USERS", ["Users"]) == "Users"


def test_nothing_is_found_where_nothing_is_alike():
    assert nearest("zzz", KNOWN) is None
    assert nearest("events", []) is None


def test_a_stricter_likeness_finds_less():
    assert nearest("evnt", KNOWN, likeness=0.6) == "events"
    assert nearest("evnt", KNOWN, likeness=0.95) is None


def test_an_endless_name_is_not_searched_for():
    assert nearest("e" * (NAME_LENGTH_MAX + 1), ["e" * (NAME_LENGTH_MAX + 1)]) is None


def test_the_hint_is_a_question():
    assert did_you_mean("event", KNOWN) == "did you mean 'events'?"
    assert did_you_mean("zzz", KNOWN) is None


def test_a_slip_is_a_letter_or_two():
    for slip in ("events", "event", "evnt", "eevents", "evants", "eventss1"):
        assert is_slip_of(slip, KNOWN), slip
    for other in ("evn", "vnt", "events123", "eve_nts__", "e" * 1000, ""):
        assert not is_slip_of(other, KNOWN), other


def test_a_search_among_endless_names_ends():
    endless = (f"name{each}" for each in itertools.count())
    assert nearest("name7", endless) == "name7"
    assert next(endless) == f"name{KNOWN_NAMES_MAX + 1}"
