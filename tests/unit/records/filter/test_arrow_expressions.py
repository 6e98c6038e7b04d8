import decimal
from datetime import UTC, date, datetime, time
from functools import reduce
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fluss.errors import InvalidSchemaError, InvalidValueError, UnsupportedOperationError
from fluss.model.predicates.predicate import col
from fluss.model.schema.schema import Schema
from fluss.records.filter.arrow_expressions import from_arrow, split_arrow
from fluss.records.filter.expression_tree import DEPTH_MAX
from fluss.records.filter.row_filter import RowFilter
from tests.support.generators.arrow_rows import batch_of
from tests.support.generators.random_values import random_value

NAN = float("nan")
F = pc.field
ARROW_SCHEMA = pa.schema(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("x", pa.binary()),
        ("p", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.time32("ms")),
        ("ntz", pa.timestamp("us")),
        ("ns", pa.timestamp("ns")),
        ("ltz", pa.timestamp("ms", "UTC")),
        pa.field("must", pa.int32(), nullable=False),
        ("row", pa.struct([("x", pa.int32())])),
    ]
)
SCHEMA = Schema(ARROW_SCHEMA)
ROWS = {
    "b": [True, False, None, True, False, None],
    "i": [1, 2, None, -(2**31), 2**31 - 1, 0],
    "l": [1, 2, None, -(2**63), 2**63 - 1, 2**53 + 1],
    "f": [0.5, -0.0, None, NAN, float("inf"), 0.0],
    "d": [0.5, -0.0, None, NAN, float("-inf"), 0.1],
    "s": ["abc", "", None, "a%c", "ab\ncé", "c"],
    "x": [b"a", b"", None, b"\xff", b"\x00", b"ab"],
    "p": [decimal.Decimal(each) if each else None for each in ("1", "1.5", "", "-1", "9.99", "0")],
    "day": [date(2024, 1, 1), date(1, 1, 1), None, date(9999, 12, 31), date(1970, 1, 1), None],
    "at": [time(1), time(0), None, time(23, 59, 59, 999_000), time(1, 2, 3), None],
    "ntz": [datetime(2024, 1, 1, 0, 0, 0, 1), datetime(1, 1, 1), None] * 2,  # noqa: DTZ001
    "ns": [5, 1_000, None, -1, 2**62, 0],
    "ltz": [0, 1_000, None, -1, 2**40, 1_704_067_200_000],
    "must": [1, 2, 3, 4, 5, 6],
    "row": [{"x": 1}, {"x": None}, None, None, None, None],
}
TABLE = pa.table(
    [pa.array(ROWS[field.name], field.type) for field in ARROW_SCHEMA], schema=ARROW_SCHEMA
)
BATCH = TABLE.to_batches()[0]

