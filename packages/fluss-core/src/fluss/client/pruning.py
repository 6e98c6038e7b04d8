"""What of a predicate servers are told, so that they may leave out batches that cannot fulfil it.

Servers of the 1.0 line compare a predicate with the statistics that batches carry, and send what
may hold rows that fulfil it. So what they are told may be weaker than what is wanted, and never
stronger: parts they cannot use are left out of an AND, and make an OR useless. Which rows are
wanted in the end is decided by `client.filtering`.
"""

from __future__ import annotations

import math
from typing import Any, Final

from fluss.model.predicate import Compound, CompoundFunction, Leaf, LeafFunction, Predicate
from fluss.model.schema import Schema
from fluss.model.types import (
    PRECISION_MAX_COMPACT_DECIMAL,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.model.values import to_physical
from fluss.wire import messages

LEAF: Final = 0
COMPOUND: Final = 1

# The others never leave out a batch, so that servers need not be told.
_PRUNING: Final = frozenset(
    {
        LeafFunction.EQUAL,
        LeafFunction.LESS_THAN,
        LeafFunction.LESS_OR_EQUAL,
        LeafFunction.GREATER_THAN,
        LeafFunction.GREATER_OR_EQUAL,
        LeafFunction.IS_NULL,
        LeafFunction.IS_NOT_NULL,
        LeafFunction.STARTS_WITH,
        LeafFunction.IN,
    }
)
_LITERAL_TYPES: Final[dict[type[DataType], int]] = {
    BooleanType: 0,
    TinyIntType: 1,
    SmallIntType: 2,
    IntType: 3,
    BigIntType: 4,
    FloatType: 5,
    DoubleType: 6,
    CharType: 7,
    StringType: 8,
    DecimalType: 9,
    DateType: 10,
    TimeType: 11,
    TimestampType: 12,
    TimestampLtzType: 13,
    BinaryType: 14,
    BytesType: 15,
}
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def pruning_predicate(predicate: Predicate, schema: Schema) -> messages.PbPredicate | None:
    """What servers are told of a predicate that fits the schema; None where nothing helps."""
    if isinstance(predicate, Leaf):
        return _leaf(predicate, schema)
    if not isinstance(predicate, Compound):
        return None
    parts = [pruning_predicate(child, schema) for child in predicate.children]
    usable = [each for each in parts if each is not None]
    if not usable or (predicate.function is CompoundFunction.OR and len(usable) < len(parts)):
        return None
    made = messages.PbPredicate(type=COMPOUND)
    made.compound.function = int(predicate.function)
    made.compound.children.extend(usable)
    return made


def _leaf(leaf: Leaf, schema: Schema) -> messages.PbPredicate | None:
    column = schema.column(leaf.column)
    data_type = column.data_type
    if (
        leaf.function not in _PRUNING
        or column.column_id is None
        or type(data_type) not in _LITERAL_TYPES
    ):
        return None
    made = messages.PbPredicate(type=LEAF)
    made.leaf.function = int(leaf.function)
    made.leaf.field_id = column.column_id
    if leaf.function is LeafFunction.STARTS_WITH:
        (text,) = leaf.literals
        made.leaf.literals.add(
            literal_type=_LITERAL_TYPES[StringType], is_null=False
        ).string_value = text
        return made
    convert = to_physical(data_type.as_nullable(), leaf.column)
    for each in leaf.literals:
        value = convert(each)
        if value is None or _compares_otherwise(value):
            return None
        made.leaf.literals.append(_literal(value, data_type))
    return made if leaf.literals or not _needs_literals(leaf.function) else None


def _needs_literals(function: LeafFunction) -> bool:
    return function not in {LeafFunction.IS_NULL, LeafFunction.IS_NOT_NULL}


def _compares_otherwise(value: object) -> bool:
    """Whether Java's order differs from IEEE's here: it has -0.0 before 0.0, and NaN above all."""
    return isinstance(value, float) and (math.isnan(value) or value == 0)


def _literal(value: Any, data_type: DataType) -> messages.PbLiteralValue:
    made = messages.PbLiteralValue(literal_type=_LITERAL_TYPES[type(data_type)], is_null=False)
    match data_type:
        case BooleanType():
            made.boolean_value = value
        case TinyIntType() | SmallIntType() | IntType():
            made.int_value = value
        case TimeType():
            made.int_value = value * 1_000 // _PER_SECOND[data_type.unit]
        case BigIntType() | DateType():
            made.bigint_value = value
        case FloatType():
            made.float_value = value
        case DoubleType():
            made.double_value = value
        case CharType() | StringType():
            made.string_value = value
        case BinaryType() | BytesType():
            made.binary_value = value
        case DecimalType() if data_type.precision <= PRECISION_MAX_COMPACT_DECIMAL:
            made.decimal_value = value
        case DecimalType():
            made.decimal_bytes = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        case TimestampType() | TimestampLtzType():
            nanos = value * (1_000_000_000 // _PER_SECOND[data_type.unit])
            made.timestamp_millis_value, rest = divmod(nanos, 1_000_000)
            made.timestamp_nano_of_millis_value = rest
        case _:
            raise AssertionError(f"{data_type} has no literals")
    return made
