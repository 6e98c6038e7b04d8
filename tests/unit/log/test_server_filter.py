# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from fluss.log.server_filter import pruning_predicate
from fluss.model.predicates.predicate import LeafFunction as Is, col
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import (
    BinaryType,
    BytesType,
    DecimalType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)
from fluss.model.types.factory import DataTypes as T
from tests.support.generators.random_filters import Filters, point_of
from tests.support.generators.random_values import LEAF_TYPES, random_value

SCHEMA = (
    Schema.builder()
    .column("i", T.int())
    .column("s", T.string())
    .column("d", T.double())
    .column("row", T.row([T.field("x", T.int())]))
    .column("small", T.decimal(10, 2))
    .column("large", T.decimal(38, 2))
    .column("day", T.date())
    .column("at", T.time(3))
    .column("ntz", T.timestamp(9))
    .column("ltz", T.timestamp_ltz(0))
    .column("flag", T.boolean())
    .column("bytes", T.binary(2))
    .column("char", T.char(3))
    .build()
)


def literal_of(predicate):
    return pruning_predicate(predicate, SCHEMA).leaf.literals[0]


def test_a_condition_names_the_id_of_its_field_and_the_number_of_its_function():
    made = pruning_predicate(col("small") >= 1, SCHEMA)
    assert made.type == 0
    assert made.leaf.function == 5
    # The ROW before it has taken an id for its field, too.
    assert made.leaf.field_id == SCHEMA.column("small").column_id == 5


@pytest.mark.parametrize(
    ("name", "value", "literal_type", "field", "sent"),
    [
        ("flag", True, 0, "boolean_value", True),
        ("i", -5, 3, "int_value", -5),
        ("d", 1.5, 6, "double_value", 1.5),
        ("char", "ab", 7, "string_value", "ab"),
        ("s", "é", 8, "string_value", "é"),
        ("small", Decimal("-1.5"), 9, "decimal_value", -150),
        ("large", Decimal(-1), 9, "decimal_bytes", (-100).to_bytes(1, "big", signed=True)),
        ("large", Decimal("1.28"), 9, "decimal_bytes", b"\x00\x80"),
        ("day", date(1969, 12, 31), 10, "bigint_value", -1),
        ("at", time(0, 0, 1), 11, "int_value", 1000),
        (
            "ltz",
            datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
            13,
            "timestamp_millis_value",
            -1000,
        ),
        ("bytes", b"ab", 14, "binary_value", b"ab"),
    ],
)
def test_every_type_has_its_literal(name, value, literal_type, field, sent):
    literal = literal_of(col(name) == value)
    assert literal.literal_type == literal_type
    assert not literal.is_null
    assert getattr(literal, field) == sent


def test_a_timestamp_is_milliseconds_and_nanoseconds_of_one():
    literal = literal_of(col("ntz") > datetime(1969, 12, 31, 23, 59, 59, 999_999))
    assert literal.timestamp_millis_value == -1
    assert literal.timestamp_nano_of_millis_value == 999_000


@pytest.mark.parametrize(
    "predicate",
    [
        col("i") != 1,
        col("i").not_in([1]),
        col("s").contains("x"),
        col("s").ends_with("x"),
        col("row").is_null(),
        col("i") == None,  # noqa: E711 - that is the point
        col("i").not_in([1, None]),
        col("i").is_in([]),
        ~(col("d") > 1.0),
        col("d") >= 0.0,
        col("d") == -0.0,
        col("d").equal(float("nan")),
    ],
)
def test_what_does_not_prune_or_compares_otherwise_there_is_not_sent(predicate):
    assert pruning_predicate(predicate, SCHEMA) is None
    # It is left out of an AND, and makes an OR useless.
    kept = pruning_predicate(predicate & (col("i") > 1), SCHEMA)
    assert [each.leaf.field_id for each in kept.compound.children] == [0]
    assert pruning_predicate(predicate | (col("i") > 1), SCHEMA) is None


def test_null_in_a_list_is_never_found_so_that_it_is_not_sent():
    made = pruning_predicate(col("i").is_in([1, None]), SCHEMA)
    assert [each.int_value for each in made.leaf.literals] == [1]


def test_a_negation_is_sent_as_what_is_left_of_it():
    made = pruning_predicate(~((col("i") > 1) | col("s").is_null()), SCHEMA)
    assert (made.type, made.compound.function) == (1, 0)
    assert [each.leaf.function for each in made.compound.children] == [3, 7]


@pytest.mark.parametrize(
    ("predicate", "function"),
    [
        (col("ltz") < datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 3),
        (col("ltz") <= datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 3),
        (col("ltz") > datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 4),
        (col("ltz") >= datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 4),
    ],
)
def test_a_moment_finer_than_its_column_prunes_no_more_than_it_may(predicate, function):
    leaf = pruning_predicate(predicate, SCHEMA).leaf
    assert leaf.function == function
    assert leaf.literals[0].timestamp_millis_value == 1_704_067_200_000


