# ruff: noqa: DTZ001 - TIMESTAMP has no zone

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from fluss.client.pruning import pruning_predicate
from fluss.model.data_types import DataTypes as T
from fluss.model.predicate import col
from fluss.model.schema import Schema

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


def test_a_timestamp_is_milliseconds_and_the_nanoseconds_behind_them():
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
