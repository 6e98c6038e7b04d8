from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from fluss.errors import FlussError, InvalidSchemaError
from fluss.model.types.data_type import ArrayType, DataField, IntType, RowType
from fluss.model.types.factory import DataTypes as D
from fluss.model.types.type_text import TEXT_LENGTH_MAX, parse_type, quoted_text, type_name
from tests.support.generators.schema_strategies import data_types, scalar_types


@pytest.mark.parametrize(
    ("data_type", "name"),
    [
        (D.int(), "int"),
        (D.bigint().not_null(), "bigint NOT NULL"),
        (D.time(), "time"),
        (D.time(3), "time(3)"),
        (D.timestamp(), "timestamp"),
        (D.timestamp(9), "timestamp(9)"),
        (D.timestamp_ltz(), "timestamp_ltz"),
        (D.timestamp_ltz(3).not_null(), "timestamp_ltz(3) NOT NULL"),
        (D.decimal(10, 2), "decimal(10,2)"),
        (D.char(3), "char(3)"),
        (D.binary(4), "binary(4)"),
        (D.array(D.int().not_null()), "array<int NOT NULL>"),
        (D.map(D.string(), D.int()), "map<string NOT NULL,int>"),
        (D.row([D.field("a", D.int()), D.field("b", D.string())]), "row<a: int, b: string>"),
    ],
)
def test_the_name_is_the_one_that_programs_have_always_seen(data_type, name):
    assert type_name(data_type) == name
    assert parse_type(name) == data_type
    assert parse_type(str(data_type)) == data_type


@given(scalar_types())
def test_both_spellings_of_a_type_can_be_read(data_type):
    assert parse_type(str(data_type)) == data_type
    assert parse_type(type_name(data_type)) == data_type
    assert parse_type(str(data_type).lower()) == data_type


def test_a_field_name_of_several_words_stands_between_backquotes():
    parsed = parse_type("row<`a ``b`` c` int, d: array < string not null > null>")
    fields = (DataField("a `b` c", D.int()), DataField("d", D.array(D.string().not_null())))
    assert parsed == RowType(fields)


@given(data_types())
def test_the_quoted_text_is_read_again_whatever_the_names_are(data_type):
    assert str(parse_type(quoted_text(data_type))) == str(data_type)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a", "ROW<a INT>"), (": ", "ROW<`: ` INT>"), ("a`b", "ROW<`a``b` INT>"), ("", "ROW<`` INT>")],
)
def test_names_of_several_words_or_with_signs_are_quoted(name, text):
    data_type = RowType((DataField(name, IntType()),))
    assert quoted_text(data_type) == text
    assert parse_type(text) == data_type


def test_a_type_may_be_written_without_what_goes_without_saying():
    assert parse_type(" Integer ") == D.int()
    assert parse_type("DECIMAL") == D.decimal(10, 0)
    assert parse_type("DECIMAL(5)") == D.decimal(5, 0)
    assert parse_type("CHAR") == D.char(1)
    assert parse_type("ROW<>") == RowType(())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "''"),
        ("intt", "'intt' is not a type"),
        ("int int", "'int' is left over at position 4"),
        ("int NOT", "'NULL' expected"),
        ("decimal(1,2,3)", "takes 2 numbers"),
        ("int(3)", "takes no numbers"),
        ("char(x)", "a number expected"),
        ("char()", "a number expected"),
        ("char(99999999999)", "a number expected"),
        ("char(0)", "must lie between"),
        ("array<int", "'>' expected, 'the end' found"),
        ("array int", "'<' expected"),
        ("map<int>", "',' expected"),
        ("row<: int>", "a field name expected"),
        ("row<a int, a int>", "two fields"),
        ("row<`a int>", "not closed"),
    ],
)
def test_a_text_that_names_no_type_is_refused_where_it_goes_wrong(text, why):
    with pytest.raises(InvalidSchemaError) as caught:
        parse_type(text)
    assert why in caught.value.message


def test_a_mistyped_name_brings_the_right_one():
    with pytest.raises(InvalidSchemaError) as caught:
        parse_type("BIGNIT")
    assert caught.value.hint == "did you mean 'BIGINT'?"


def test_endless_texts_are_refused():
    with pytest.raises(InvalidSchemaError, match="characters"):
        parse_type(" " * (TEXT_LENGTH_MAX + 1))
    with pytest.raises(InvalidSchemaError, match="levels"):
        parse_type("array<" * 1000 + "int" + ">" * 1000)


def test_nested_types_are_read_at_some_depth():
    data_type = IntType()
    for _ in range(20):
        data_type = ArrayType(data_type)
    assert parse_type(str(data_type)) == data_type


@given(st.text("intarryow<>(),:`123 NOTUL", max_size=30))
def test_any_text_is_a_type_or_one_of_our_errors(text):
    with contextlib.suppress(FlussError):
        parse_type(text)
