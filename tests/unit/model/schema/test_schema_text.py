"""Schemas as text: what users of SQL write is understood, and what is wrong is named."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from fluss.errors import FlussError, InvalidSchemaError
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.schema.schema_text import TEXT_LENGTH_MAX, parse_columns, parse_schema


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id BIGINT NOT NULL, name STRING", Schema({"id": "BIGINT NOT NULL", "name": "STRING"})),
        ("id bigint, PRIMARY KEY (id)", Schema({"id": "BIGINT"}, ["id"])),
        ("id INT PRIMARY KEY, n INT", Schema({"id": "INT", "n": "INT"}, ["id"])),
        (
            "a INT, b INT, primary key (b, a) not enforced",
            Schema({"a": "INT", "b": "INT"}, ["b", "a"]),
        ),
        ("(a INT,\n b STRING,\n)", Schema({"a": "INT", "b": "STRING"})),
        ("p DECIMAL(9, 2), m MAP<INT, ARRAY<STRING>>", Schema(
            {"p": "DECIMAL(9, 2)", "m": "MAP<INT, ARRAY<STRING>>"}
        )),
        ("r ROW<a INT, b ROW<c INT, d STRING>>", Schema({"r": "ROW<a INT, b ROW<c INT, d STRING>>"})),
        ("`two words` INT, `tick``s` INT", Schema({"two words": "INT", "tick`s": "INT"})),
        ("a INT -- the first, (of two)\n, b INT", Schema({"a": "INT", "b": "INT"})),
        ("größe DOUBLE", Schema({"größe": "DOUBLE"})),
        ("a INT COMMENT 'it''s, -- (one)', b INT", Schema(
            [Column("a", "INT", "it's, -- (one)"), Column("b", "INT")]
        )),
        ("a INT NOT NULL PRIMARY KEY COMMENT 'k'", Schema([Column("a", "INT NOT NULL", "k")], ["a"])),
    ],
)  # fmt: skip
def test_a_schema_is_read(text, expected):
    assert parse_schema(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks a column"),
        ("a INT,, b INT", "lacks a column"),
        ("a", "'a' has no type"),
        ("a COMMENT 'x'", "'a' has no type"),
        ("a BIGNT", "did you mean 'BIGINT'"),
        ("a INT NULLABLE", "left over"),
        ("a INT b INT", "left over"),
        ("a ARRAY<INT", "expected"),
        ("'a' INT", "is not a column"),
        ("a INT PRIMARY KEY, b INT PRIMARY KEY", "primary key twice"),
        ("a INT PRIMARY KEY, PRIMARY KEY (a)", "primary key twice"),
        ("a INT, PRIMARY KEY (b)", "b"),
        ("a INT, a INT", "a"),
    ],
)
def test_what_is_wrong_is_named(text, said):
    with pytest.raises(InvalidSchemaError) as caught:
        parse_schema(text)
    assert said in str(caught.value)


def test_added_columns_have_no_key():
    assert parse_columns("a INT, b STRING") == (Column("a", "INT"), Column("b", "STRING"))
    with pytest.raises(InvalidSchemaError, match="cannot be changed"):
        parse_columns("a INT PRIMARY KEY")


def test_a_text_has_a_limit():
    with pytest.raises(InvalidSchemaError, match="too long"):
        parse_schema("a INT," * TEXT_LENGTH_MAX)


@given(st.text(alphabet="ab ,()<>`'INT-\n", max_size=60))
def test_any_text_is_a_schema_or_refused(text):
    with contextlib.suppress(FlussError):
        assert parse_schema(text).columns
