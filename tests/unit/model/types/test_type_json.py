from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptDataError, FlussError, UnsupportedTypeError
from fluss.model.json_values import json_text, parse_json
from fluss.model.types.data_type import ArrayType, CharType, DataField, IntType, RowType
from fluss.model.types.type_json import TYPE_DEPTH_MAX, type_from_json, type_to_json
from fluss.model.types.type_text import parse_type
from tests.support.differential.golden import golden
from tests.support.generators.schema_strategies import data_types


@given(data_types())
def test_a_type_comes_back_from_its_json(data_type):
    text = json_text(type_to_json(data_type))
    assert type_from_json(parse_json(text, "data type")) == data_type


@pytest.mark.parametrize("name", [name for name in golden("type_json") if "ROW" not in name])
def test_the_json_is_the_one_that_java_writes(name):
    assert json_text(type_to_json(parse_type(name))) == golden("type_json")[name]["json"]


def test_null_is_only_written_where_it_is_forbidden():
    assert type_to_json(IntType()) == {"type": "INTEGER"}
    assert type_to_json(IntType(nullable=False)) == {"type": "INTEGER", "nullable": False}


def test_a_field_without_an_id_comes_back_without_one():
    row = RowType((DataField("a", IntType(), "why"), DataField("b", CharType(2), field_id=7)))
    written = type_to_json(row)
    assert [each.get("field_id") for each in written["fields"]] == [None, 7]
    assert type_from_json(written) == row
    written["fields"][0]["field_id"] = -1  # as Java writes it
    assert type_from_json(written) == row


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "INTEGER",
        {},
        {"type": 3},
        {"type": "INTEGER", "nullable": "no"},
        {"type": "CHAR"},
        {"type": "CHAR", "length": 0},
        {"type": "CHAR", "length": 1.5},
        {"type": "CHAR", "length": True},
        {"type": "DECIMAL", "precision": 5},
        {"type": "DECIMAL", "precision": 5, "scale": 6},
        {"type": "TIME_WITHOUT_TIME_ZONE", "precision": 10},
        {"type": "ARRAY"},
        {"type": "MAP", "key_type": {"type": "INTEGER"}},
        {"type": "ROW"},
        {"type": "ROW", "fields": [3]},
        {"type": "ROW", "fields": [{"name": "a"}]},
        {"type": "ROW", "fields": [{"name": 1, "field_type": {"type": "INTEGER"}}]},
        {
            "type": "ROW",
            "fields": [{"name": "a", "field_type": {"type": "INTEGER"}, "field_id": "x"}],
        },
    ],
)
def test_json_that_fluss_does_not_write_is_corrupt(value):
    with pytest.raises(CorruptDataError) as caught:
        type_from_json(value)
    assert caught.value.what
    assert caught.value.why


def test_a_type_of_a_newer_server_is_distinguished_from_damage():
    with pytest.raises(UnsupportedTypeError, match="'VARIANT'"):
        type_from_json({"type": "VARIANT"})


def test_a_type_without_end_is_refused_before_the_stack_is():
    node = {"type": "INTEGER"}
    for _ in range(TYPE_DEPTH_MAX + 1):
        node = {"type": "ARRAY", "element_type": node}
    with pytest.raises(CorruptDataError, match="nested"):
        type_from_json(node)
    text = '{"a":' * 100_000 + "1" + "}" * 100_000
    with pytest.raises(CorruptDataError, match="nested"):
        parse_json(text, "data type")


def test_the_deepest_type_that_is_taken_can_be_written_again():
    data_type = IntType()
    for _ in range(TYPE_DEPTH_MAX):
        data_type = ArrayType(data_type)
    assert type_from_json(type_to_json(data_type)) == data_type


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "character 0"),
        (b"{", "character 1"),
        (b"\xff\xff{}", "UTF-8"),
        (b"[]", "expected an object"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "digits"),
    ],
)
def test_text_that_is_no_json_object_is_corrupt(text, why):
    with pytest.raises(CorruptDataError, match=why):
        parse_json(text, "schema")


def test_half_a_surrogate_pair_in_json_is_corrupt():
    with pytest.raises(CorruptDataError, match="surrogate"):
        type_from_json(
            json.loads(
                '{"type":"ROW","fields":[{"name":"\\ud800","field_type":{"type":"INTEGER"}}]}'
            )
        )


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["ROW", "MAP"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "nullable", "length", "precision", "scale", "fields", "element_type"]
            ),
            inner,
        )
    ),
)


@given(_json)
def test_any_json_is_a_type_or_one_of_our_errors(value):
    with contextlib.suppress(FlussError):
        type_from_json(value)
