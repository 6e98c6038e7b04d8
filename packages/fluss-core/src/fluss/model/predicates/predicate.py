"""Conditions on rows: `col("id") > 5`, joined by `&` and `|`, negated by `~`.

Conditions are three-valued as in SQL: a comparison with NULL is neither true nor false, and a row
matches only where the whole is true. Columns and values are checked against a schema in
`model.predicates.binding`; rows are filtered in `records.filter.row_filter`, and plans use
conditions in `scan.plan_filters`. Engines' own conditions are converted to these; pyarrow's in
`records.filter.arrow_expressions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NoReturn, Self

from fluss.errors import InvalidValueError


class LeafFunction(IntEnum):
    """The functions of a condition on one column; the numbers are those of the wire.

    Attributes:
        sign: How a condition is shown.
        arrow: The name of the function in pyarrow; empty where there is none.
    """

    sign: str
    arrow: str

    def __new__(cls, number: int, sign: str = "", arrow: str = "") -> Self:
        """Make a member from its line."""
        function = int.__new__(cls, number)
        function._value_ = number
        function.sign = sign
        function.arrow = arrow
        return function

    EQUAL = 0, "=", "equal"
    NOT_EQUAL = 1, "<>", "not_equal"
    LESS_THAN = 2, "<", "less"
    LESS_OR_EQUAL = 3, "<=", "less_equal"
    GREATER_THAN = 4, ">", "greater"
    GREATER_OR_EQUAL = 5, ">=", "greater_equal"
    IS_NULL = 6, "IS NULL", "is_null"
    IS_NOT_NULL = 7, "IS NOT NULL", "is_valid"
    STARTS_WITH = 8, "STARTS WITH", "starts_with"
    CONTAINS = 9, "CONTAINS", "match_substring"
    ENDS_WITH = 10, "ENDS WITH", "ends_with"
    IN = 11, "IN", "is_in"
    NOT_IN = 12, "NOT IN"


ORDER: Final = frozenset(
    each for each in LeafFunction if LeafFunction.LESS_THAN <= each <= LeafFunction.GREATER_OR_EQUAL
)
COMPARISONS: Final = ORDER | {LeafFunction.EQUAL, LeafFunction.NOT_EQUAL}
PRESENCE: Final = frozenset({LeafFunction.IS_NULL, LeafFunction.IS_NOT_NULL})
SEARCHES: Final = frozenset(
    {LeafFunction.STARTS_WITH, LeafFunction.CONTAINS, LeafFunction.ENDS_WITH}
)


class CompoundFunction(IntEnum):
    """How conditions are joined; the numbers are those of the wire."""

    AND = 0
    OR = 1


class Predicate:
    """A condition on a row; made by comparing a column, joined by `&` and `|`, negated by `~`."""

    __slots__ = ()

    def and_(self, other: Predicate) -> Predicate:
        """True where both are."""
        return _joined(CompoundFunction.AND, self, _predicate(other))

    def or_(self, other: Predicate) -> Predicate:
        """True where one of them is."""
        return _joined(CompoundFunction.OR, self, _predicate(other))

    def not_(self) -> Predicate:
        """True where this is false; where it is unknown because of a NULL, so is the negation."""
        return Not(child=self)

    def __and__(self, other: object, /) -> Predicate:
        return self.and_(other) if isinstance(other, Predicate) else NotImplemented

    def __or__(self, other: object, /) -> Predicate:
        return self.or_(other) if isinstance(other, Predicate) else NotImplemented

    def __rand__(self, other: object, /) -> Predicate:
        return other.and_(self) if isinstance(other, Predicate) else NotImplemented

    def __ror__(self, other: object, /) -> Predicate:
        return other.or_(self) if isinstance(other, Predicate) else NotImplemented

    def __invert__(self) -> Predicate:
        return self.not_()

    def __repr__(self) -> str:
        return f"Predicate({self})"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "A Predicate is neither true nor false before it meets a row; join predicates with "
            "& and |, not with 'and' and 'or', negate them with ~, not with 'not', "
            "and write (a < x) & (x < b) instead of a < x < b."
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Leaf(Predicate):
    """A condition on one column."""

    column: str
    function: LeafFunction
    literals: tuple[Any, ...] = ()

    def __str__(self) -> str:
        sign = self.function.sign
        if self.function in PRESENCE:
            return f"{self.column} {sign}"
        if self.function in {LeafFunction.IN, LeafFunction.NOT_IN}:
            return f"{self.column} {sign} ({', '.join(map(repr, self.literals))})"
        return f"{self.column} {sign} {self.literals[0]!r}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Compound(Predicate):
    """Conditions joined."""

    function: CompoundFunction
    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return "(" + f" {self.function.name} ".join(map(str, self.children)) + ")"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Not(Predicate):
    """A negated condition: true where it is false, unknown where it is unknown."""

    child: Predicate

    def not_(self) -> Predicate:
        return self.child

    def __str__(self) -> str:
        return f"NOT {self.child}" if isinstance(self.child, Compound) else f"NOT ({self.child})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Constant(Predicate):
    """The same for every row: true, false, or with None unknown, as a comparison with NULL is."""

    value: bool | None

    def __str__(self) -> str:
        return "NULL" if self.value is None else str(self.value).upper()


class ColumnRef:
    """A column by its name; comparing it with a value makes a `Predicate`."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment] # it compares to predicates, so it is no key

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a column is referred to by its name, not by {name!r}")
        self._name = name

    @property
    def name(self) -> str:
        """The name of the column."""
        return self._name

    def equal(self, value: Any) -> Predicate:
        """Return whether the column has this value."""
        return self._compare(LeafFunction.EQUAL, value)

    def not_equal(self, value: Any) -> Predicate:
        """Return whether it has another value."""
        return self._compare(LeafFunction.NOT_EQUAL, value)

    def less_than(self, value: Any) -> Predicate:
        """Return whether its value comes before this one."""
        return self._compare(LeafFunction.LESS_THAN, value)

    def less_or_equal(self, value: Any) -> Predicate:
        """Return whether its value is this one or comes before it."""
        return self._compare(LeafFunction.LESS_OR_EQUAL, value)

    def greater_than(self, value: Any) -> Predicate:
        """Return whether its value comes after this one."""
        return self._compare(LeafFunction.GREATER_THAN, value)

    def greater_or_equal(self, value: Any) -> Predicate:
        """Return whether its value is this one or comes after it."""
        return self._compare(LeafFunction.GREATER_OR_EQUAL, value)

    def is_null(self) -> Predicate:
        """Return whether it has no value."""
        return Leaf(column=self._name, function=LeafFunction.IS_NULL)

    def is_not_null(self) -> Predicate:
        """Return whether it has a value."""
        return Leaf(column=self._name, function=LeafFunction.IS_NOT_NULL)

    def starts_with(self, prefix: str) -> Predicate:
        """Return whether its text starts with this one."""
        return self._search(LeafFunction.STARTS_WITH, prefix)

    def contains(self, infix: str) -> Predicate:
        """Return whether its text has this one in it."""
        return self._search(LeafFunction.CONTAINS, infix)

    def ends_with(self, suffix: str) -> Predicate:
        """Return whether its text ends with this one."""
        return self._search(LeafFunction.ENDS_WITH, suffix)

    def is_in(self, values: Iterable[Any]) -> Predicate:
        """Return whether it has one of these values."""
        return self._listed(LeafFunction.IN, values)

    def not_in(self, values: Iterable[Any]) -> Predicate:
        """Return whether it has another value than these; never, when NULL is among them."""
        return self._listed(LeafFunction.NOT_IN, values)

    # Type checkers take the result of an assigned `__eq__` for a bool, as that of every object.
    def __eq__(self, value: Any, /) -> Predicate:  # type: ignore[override]
        return self.equal(value)

    def __ne__(self, value: Any, /) -> Predicate:  # type: ignore[override]
        return self.not_equal(value)

    __lt__ = less_than
    __le__ = less_or_equal
    __gt__ = greater_than
    __ge__ = greater_or_equal

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "A ColumnRef is neither true nor false; compare it first, then join with & and |."
        )

    def __and__(self, other: object, /) -> NoReturn:
        raise TypeError(
            "& and | join predicates, and bind more tightly than comparisons: write "
            '(col("id") > 1) & (col("id") < 3), with parentheses around each comparison.'
        )

    __or__ = __rand__ = __ror__ = __and__

    def __repr__(self) -> str:
        return f"ColumnRef({self._name})"

    def _compare(self, function: LeafFunction, value: Any) -> Predicate:
        return Leaf(column=self._name, function=function, literals=(_literal(value),))

    def _search(self, function: LeafFunction, text: str) -> Predicate:
        if not isinstance(text, str):
            raise TypeError(f"a text is searched for a text, not for {text!r}")
        return Leaf(column=self._name, function=function, literals=(text,))

    def _listed(self, function: LeafFunction, values: Iterable[Any]) -> Predicate:
        if isinstance(values, str | bytes):
            raise TypeError(f"the values to look for are a list, not {values!r}")
        return Leaf(
            column=self._name,
            function=function,
            literals=tuple(_literal(each) for each in values),
        )


