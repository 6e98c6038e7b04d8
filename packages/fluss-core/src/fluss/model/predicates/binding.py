"""Binds predicates to columns: values become physical values, and NOT moves to single tests.

Binding looks columns up, turns values into physical values of their columns' types, and refuses
values that do not fit. The result has one meaning for the code that evaluates it
(`records.filter.row_filter`), prune by it (`log.server_filter`) and plan with it
(`scan.plan_filters`):

- Negations stand in front of single tests only, and only where no other test is equivalent.
- Only *true* matters of the three truth values. No compound is negated any more, so false and
  unknown have the same effect, and comparisons with NULL are false.
- Tests have no NULL and no NaN among their values: NULL compares to nothing; a NaN equals nothing,
  itself included, and is neither less nor greater than anything (IEEE 754).
- A time or a decimal that is finer than its column is compared exactly, though it could never
  be stored: `ts < 12:00:00.5` in whole seconds is `ts <= 12:00:00`, and `id < 1.5` is `id <= 1`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.hints import Hint, HintKey
from fluss.model.predicates.predicate import (
    ORDER,
    PRESENCE,
    SEARCHES,
    Compound,
    CompoundFunction,
    Constant,
    Leaf,
    LeafFunction,
    Not,
    Predicate,
)
from fluss.model.schema.schema import Schema
from fluss.model.types import data_type as t
from fluss.model.values.conversion import to_physical
from fluss.model.values.target import Target

DEPTH_MAX: Final = 100

TypeOf = Callable[[str], t.DataType]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTest:
    """A test of one column.

    Attributes:
        column: Its name.
        data_type: Its type.
        function: The function of the test.
        values: Physical values to compare with, none of them NULL or NaN.
        is_negated: Whether rows match for which the test is false.
    """

    column: str
    data_type: t.DataType
    function: LeafFunction
    values: tuple[Any, ...] = ()
    is_negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Conditions of which all, or one, must be true."""

    function: CompoundFunction
    children: tuple[BoundPredicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The same for every row; what is unknown counts as false."""

    value: bool


BoundPredicate = ColumnTest | Joined | Truth

ALL: Final = Truth(value=True)
NONE: Final = Truth(value=False)


def column_types(schema: Schema, metadata: Mapping[str, t.DataType] | None = None) -> TypeOf:
    """Return a function with the types of a table's columns and of metadata columns, for `bind`.

    The table's own columns come first where a name is both.
    """
    further = metadata or {}
    own = frozenset(schema.column_names)

    def type_of(name: str) -> t.DataType:
        if name in further and name not in own:
            return further[name]
        return schema.column(name).data_type

    return type_of


def bind(predicate: Predicate, type_of: TypeOf) -> BoundPredicate:
    """Bind a predicate to its columns.

    Args:
        predicate: The predicate.
        type_of: Returns the type of a column, or raises for an unknown one.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        InvalidValueError: A value is not one of its column's type.
        UnsupportedOperationError: The function does not apply to the column's type.
    """
    return _bind(predicate, type_of, is_negated=False, depth=0)


def _bind(predicate: Predicate, type_of: TypeOf, *, is_negated: bool, depth: int) -> BoundPredicate:
    if depth > DEPTH_MAX:
        raise InvalidValueError(
            f"The filter nests conditions more than {DEPTH_MAX} deep.",
            hint="Join many conditions in one chain, and many values of one column with is_in().",
        )
    match predicate:
        case Leaf():
            return _bind_leaf(predicate, type_of(predicate.column), is_negated=is_negated)
        case Not(child=child):
            return _bind(child, type_of, is_negated=not is_negated, depth=depth + 1)
        case Constant(value=value):
            return ALL if value is not None and value is not is_negated else NONE
        case Compound(function=function, children=children):
            bound = tuple(
                _bind(each, type_of, is_negated=is_negated, depth=depth + 1) for each in children
            )
            joined = _OTHER_JOIN[function] if is_negated else function
            return Joined(function=joined, children=bound)
        case _:
            raise InvalidValueError(
                f"A filter is a predicate, not {predicate!r}.",
                hint=Hint(HintKey.WRITE_PREDICATE),
            )


_OTHER_JOIN: Final = {
    CompoundFunction.AND: CompoundFunction.OR,
    CompoundFunction.OR: CompoundFunction.AND,
}

# --- one condition --------------------------------------------------------------------------------

_OPPOSITES: Final = (
    (LeafFunction.EQUAL, LeafFunction.NOT_EQUAL),
    (LeafFunction.LESS_THAN, LeafFunction.GREATER_OR_EQUAL),
    (LeafFunction.LESS_OR_EQUAL, LeafFunction.GREATER_THAN),
    (LeafFunction.IN, LeafFunction.NOT_IN),
    (LeafFunction.IS_NULL, LeafFunction.IS_NOT_NULL),
)
# The test that is true where this one is false; where it is unknown, so is the other.
_OPPOSITE: Final = dict((*_OPPOSITES, *((other, one) for one, other in _OPPOSITES)))


def _bind_leaf(leaf: Leaf, data_type: t.DataType, *, is_negated: bool) -> BoundPredicate:
    function = leaf.function
    if function in PRESENCE:
        return _test(leaf, data_type, _OPPOSITE[function] if is_negated else function)
    if isinstance(data_type, t.NestedType):
        raise _not_asked(leaf, data_type, "only whether it is NULL")
    if function in SEARCHES:
        if not isinstance(data_type, t.TextFamily):
            raise _not_asked(leaf, data_type, "and only texts are searched")
        return _test(leaf, data_type, function, leaf.literals, is_negated=is_negated)
    places = [_place(each, data_type, leaf.column) for each in leaf.literals]
    if function in ORDER:
        return _bind_order(leaf, data_type, places[0], is_negated=is_negated)
    function = _OPPOSITE[function] if is_negated else function
    return _bind_equality(leaf, data_type, function, places)


def _bind_order(
    leaf: Leaf, data_type: t.DataType, place: _Place, *, is_negated: bool
) -> BoundPredicate:
    value, is_exact = place
    if value is None:
        return NONE
    if _is_nan(value):
        # The comparison is false, not unknown, so that its negation is true.
        return _present(leaf, data_type) if is_negated else NONE
    if isinstance(data_type, t.FloatFamily):
        # NOT (x < 1) is true of a NaN, and x >= 1 is not.
        return _test(leaf, data_type, leaf.function, (value,), is_negated=is_negated)
    function = _OPPOSITE[leaf.function] if is_negated else leaf.function
    if not is_exact:
        # The literal lies after `value` and before the next value.
        is_below = function in {LeafFunction.LESS_THAN, LeafFunction.LESS_OR_EQUAL}
        function = LeafFunction.LESS_OR_EQUAL if is_below else LeafFunction.GREATER_THAN
    return _test(leaf, data_type, function, (value,))


def _bind_equality(
    leaf: Leaf, data_type: t.DataType, function: LeafFunction, places: list[_Place]
) -> BoundPredicate:
    has_null = any(value is None for value, _ in places)
    known = tuple(
        dict.fromkeys(
            value
            for value, is_exact in places
            if value is not None and is_exact and not _is_nan(value)
        )
    )
    if function in {LeafFunction.EQUAL, LeafFunction.IN}:
        return _test(leaf, data_type, function, known) if known else NONE
    if has_null:
        return NONE
    if known:
        return _test(leaf, data_type, function, known)
    # NULL is in no list that is empty, but unknown in one that held a value.
    return _present(leaf, data_type) if places else ALL


def _test(
    leaf: Leaf,
    data_type: t.DataType,
    function: LeafFunction,
    values: tuple[Any, ...] = (),
    *,
    is_negated: bool = False,
) -> ColumnTest:
    return ColumnTest(
        column=leaf.column,
        data_type=data_type,
        function=function,
        values=values,
        is_negated=is_negated,
    )


def _present(leaf: Leaf, data_type: t.DataType) -> ColumnTest:
    return _test(leaf, data_type, LeafFunction.IS_NOT_NULL)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _not_asked(leaf: Leaf, data_type: t.DataType, why: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"The column {leaf.column!r} is {data_type}, {why}; "
        f"the condition is {leaf.function.name.lower()}.",
        column=leaf.column,
    )


# --- values, also finer than their columns -------------------------------------------------------


class _Place(NamedTuple):
    """A physical value, and whether it equals the literal or is the last one before it."""

    value: Any
    is_exact: bool = True


def _place(value: Any, data_type: t.DataType, column: str) -> _Place:
    nullable = data_type.as_nullable()
    if isinstance(nullable, t.FloatFamily) and isinstance(value, Decimal):
        # A column stores the nearest number; comparing with that would change the condition.
        raise Target(nullable, column).refuse(value, hint="write float(value)")
    for finer, steps in _finer_types(value, nullable):
        try:
            fine = to_physical(finer, column)(value)
        except InvalidValueError:
            continue
        if fine is None:
            return _Place(None)
        whole, rest = divmod(fine, steps)
        if isinstance(nullable, t.IntegerFamily):
            return _Place(to_physical(nullable, column)(whole), not rest)
        if not isinstance(nullable, t.DecimalType) or abs(whole) < 10**nullable.precision:
            return _Place(whole, not rest)
    return _Place(to_physical(nullable, column)(value))


def _finer_types(value: Any, data_type: t.DataType) -> Iterator[tuple[t.DataType, int]]:
    """Yield finer types that may hold the value, and their steps in one of the column's."""
    match data_type:
        case t.TimeType() | t.TimestampFamily():
            per_second = t.UNITS_PER_SECOND[data_type.unit]
            for precision, steps in ((6, 1_000_000), (9, 1_000_000_000)):
                if steps > per_second:
                    yield type(data_type)(precision), steps // per_second
        case t.DecimalType() | t.IntegerFamily() if (
            isinstance(value, Decimal) and value.is_finite()
        ):
            own_scale = data_type.scale if isinstance(data_type, t.DecimalType) else 0
            exponent = value.as_tuple().exponent
            scale = -exponent if isinstance(exponent, int) else 0
            if own_scale < scale <= t.PRECISION_MAX_DECIMAL:
                yield t.DecimalType(t.PRECISION_MAX_DECIMAL, scale), 10 ** (scale - own_scale)
        case _:
            return


# --- simplification -------------------------------------------------------------------------------


def simplified(bound: BoundPredicate) -> BoundPredicate:
    """Return the same without constant parts."""
    if not isinstance(bound, Joined):
        return bound
    decisive, idle = (NONE, ALL) if bound.function is CompoundFunction.AND else (ALL, NONE)
    children = tuple(each for each in map(simplified, bound.children) if each != idle)
    if decisive in children:
        return decisive
    if len(children) > 1:
        return Joined(function=bound.function, children=children)
    return children[0] if children else idle


def weakened(bound: BoundPredicate, columns: Collection[str]) -> BoundPredicate:
    """Return a condition on these columns alone that is true wherever the whole can be true."""
    match bound:
        case ColumnTest():
            return bound if bound.column in columns else ALL
        case Joined():
            children = tuple(weakened(each, columns) for each in bound.children)
            return simplified(Joined(function=bound.function, children=children))
        case Truth():
            return bound


def columns_of(bound: BoundPredicate) -> frozenset[str]:
    """Return the columns that are read."""
    match bound:
        case ColumnTest():
            return frozenset((bound.column,))
        case Joined():
            return frozenset[str]().union(*map(columns_of, bound.children))
        case Truth():
            return frozenset()


def every_zero(values: Collection[Any], data_type: t.DataType) -> tuple[Any, ...]:
    """Return the values, with both zeros where one is among them.

    0.0 and -0.0 are equal but have different bytes, so hashes of both are needed.
    """
    if isinstance(data_type, t.FloatFamily) and 0.0 in values:
        return (*(each for each in values if each), 0.0, -0.0)
    return tuple(values)