SAME = [
    F("i") > 1,
    F("i") != 1,
    pc.scalar(1) < F("i"),
    pc.scalar(1) == F("i"),
    pc.scalar(1) >= F("i"),
    F("i") == pa.scalar(1, pa.int8()),
    F("i") == pa.scalar(None, pa.int32()),
    ~(F("i") == pa.scalar(None, pa.int32())),
    F("l") <= 2**53,
    F("b"),
    ~F("b"),
    F("b") == pa.scalar(False),
    F("b") & (F("i") > 0) | ~(F("l") < 5),
    pc.scalar(True) & F("b"),
    pc.scalar(False) | F("b"),
    pc.scalar(pa.scalar(None, pa.bool_())) | F("b"),
    F("s").is_null(),
    F("s").is_valid(),
    ~F("s").is_null(),
    F("d").is_null(nan_is_null=True),
    ~F("d").is_null(nan_is_null=True),
    F("i").is_null(nan_is_null=True),
    F("row").is_null(),
    pc.is_nan(F("d")),
    ~pc.is_nan(F("f")),
    F("d") == NAN,
    F("d") != NAN,
    ~(F("d") < NAN),
    ~(F("d") < 1.0),
    F("d") >= 0,
    F("f") == 0.5,
    F("f") <= 0.0,
    F("i").isin([1, 2]),
    ~F("i").isin([1, 2]),
    F("i").isin([1, None]),
    ~F("i").isin([1, None]),
    F("i").isin([]),
    ~F("i").isin([]),
    pc.is_in(F("i"), value_set=pa.array([1, None]), skip_nulls=True),
    ~pc.is_in(F("i"), value_set=pa.array([1, None]), skip_nulls=True),
    F("must").isin([1, 2]),
    ~F("must").isin([1, None]),
    F("d").isin([1.5, 0.5]),
    ~F("d").isin([1.5, 0.5]),
    F("s").isin(["abc", "c"]),
    ~F("s").isin(pa.array(["abc", None], pa.large_string())),
    pc.starts_with(F("s"), "a"),
    ~pc.starts_with(F("s"), "a"),
    pc.ends_with(F("s"), "c"),
    pc.match_substring(F("s"), "%"),
    pc.match_like(F("s"), "a%"),
    pc.match_like(F("s"), "%c"),
    pc.match_like(F("s"), "%b%"),
    pc.match_like(F("s"), "abc"),
    pc.match_like(F("s"), "a\\%c"),
    pc.match_like(F("s"), "%"),
    pc.match_like(F("s"), ""),
    F("s") < pa.scalar("b", pa.large_string()),
    F("x") > b"a",
    F("x") == pa.scalar(b"a", pa.binary(1)),
    F("p") == decimal.Decimal("1.5"),
    F("p") < decimal.Decimal("1.005"),
    F("p") >= pa.scalar(1, pa.int8()),
    F("day") > date(1970, 1, 1),
    F("day") <= pa.scalar(10**7, pa.date32()),
    F("at") >= pa.scalar(time(1), pa.time32("ms")),
    F("at") < pa.scalar(3_600_000_001, pa.time64("us")),
    F("ntz") == datetime(2024, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
    F("ntz") < pa.scalar(2, pa.timestamp("s")),
    F("ns") >= pa.scalar(5, pa.timestamp("ns")),
    F("ns").isin(pa.array([5, -1], pa.timestamp("ns"))),
    F("ltz") == datetime(2024, 1, 1, tzinfo=UTC),
    F("ltz") < pa.scalar(999_999, pa.timestamp("us", "UTC")),
    F("ltz") > pa.scalar(0, pa.timestamp("ms", "Europe/Berlin")),
]


@pytest.mark.parametrize("expression", SAME, ids=str)
def test_a_predicate_wants_the_rows_that_pyarrow_wants(expression):
    expected = TABLE.filter(expression).column("must").to_pylist()
    found = RowFilter(from_arrow(expression, SCHEMA), SCHEMA).matching(BATCH) + 1
    assert found.tolist() == expected
    turned = RowFilter(from_arrow(~expression, SCHEMA), SCHEMA).matching(BATCH) + 1
    assert turned.tolist() == TABLE.filter(~expression).column("must").to_pylist()
    assert split_arrow(expression, SCHEMA)[1] is None


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (F("i") == F("l"), "does not compare a column with a value"),
        (F("i") + 1 == 2, "calls add"),
        (F("i").cast("int64") == 1, "calls cast"),
        (pc.if_else(F("b"), F("i"), F("i")) == 1, "calls if_else"),
        (F("row", "x") == 1, "looks into nested columns"),
        (pc.field(1) == 1, "cannot take it apart"),
        (F("i"), "not one of truths"),
        (pc.scalar(1), "not a truth"),
        (pc.scalar(1) == pc.scalar(1), "does not compare"),
        ((F("i") == 1) == pc.scalar(True), "does not compare"),
        (F("i") == 1.5, "INT column with a value of Arrow's type double"),
        (F("i") == "1", "type string"),
        (F("p") < 1.5, "type double"),
        (F("day") < datetime(2024, 1, 1), "type timestamp"),  # noqa: DTZ001
        (F("ntz") < date(2024, 1, 1), "type date32"),
        (F("ntz") < datetime(2024, 1, 1, tzinfo=UTC), "tz=UTC"),
        (F("ltz") < datetime(2024, 1, 1), "type timestamp"),  # noqa: DTZ001
        (F("f") == 0.1, "not a number of 32 bits"),
        (F("d").isin([0.0, 1.0]), "tell 0.0 from -0.0"),
        (F("d").isin([NAN, 1.0]), "not the same any more|find a NaN"),
        (F("ntz") == pa.scalar(-(2**63), pa.timestamp("us")), "stands for none"),
        (F("at") == pa.scalar(1, pa.time64("ns")), "no such time of day"),
        (pc.starts_with(F("s"), "a", ignore_case=True), "asks a column for starts_with"),
        (pc.match_like(F("s"), "a_"), "patterns"),
        (pc.match_like(F("s"), "a%b"), "patterns"),
        (pc.match_substring_regex(F("s"), "a"), "calls match_substring_regex"),
        (pc.is_nan(F("i")), "asks a column for is_nan"),
        (pc.and_(F("b"), F("b")), "calls and"),
        (F("row") == pa.scalar({"x": 1}), "ROW"),
    ],
    ids=str,
)
def test_what_a_predicate_cannot_say_is_refused_and_left_over(expression, why):
    with pytest.raises(UnsupportedOperationError, match=why):
        from_arrow(expression, SCHEMA)
    predicate, rest = split_arrow((F("i") > 1) & expression & (F("l") < 9), SCHEMA)
    if predicate is None:
        assert rest.equals((F("i") > 1) & expression & (F("l") < 9))
    else:
        assert str(predicate) == "(i > 1 AND l < 9)"
        assert rest.equals(expression)


