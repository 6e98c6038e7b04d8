"""References to Fluss in SQL, and text that only looks like one."""

import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError
from fluss_duckdb.call_finder import (
    Call,
    Dotted,
    PlainNames,
    find_references,
    keeps_text,
    may_reference,
    quoted,
    substituted,
)


def calls(sql):
    return [each for each in find_references(sql, "fluss") if isinstance(each, Call)]


def names(sql):
    return [
        (each.database, each.table)
        for each in find_references(sql, "fluss")
        if isinstance(each, Dotted)
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'fluss(''db.t'')'",
        "SELECT E'fluss(\\'db.t\\')'",
        "SELECT $$ FROM fluss('db.t') $$, $tag$ fluss('db.t') $tag$",
        "SELECT 1 -- FROM fluss('db.t')",
        "SELECT 1 /* FROM fluss('db.t') /* fluss('db.t') */ fluss('db.t') */",
        "SELECT other.fluss('db.t')",
        "SELECT \"x fluss('db.t')\" FROM t",
        "CREATE MACRO fluss(name) AS 1",
        "SELECT fluss FROM t",
        "SELECT * FROM fluss.t",
        "SELECT a.fluss.db.t FROM a",
        "FROM fluss('db.t'",
        "FROM influss('db.t'), fluss2('db.t')",
    ],
)
def test_what_is_no_call_is_left_alone(sql):
    assert find_references(sql, "fluss") == []


@pytest.mark.parametrize(
    "sql",
    [
        "FROM fluss('db.t')",
        "from FLUSS ( 'db.t' )",
        "from \"fluss\"('db.t')",
        "SELECT * FROM a, fluss(/* which */ 'db.t' -- this\n) WHERE x = 'fluss(''y'')'",
        "SELECT é, 'ü' FROM fluss('db.t') ünder",
    ],
)
def test_a_call_is_found_and_nothing_else_is_replaced(sql):
    (call,) = calls(sql)
    assert [each.sql for each in call.arguments] == ["'db.t'"]
    before, after = sql.encode()[: call.start].decode(), sql.encode()[call.stop :].decode()
    assert substituted(sql, [(call.start, call.stop, "V")]) == f"{before}V{after}"


def test_options_are_recognized_by_name():
    (call,) = calls(
        "FROM fluss('db.t', start := now() - INTERVAL 1 DAY, Tail => 5, limit = f(1, [2, 3]),"
        " partitions := {'a': ['x', 'y']})"
    )
    assert [(each.name, each.sql) for each in call.arguments] == [
        (None, "'db.t'"),
        ("start", "now() - INTERVAL 1 DAY"),
        ("tail", "5"),
        ("limit", "f(1, [2, 3])"),
        ("partitions", "{'a': ['x', 'y']}"),
    ]


def test_parameters_inside_a_call_are_known_by_their_places():
    (call,) = calls("SELECT ? FROM fluss(?, tail := $n) WHERE a = ?")
    assert [[p.name for p in each.parameters] for each in call.arguments] == [[1], ["n"]]


def test_an_option_without_a_value_is_refused():
    with pytest.raises(InvalidValueError, match="without a value"):
        find_references("FROM fluss('db.t', start := )", "fluss")


def test_names_of_three_parts_are_found_with_their_quotes_taken_off():
    sql = 'SELECT fluss.db.t.id FROM fluss."d-b"."t$changelog", FLUSS.db.t$binlog'
    assert names(sql) == [("db", "t"), ("d-b", "t$changelog"), ("db", "t$binlog")]


def test_another_name_for_the_catalog_changes_the_names_and_not_the_call():
    sql = "FROM stream.db.t, fluss.db.t, fluss('db.t')"
    found = find_references(sql, "stream")
    assert [type(each) for each in found] == [Dotted, Call]


def test_texts_without_the_word_are_not_looked_at():
    assert not may_reference("SELECT 1", "fluss")
    assert may_reference("FROM Fluss('t')", "fluss")
    assert keeps_text("create view v as select 1")
    assert not keeps_text("SELECT created")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_name_survives_its_quotes(name):
    sql = f"FROM fluss.{quoted(name)}.{quoted(name)}"
    assert names(sql) == [(name, name)]


@given(st.text(st.sampled_from("fluss('\"$.?,-/*) \n:=E[]{}é"), max_size=40))
def test_no_text_is_too_odd_to_be_looked_at(sql):
    try:
        found = find_references(sql, "fluss")
    except InvalidValueError:
        return
    assert substituted(sql, [(each.start, each.stop, "") for each in found]).isascii() or "é" in sql


PLAIN = PlainNames(
    databases={"shop": "shop", "fluss": "fluss"}, database="Shop", tables={"orders": "Orders"}
)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('FROM shop.orders o JOIN SHOP."x y"', [("shop", "orders"), ("shop", "x y")]),
        ("FROM orders, other", [("Shop", "Orders")]),
        ("SELECT a.orders, shop FROM t", []),
        ("FROM fluss.events", [("fluss", "events")]),
        ("FROM fluss.shop.events", [("shop", "events")]),
        ("SELECT fluss.events.id", [("fluss", "events")]),
        ("SELECT 'shop.orders' -- shop.orders", []),
    ],
)
def test_plain_names_are_found_where_there_are_databases(sql, found):
    references = find_references(sql, "fluss", PLAIN)
    assert [(each.database, each.table) for each in references] == found
