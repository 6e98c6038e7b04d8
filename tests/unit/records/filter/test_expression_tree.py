import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fluss.errors import UnsupportedOperationError
from fluss.model.schema.schema import Schema
from fluss.records.filter.arrow_expressions import split_arrow
from fluss.records.filter.expression_tree import (
    Call,
    Field,
    Literal,
    fields_of,
    is_form_known,
    read_tree,
    schema_metadata,
)


def words_of(expression):
    _, (pickled,) = expression.__reduce__()
    return list(schema_metadata(pickled))


def test_metadata_is_read_in_its_order_with_keys_that_come_again():
    assert words_of(~(pc.field("a") > 1) & pc.field("b")) == [
        ("call", "and_kleene"),
        ("call", "invert"),
        ("call", "greater"),
        ("field_ref", "a"),
        ("literal", "0"),
        ("end", "greater"),
        ("end", "invert"),
        ("field_ref", "b"),
        ("end", "and_kleene"),
    ]


def test_each_node_has_the_expression_that_it_stands_for():
    tree = read_tree((pc.field("a") > 1) & pc.field("b").isin([1, None]))
    assert isinstance(tree, Call)
    compared, listed = tree.arguments
    assert compared.expression.equals(pc.field("a") > 1)
    column, value = compared.arguments
    assert isinstance(column, Field)
    assert column.name == "a"
    assert isinstance(value, Literal)
    assert value.value == pa.scalar(1)
    assert listed.options["value_set"].to_pylist() == [1, None]


def test_a_tree_that_is_not_read_back_equal_is_refused(monkeypatch):
    expression = (pc.field("i") > 1) & (pc.field("l") < 2)
    read = words_of(expression)
    swapped = [("field_ref", "l") if each == ("field_ref", "i") else each for each in read]
    monkeypatch.setattr(
        "fluss.records.filter.expression_tree.schema_metadata", lambda _: iter(swapped)
    )
    with pytest.raises(UnsupportedOperationError, match="not the same any more"):
        read_tree(expression)
    for broken in (read[:-1], read[1:], [], [*read, *read], [("end", "x")], [("literal", "9")]):
        monkeypatch.setattr(
            "fluss.records.filter.expression_tree.schema_metadata",
            lambda _, words=broken: iter(words),
        )
        with pytest.raises(UnsupportedOperationError):
            read_tree(expression)


def test_this_pyarrow_is_read():
    assert is_form_known()
    assert fields_of((pc.field("a") + pc.field("b") > 1) & pc.field("c")) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "words",
    [
        lambda words: [(key.upper(), value) for key, value in words],
        lambda words: words[:-1],
        lambda words: [(key, "a" if key == "field_ref" else value) for key, value in words],
        lambda words: words[:0],
    ],
    ids=["other words", "cut short", "other columns", "nothing"],
)
def test_nothing_is_pushed_down_once_pyarrow_pickles_in_another_form(monkeypatch, words):
    module = "fluss.records.filter.expression_tree"
    read = schema_metadata
    monkeypatch.setattr(f"{module}.schema_metadata", lambda file: iter(words(list(read(file)))))
    is_form_known.cache_clear()
    try:
        assert not is_form_known()
        expression = pc.field("a") > 1
        assert fields_of(expression) is None
        predicate, rest = split_arrow(expression, Schema(pa.schema({"a": pa.int64()})))
        assert predicate is None
        assert rest.equals(expression)
        with pytest.raises(UnsupportedOperationError, match="in an unknown form") as caught:
            read_tree(expression)
        assert caught.value.hint
    finally:
        is_form_known.cache_clear()