def col(name: str) -> ColumnRef:
    """Refer to a column by name, to compare it: `scan.filter(col("id") > 5)`."""
    return ColumnRef(name)


def columns_in(predicate: Predicate) -> frozenset[str]:
    """Return the names of the columns in a predicate."""
    match predicate:
        case Leaf(column=name):
            return frozenset((name,))
        case Compound(children=children):
            return frozenset[str]().union(*map(columns_in, children))
        case Not(child=child):
            return columns_in(child)
        case _:
            return frozenset()


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the conditions that must all be true for the whole to be."""
    if isinstance(predicate, Compound) and predicate.function is CompoundFunction.AND:
        return tuple(each for child in predicate.children for each in conjuncts(child))
    return (predicate,)


def conjoined(predicates: Sequence[Predicate]) -> Predicate | None:
    """True where all of them are; None for none."""
    if len(predicates) > 1:
        return Compound(function=CompoundFunction.AND, children=tuple(predicates))
    return predicates[0] if predicates else None


def _predicate(value: object) -> Predicate:
    if not isinstance(value, Predicate):
        raise TypeError(f"a predicate is joined with another, not with {value!r}")
    return value


def _joined(function: CompoundFunction, first: Predicate, second: Predicate) -> Predicate:
    # A long chain stays flat: thousands of conditions are joined in a loop more often than by hand.
    if isinstance(first, Compound) and first.function is function:
        return Compound(function=function, children=(*first.children, second))
    return Compound(function=function, children=(first, second))


def _literal(value: Any) -> Any:
    if isinstance(value, ColumnRef | Predicate):
        raise InvalidValueError(
            f"A column is compared with a value, not with {value!r}.",
            hint="Read both columns and compare them in a dataframe.",
        )
    return value
