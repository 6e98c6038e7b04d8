"""A pushed predicate keeps every row of its filter, and is as narrow as possible."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from polars.lazyframe.resolver import LazyFrameResolver

from fluss.model.predicates.binding import bind, column_types
from fluss.model.predicates.predicate import conjoined
from fluss.model.schema.schema import Schema
from fluss.records.filter.row_filter import RowFilter
from fluss_polars.pushdown import pushed

NUMBERS = [None, -(2**63), -1, 0, 1, 2, 3, 2**60 + 1]
FLOATS = [None, math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf]
TEXTS = [None, "", "a", "ab", "b", "Ä", "a.c", "abc"]
PRICES = [None, *map(Decimal, ("-0.01", "0.00", "1.00", "1.50", "2.25", "99.99", "-1.50"))]
TIMES = [None, *(dt.datetime(2026, 1, each) for each in range(1, 8))]  # noqa: DTZ001
TRUTHS = [None, True, False, None, True, False, True, False]
ARROW = pa.table(
    {
        "i": pa.array(NUMBERS, pa.int64()),
        "f": pa.array(FLOATS, pa.float64()),
        "g": pa.array(FLOATS, pa.float32()),
        "s": pa.array(TEXTS),
        "d": pa.array(PRICES, pa.decimal128(10, 2)),
        "t": pa.array(TIMES, pa.timestamp("us")),
        "n": pa.array(TIMES, pa.timestamp("ns")),
        "z": pa.array(TIMES, pa.timestamp("us", tz="UTC")),
        "b": pa.array(TRUTHS),
        "y": pa.array([None if each is None else each.encode() for each in TEXTS], pa.binary()),
        "q": pa.array([None if each is None else each.date() for each in TIMES], pa.date32()),
        "h": pa.array([None if each is None else dt.time(each.day) for each in TIMES],
                      pa.time64("us")),
    }
)  # fmt: skip
SCHEMA = Schema(ARROW.schema)
FRAME = pl.DataFrame(ARROW)


def check(predicate):
    bind(predicate, column_types(SCHEMA))


c = pl.col


class Listening(LazyFrameResolver):
    """Records the filters that Polars passes to a resolver."""

    def __init__(self):
        self.filters = []

    def schema(self):
        return FRAME.schema

    def resolve_lazyframe(self, *, projection, filters, **_):
        self.filters = [each.expr for each in filters]
        return FRAME.lazy() if projection is None else FRAME.lazy().select(projection)


def pushed_of(expression):
    listening = Listening()
    listening.lazy().filter(expression).collect()
    found = [pushed(each, ARROW.schema, check) for each in listening.filters]
    said = conjoined([each.predicate for each in found if each is not None])
    return said, all(each is not None and each.is_exact for each in found)


def rows_of(predicate):
    if predicate is None:
        return set(range(FRAME.height))
    batch = ARROW.to_batches()[0]
    names = ARROW.schema.names
    row_filter = RowFilter(predicate, SCHEMA)
    looked_at = batch.select([names[each] for each in row_filter.columns])
    return set(row_filter.matching(looked_at).tolist())


def wanted_rows(expression):
    return set(FRAME.with_row_index().filter(expression)["index"].to_list())


NEVER_NARROWED = st.deferred(
    lambda: st.one_of(
        COMPARISONS,
        LISTS,
        st.sampled_from(
            [c("s").is_null(), c("f").is_not_null(), c("b"), ~c("b"), c("f").is_nan(),
             c("f").is_not_nan(), c("i") % 2 == 0, c("s").str.len_bytes() > 1,
             c("s").str.starts_with("a"), c("s").str.ends_with("c"), c("s").str.contains("b"),
             c("s").str.contains("a."), c("s").str.contains("a.", literal=True),
             c("s").eq_missing("a"), c("s").ne_missing("a"), c("i").is_between(0, 2),
             c("f").is_between(-1.0, 1.5, closed="none"), c("i") == c("i"), pl.lit(True),
             c("i").cast(pl.Float64) > 1.0, c("t").dt.day() == 3]
        ),
        st.builds(lambda each: ~each, NEVER_NARROWED),
        st.builds(lambda first, second: first & second, NEVER_NARROWED, NEVER_NARROWED),
        st.builds(lambda first, second: first | second, NEVER_NARROWED, NEVER_NARROWED),
    )
)  # fmt: skip
_VALUES = {
    "i": [-1, 0, 2, 2**60 + 1, 2.5],
    "f": [math.nan, 0.0, -0.0, 1.5, math.inf, -math.inf],
    "g": [math.nan, 0.0, 1.5, 0.1],
    "s": ["", "a", "b", "Ä"],
    "d": [Decimal("1.50"), Decimal("1.505"), 1, 2.25],
    "t": [dt.datetime(2026, 1, 3)],  # noqa: DTZ001
    "n": [dt.datetime(2026, 1, 3)],  # noqa: DTZ001
    "z": [dt.datetime(2026, 1, 3, tzinfo=dt.UTC)],
    "y": [b"", b"ab"],
    "q": [dt.date(2026, 1, 3), dt.datetime(2026, 1, 3, 12)],  # noqa: DTZ001
    "h": [dt.time(3), dt.time(3, 0, 0, 1)],
}
_OPERATORS = [
    lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x < y, lambda x, y: x <= y,
    lambda x, y: x > y, lambda x, y: x >= y, lambda x, y: pl.lit(y) < x,
    lambda x, y: x.eq_missing(y), lambda x, y: x.ne_missing(y),
]  # fmt: skip
COMPARISONS = st.one_of(
    [
        st.builds(lambda how, value, name=name: how(c(name), value),
                  st.sampled_from(_OPERATORS), st.sampled_from(values))
        for name, values in _VALUES.items()
    ]
)  # fmt: skip
LISTS = st.one_of(
    [
        st.builds(lambda listed, nulls, name=name: c(name).is_in(listed, nulls_equal=nulls),
                  st.lists(st.sampled_from([None, *values]), max_size=4), st.booleans())
        for name, values in (("i", [-1, 0, 2]), ("s", ["a", "b"]), ("f", [0.0, 1.5, math.nan]))
    ]
)  # fmt: skip


@settings(deadline=None)
@given(NEVER_NARROWED)
def test_every_row_of_a_filter_is_among_those_that_are_asked_for(expression):
    predicate, is_exact = pushed_of(expression)
    expected, asked = wanted_rows(expression), rows_of(predicate)
    assert expected <= asked, (str(expression), str(predicate))
    names = expression.meta.root_names()
    if is_exact and not {"f", "g"}.intersection(names):
        complete = FRAME.with_row_index().drop_nulls(names)["index"].to_list()
        assert expected.intersection(complete) == asked.intersection(complete)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (c("i") > 5, "i > 5"),
        (pl.lit(5) > c("i"), "i < 5"),
        ((c("i") > 1) & (c("s") == "x"), "(s = 'x' AND i > 1)"),
        (~((c("i") > 1) & (c("s") == "x")), "(i <= 1 OR s <> 'x')"),
        (c("f") > 1.0, "(f > 1.0 OR NOT (f <= inf))"),
        (c("f") <= 1.0, "f <= 1.0"),
        (c("d") > Decimal("1.5"), "d > Decimal('1.5')"),
        (c("s").str.starts_with("a"), "s STARTS WITH 'a'"),
        (c("s").str.contains("abc"), "s CONTAINS 'abc'"),
        (c("s").is_in(["a", None]), "s IN ('a')"),
        (~c("s").is_in(["a", "b"]), "s NOT IN ('a', 'b')"),
        (c("i").is_between(1, 5, closed="left"), "(i >= 1 AND i < 5)"),
        (c("q") == dt.date(2026, 1, 3), "q = np.datetime64('2026-01-03')"),
        ((c("i") == 1) & (c("i") % 2 == 1), "i = 1"),
        ((c("i") == 1) | (c("i") % 2 == 1), "None"),
        (c("s").str.contains("a.c"), "None"),
        (c("i") > 2**70, "None"),
    ],
)
def test_what_fluss_knows_is_asked_for(expression, text):
    predicate, _ = pushed_of(expression)
    assert str(predicate) == text


def test_a_long_list_and_a_function_of_python_are_left_to_polars():
    assert pushed_of(c("i").is_in(list(range(20_000))))[0] is None
    assert pushed_of(c("i").is_in(list(range(2_000))))[0] is not None
    asked = c("i").map_batches(lambda x: x > 1, return_dtype=pl.Boolean)
    assert pushed(asked, ARROW.schema, check) is None


def test_columns_that_the_table_has_not_are_not_asked_for():
    assert pushed(c("nosuch") == 1, ARROW.schema, check) is None
