"""Makes the predicate that is sent to servers, by which they leave out batches without matches.

Servers of the 1.0 line compare a predicate with the statistics of batches, and send those that may
hold matching rows. So the predicate that is sent may be weaker than the filter, and never stronger:
parts that servers cannot use are left out of an AND, and make an OR useless.
`records.filter.row_filter` decides in the end which rows match.
"""

from __future__ import annotations

from typing import Any, Final

from fluss.model.predicates import binding
from fluss.model.predicates.predicate import CompoundFunction, LeafFunction, Predicate
from fluss.model.schema.schema import Schema
from fluss.model.types import data_type as t
from fluss.wire import messages

LEAF: Final = 0
COMPOUND: Final = 1

# Other functions never rule out a batch, so they are not sent.
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
_AFTER_SURROGATES: Final = "\ue000"


def pruning_predicate(predicate: Predicate, schema: Schema) -> messages.PbPredicate | None:
    """Make the predicate for servers; None where no part of it can rule out a batch."""
    return _sent(binding.bind(predicate, binding.column_types(schema)), schema)


def _sent(bound: binding.BoundPredicate, schema: Schema) -> messages.PbPredicate | None:
    match bound:
        case binding.ColumnTest():
            return _leaf(bound, schema)
        case binding.Joined():
            return _compound(bound, schema)
        case binding.Truth():
            return None


def _compound(bound: binding.Joined, schema: Schema) -> messages.PbPredicate | None:
    parts = [_sent(child, schema) for child in bound.children]
    usable = [each for each in parts if each is not None]
    if not usable or (bound.function is CompoundFunction.OR and len(usable) < len(parts)):
        return None
    made = messages.PbPredicate(type=COMPOUND)
    made.compound.function = int(bound.function)
    made.compound.children.extend(usable)
    return made


def _leaf(test: binding.ColumnTest, schema: Schema) -> messages.PbPredicate | None:
    column_id, data_type = schema.column(test.column).column_id, test.data_type
    if (
        test.function not in _PRUNING
        or test.is_negated
        or column_id is None
        or data_type.literal is None
        or any(_compares_otherwise(each, test) for each in test.values)
    ):
        return None
    made = messages.PbPredicate(type=LEAF)
    made.leaf.function = int(test.function)
    made.leaf.field_id = column_id
    literal_type = t.StringType() if test.function is LeafFunction.STARTS_WITH else data_type
    made.leaf.literals.extend(_literal(each, literal_type) for each in test.values)
    return made


def _compares_otherwise(value: object, test: binding.ColumnTest) -> bool:
    """Whether servers might leave out a batch with a matching row."""
    if isinstance(value, float):
        return value == 0  # Java has -0.0 before 0.0
    if isinstance(test.data_type, t.TimeType):
        return (
            t.UNITS_PER_SECOND[test.data_type.unit] > t.UNITS_PER_SECOND["ms"]
        )  # statistics have milliseconds
    if test.function is LeafFunction.STARTS_WITH:
        # Texts are ordered by their bytes, but this test by Java's characters of 16 bits, of which
        # two encode the characters that come after all others.
        return isinstance(value, str) and any(each >= _AFTER_SURROGATES for each in value)
    return False


def _literal(value: Any, data_type: t.DataType) -> messages.PbLiteralValue:
    if data_type.literal is None:
        raise AssertionError(f"{data_type} has no literals")
    number, field = data_type.literal
    made = messages.PbLiteralValue(literal_type=number, is_null=False)
    match data_type:
        case t.TimeType():
            value = value * 1_000 // t.UNITS_PER_SECOND[data_type.unit]
        case t.DecimalType() if not data_type.is_compact:
            field = "decimal_bytes"
            value = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        case t.TimestampFamily():
            nanos = value * (1_000_000_000 // t.UNITS_PER_SECOND[data_type.unit])
            value, made.timestamp_nano_of_millis_value = divmod(nanos, 1_000_000)
        case _:
            pass  # the physical value
    setattr(made, field, value)
    return made