def test_a_value_that_its_column_cannot_hold_is_refused_and_left_over():
    with pytest.raises(InvalidValueError, match="'i' is INT"):
        from_arrow(F("i") < 2**40, SCHEMA)
    predicate, rest = split_arrow((F("i") < 2**40) & (F("b")), SCHEMA)
    assert (str(predicate), rest.equals(F("i") < 2**40)) == ("b = True", True)


def test_an_unknown_column_is_refused_for_every_caller():
    for convert in (from_arrow, split_arrow):
        with pytest.raises(InvalidSchemaError, match="nope"):
            convert(F("nope") == 1, SCHEMA)


def test_a_predicate_reads_as_it_would_be_written_by_hand():
    expression = (F("i") > 1) & (F("s").isin(["a", "b"]) | (F("must") == 3))
    assert from_arrow(expression, SCHEMA) == (col("i") > 1) & (
        (col("s").is_in(["a", "b"]) & col("s").is_not_null()) | (col("must") == 3)
    )
    assert from_arrow(F("must").isin([1, 2]), SCHEMA) == col("must").is_in([1, 2])


def test_names_of_any_kind_are_read():
    for name in ("a.b", "a b", "", "é", 'quo"te', "call", "new\nline"):
        schema = Schema(pa.schema([(name, pa.int32())])) if name else None
        if schema is not None:
            assert from_arrow(pc.field(name) == 1, schema) == col(name).equal(1)


def test_what_nests_too_deep_is_refused():
    chain = reduce(lambda a, b: a & b, [F("i") > each for each in range(DEPTH_MAX + 1)])
    with pytest.raises(UnsupportedOperationError, match="nests deeper"):
        from_arrow(chain, SCHEMA)
    assert split_arrow(chain, SCHEMA)[0] is None
    short = reduce(lambda a, b: a & b, [F("i") > each for each in range(50)])
    assert len(from_arrow(short, SCHEMA).children) == 50


@pytest.mark.parametrize("seed", range(5))
def test_random_expressions_want_the_rows_that_pyarrow_wants(seed):
    rng = Random(seed)
    names = [each for each in ARROW_SCHEMA.names if each not in {"row", "d", "f", "ntz"}]
    types = {name: SCHEMA.column(name).data_type for name in names}
    arrow_schema = pa.schema([ARROW_SCHEMA.field(name) for name in names])
    pools = {
        name: [random_value(rng, each, null_rate=0.2 * (name != "must")) for _ in range(5)]
        for name, each in types.items()
    }
    for name in ("ns", "ltz"):  # the first of all times is none to numpy, and refused
        pools[name] = [None if each == -(2**63) else each for each in pools[name]]
    rows = [[rng.choice(pools[name]) for name in names] for _ in range(30)]
    batch = batch_of(arrow_schema, list(types.values()), rows)
    table = pa.Table.from_batches([batch])

    def leaf():
        name = rng.choice(names)
        values = table.column(name).combine_chunks()
        first = values[rng.randrange(len(values))]
        if rng.random() < 0.3:
            some = [rng.randrange(len(values)) for _ in range(rng.randint(0, 4))]
            return F(name).isin(values.take(pa.array(some, pa.int32())))
        compare = rng.choice((pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater))
        return compare(F(name), pc.scalar(first))

    def made(depth):
        chance = rng.random()
        if not depth or chance < 0.3:
            return leaf()
        if chance < 0.5:
            return ~made(depth - 1)
        first, second = made(depth - 1), made(depth - 1)
        return first & second if chance < 0.75 else first | second

    for _ in range(50):
        expression = made(3)
        predicate = from_arrow(expression, SCHEMA)
        found = batch.take(pa.array(RowFilter(predicate, SCHEMA).matching(batch)))
        expected = table.filter(expression)
        assert pa.Table.from_batches([found]) == expected.combine_chunks(), expression
