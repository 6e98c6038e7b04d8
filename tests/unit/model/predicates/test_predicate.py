import pickle

import pytest

from fluss.errors import InvalidValueError
from fluss.model.predicates.predicate import ColumnRef, Constant, Predicate, col


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (col("a") == 1, "a = 1"),
        (col("a") != "x", "a <> 'x'"),
        (col("a") < 1, "a < 1"),
        (col("a") <= 1, "a <= 1"),
        (col("a") > 1, "a > 1"),
        (col("a") >= 1, "a >= 1"),
        (1 < col("a"), "a > 1"),  # noqa: SIM300 - Python turns it around
        (col("a").equal(1), "a = 1"),
        (col("a").not_equal(1), "a <> 1"),
        (col("a").less_than(1), "a < 1"),
        (col("a").less_or_equal(1), "a <= 1"),
        (col("a").greater_than(1), "a > 1"),
        (col("a").greater_or_equal(1), "a >= 1"),
        (col("a").is_null(), "a IS NULL"),
        (col("a").is_not_null(), "a IS NOT NULL"),
        (col("a").starts_with("x"), "a STARTS WITH 'x'"),
        (col("a").contains("x"), "a CONTAINS 'x'"),
        (col("a").ends_with("x"), "a ENDS WITH 'x'"),
        (col("a").is_in([1, None]), "a IN (1, None)"),
        (col("a").not_in(range(2)), "a NOT IN (0, 1)"),
        ((col("a") > 1) & (col("b") < 2), "(a > 1 AND b < 2)"),
        ((col("a") > 1) | (col("b") < 2), "(a > 1 OR b < 2)"),
        ((col("a") > 1).and_(col("b") < 2), "(a > 1 AND b < 2)"),
        ((col("a") > 1).or_(col("b") < 2), "(a > 1 OR b < 2)"),
        ((col("a") > 1) & (col("b") < 2) & (col("c") == 3), "(a > 1 AND b < 2 AND c = 3)"),
        ((col("a") > 1) & (col("b") < 2) | (col("c") == 3), "((a > 1 AND b < 2) OR c = 3)"),
        (~(col("a") > 1), "NOT (a > 1)"),
        ((col("a") > 1).not_(), "NOT (a > 1)"),
        (~((col("a") > 1) | (col("b") < 2)), "NOT (a > 1 OR b < 2)"),
        (~~(col("a") > 1), "a > 1"),
        (Constant(value=True), "TRUE"),
        (Constant(value=False) | Constant(value=None), "(FALSE OR NULL)"),
    ],
)
def test_comparing_a_column_makes_a_predicate_that_reads_like_sql(predicate, text):
    assert isinstance(predicate, Predicate)
    assert str(predicate) == text
    assert repr(predicate) == f"Predicate({text})"
    assert pickle.loads(pickle.dumps(predicate)) == predicate  # noqa: S301 - our own


def test_neither_a_column_nor_a_predicate_is_true_or_false():
    with pytest.raises(TypeError, match="compare it first"):
        bool(col("a"))
    with pytest.raises(TypeError, match=r"join predicates with & and \|"):
        bool(1 < col("a") < 5)
    with pytest.raises(TypeError, match="negate them with ~"):
        not (col("a") > 1)
    with pytest.raises(TypeError, match="neither true nor false"):
        (col("a") > 1) and (col("b") > 1)


@pytest.mark.parametrize("other", [1, "a > 1", None, True])
def test_only_predicates_are_joined(other):
    predicate = col("a") > 1
    for join in (
        lambda: predicate & other,
        lambda: predicate | other,
        lambda: other & predicate,
        lambda: other | predicate,
        lambda: predicate.and_(other),
        lambda: predicate.or_(other),
    ):
        with pytest.raises(TypeError):
            join()


def test_a_column_is_no_key_and_has_a_name():
    assert col("a").name == ColumnRef("a").name == "a"
    assert repr(col("a")) == "ColumnRef(a)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))
    with pytest.raises(TypeError, match="by its name"):
        col(1)


@pytest.mark.parametrize("other", [col("b"), col("b") > 1])
def test_a_column_is_not_compared_with_a_column(other):
    with pytest.raises(InvalidValueError, match="compared with a value"):
        col("a").equal(other)
    with pytest.raises(InvalidValueError, match="compared with a value"):
        col("a").is_in([other])


def test_texts_are_searched_for_texts_and_lists_are_lists():
    with pytest.raises(TypeError, match="searched for a text"):
        col("a").starts_with(1)
    with pytest.raises(TypeError, match="are a list"):
        col("a").is_in("abc")


def test_a_comparison_without_parentheses_says_where_they_belong():
    for condition in (
        lambda: col("a") > 1 & col("a") < 3,
        lambda: (col("a") > 1) & col("b"),
        lambda: col("b") | (col("a") > 1),
        lambda: 1 | col("a"),
    ):
        with pytest.raises(TypeError, match=r'\(col\("id"\) > 1\) & \(col\("id"\) < 3\)'):
            condition()