def test_conditions_that_are_joined_are_sent_joined():
    made = pruning_predicate((col("i").is_in([1, 2])) | (col("s").starts_with("x")), SCHEMA)
    assert made.type == 1
    assert made.compound.function == 1
    first, second = made.compound.children
    assert [each.int_value for each in first.leaf.literals] == [1, 2]
    assert (second.leaf.function, second.leaf.literals[0].string_value) == (8, "x")
    assert pruning_predicate(col("i").is_null(), SCHEMA).leaf.function == 6


@pytest.mark.parametrize("prefix", ["\ue000", "a\uffff", "\U0001f600"])
def test_prefixes_that_java_orders_otherwise_are_not_sent(prefix):
    assert pruning_predicate(col("s").starts_with(prefix), SCHEMA) is None


def java_order(point):
    """What Java compares a value by: doubles by their total order, the rest as it is."""
    if isinstance(point, float):
        return (math.isnan(point), 0.0 if math.isnan(point) else point, math.copysign(1, point))
    return point


class Batch:
    """What a server knows of a batch: rows, NULLs, and the least and greatest of each column."""

    def __init__(self, schema, rows):
        self.row_count = len(rows)
        self.columns = {}
        for column in schema.columns:
            points = [stored_point(row[column.name], column.data_type) for row in rows]
            known = sorted((each for each in points if each is not None), key=java_order)
            null_count = len(points) - len(known)
            self.columns[column.column_id] = (column.data_type, null_count, known[:1], known[-1:])

    def may_fulfil(self, sent):
        """Java's `Predicate.test` over statistics."""
        if sent.type == 1:
            found = [self.may_fulfil(each) for each in sent.compound.children]
            return all(found) if sent.compound.function == 0 else any(found)
        data_type, null_count, low, high = self.columns[sent.leaf.field_id]
        function = Is(sent.leaf.function)
        if function in {Is.IS_NULL, Is.IS_NOT_NULL}:
            return null_count > 0 if function is Is.IS_NULL else null_count < self.row_count
        if not low:
            return False
        if function is Is.STARTS_WITH:
            (prefix,) = (each.string_value.encode("utf-16-be") for each in sent.leaf.literals)
            least, greatest = (each[0].decode().encode("utf-16-be") for each in (low, high))
            return (least.startswith(prefix) or least <= prefix) and (
                greatest.startswith(prefix) or greatest >= prefix
            )
        least, greatest = java_order(low[0]), java_order(high[0])
        points = [java_order(sent_point(each, data_type)) for each in sent.leaf.literals]
        return any(
            {
                Is.EQUAL: least <= point <= greatest,
                Is.IN: least <= point <= greatest,
                Is.LESS_THAN: least < point,
                Is.LESS_OR_EQUAL: least <= point,
                Is.GREATER_THAN: greatest > point,
                Is.GREATER_OR_EQUAL: greatest >= point,
            }[function]
            for point in points
        )


def stored_point(physical, data_type):
    point = point_of(physical, data_type)
    if isinstance(data_type, TimeType) and point is not None:
        return Fraction(point * 1000 // 1, 1000)  # rows hold milliseconds
    return point


def sent_point(literal, data_type):
    value = getattr(literal, literal.ListFields()[-1][0].name)
    match data_type:
        case DecimalType():
            if isinstance(value, bytes):
                value = int.from_bytes(value, "big", signed=True)
            return Fraction(value, 10**data_type.scale)
        case TimeType():
            return Fraction(value, 1000)
        case TimestampType() | TimestampLtzType():
            millis, nanos = literal.timestamp_millis_value, literal.timestamp_nano_of_millis_value
            return Fraction(millis, 1000) + Fraction(nanos, 1_000_000_000)
        case _:
            return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("seed", range(5))
def test_no_server_leaves_out_a_batch_with_a_row_of_random_filters(seed):
    rng = Random(seed)
    kinds = [each for each in LEAF_TYPES if not isinstance(each, BinaryType | BytesType)]
    left_out = 0
    for _ in range(30):
        types = {f"c{place}": rng.choice(kinds) for place in range(3)}
        schema = Schema([Column(name, each) for name, each in types.items()])
        pools = {name: [random_value(rng, each) for _ in range(6)] for name, each in types.items()}
        filters = Filters(rng, types, pools)
        batches = [
            [{name: rng.choice(pools[name]) for name in types} for _ in range(rng.randint(1, 3))]
            for _ in range(5)
        ]
        for _ in range(10):
            predicate = filters.make()
            sent = pruning_predicate(predicate, schema)
            for rows in batches if sent is not None else ():
                may_fulfil = Batch(schema, rows).may_fulfil(sent)
                left_out += not may_fulfil
                fulfils = any(filters.truth(predicate, row) is True for row in rows)
                assert may_fulfil or not fulfils, predicate
    assert left_out > 50
