"""Texts are cut into statements at semicolons that are not in quotes or comments."""

import pytest
from hypothesis import given, strategies as st

from fluss_duckdb.shell.statement_text import (
    all_statements,
    ends_inside,
    is_blank,
    split_statements,
)


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; SELECT", ["SELECT 1"], "SELECT"),
        ("SELECT ';''' AS \"a;\"\"\"; ", ["SELECT ';''' AS \"a;\"\"\""], ""),
        (r"SELECT E'\';', 'a\';", [r"SELECT E'\';', 'a\'"], ""),
        ("SELECT $$;$$, $x$ ; $$ $x$; b", ["SELECT $$;$$, $x$ ; $$ $x$"], "b"),
        ("-- a;\nSELECT /* ; */ 1;-- b;", ["-- a;\nSELECT /* ; */ 1"], "-- b;"),
        (";; ;", [], ""),
        ("SELECT 'a;", [], "SELECT 'a;"),
        ("SELECT /* a;", [], "SELECT /* a;"),
    ],
)
def test_statements_end_at_semicolons(text, statements, rest):
    assert split_statements(text) == (statements, rest)
    assert list(all_statements(text)) == statements + ([] if is_blank(rest) else [rest])


def test_an_open_quote_or_comment_is_found():
    assert ends_inside("SELECT 'a")
    assert ends_inside('SELECT "a')
    assert ends_inside("/* a")
    assert ends_inside("SELECT $$ a")
    assert not ends_inside("SELECT 'a' -- 'b")


@given(st.lists(st.sampled_from(["'", '"', ";", "$$", "--", "/*", "*/", "\n", "a", " "])))
def test_nothing_of_a_text_is_lost(parts):
    text = "".join(parts)
    statements, rest = split_statements(text)
    at = 0
    for each in [*statements, rest]:
        found = text.find(each, at)
        assert found >= at
        between = text[at:found]
        assert not between.strip(";") or is_blank(between.strip(";").replace(";", ""))
        at = found + len(each)
    assert at == len(text) or is_blank(text[at:].replace(";", ""))
