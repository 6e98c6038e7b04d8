"""Parses filters in SQL: `id > 5 AND (kind IN ('a', 'b') OR day = DATE '2026-01-31')`.

The grammar is the part of SQL whose conditions predicates can decide exactly: one column is
compared with literals, and comparisons are joined. The meaning is SQL's, NULL included. Everything
else is refused with its position; an engine's own filter takes it. Names of columns are those of
the table, in its letter case, and may stand in double quotes or backquotes.

    condition   = any {OR any};  any = some {AND some};  some = [NOT] test
    test        = "(" condition ")" | column | TRUE | FALSE | NULL
                | column compared with literal, or literal compared with column
                | column [NOT] IN "(" literal {"," literal} ")"
                | column [NOT] BETWEEN literal AND literal
                | column [NOT] LIKE text [ESCAPE text]
                | column IS [NOT] NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM literal
                | starts_with(column, text), ends_with(column, text), contains(column, text)
    compared    = "=" "==" "<>" "!=" "<" "<=" ">" ">="
    literal     = number | 'text' | X'00FF' | TRUE | FALSE | NULL
                | DATE '…' | TIME '…' | TIMESTAMP '…'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fluss.model.predicates.binding import DEPTH_MAX, TypeOf
from fluss.model.predicates.filter_literals import (
    LiteralKind,
    SqlLiteral,
    check_literal,
    with_values,
)
from fluss.model.predicates.filter_tokens import Kind, Token, refusal, tokens_of
from fluss.model.predicates.like_patterns import like
from fluss.model.predicates.predicate import (
    ColumnRef,
    Compound,
    CompoundFunction,
    Constant,
    Predicate,
    col,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFilter:
    """A filter in SQL that was parsed; it becomes a predicate when the columns are known.

    Attributes:
        text: It as it was written.
        parsed: The condition, with `SqlLiteral`s for values.
    """

    text: str
    parsed: Predicate

    def predicate(self, type_of: TypeOf) -> Predicate:
        """Return the condition with values of the types of its columns.

        Args:
            type_of: Returns the type of a column, or raises for an unknown one.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
            InvalidValueError: A literal is not a value of its column's type.
        """
        return with_values(self.parsed, type_of)

    def __str__(self) -> str:
        return self.text


def parse_filter(text: str) -> SqlFilter:
    """Parse a filter in SQL.

    Raises:
        InvalidValueError: It is no such filter; `position` is where, and the hint what to write.
    """
    parser = _Parser(tokens_of(text))
    return SqlFilter(text=text, parsed=parser.filter())


_COMPARISONS: Final[dict[str, Callable[[ColumnRef, Any], Predicate]]] = {
    "=": ColumnRef.equal,
    "==": ColumnRef.equal,
    "<>": ColumnRef.not_equal,
    "!=": ColumnRef.not_equal,
    "<": ColumnRef.less_than,
    "<=": ColumnRef.less_or_equal,
    ">": ColumnRef.greater_than,
    ">=": ColumnRef.greater_or_equal,
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SEARCHES: Final[dict[str, Callable[[ColumnRef, str], Predicate]]] = {
    "STARTS_WITH": ColumnRef.starts_with,
    "ENDS_WITH": ColumnRef.ends_with,
    "CONTAINS": ColumnRef.contains,
}
_TYPED: Final = {
    "DATE": LiteralKind.DATE,
    "TIME": LiteralKind.TIME,
    "TIMESTAMP": LiteralKind.TIMESTAMP,
    "TIMESTAMPTZ": LiteralKind.TIMESTAMP,
    "TIMESTAMP_LTZ": LiteralKind.TIMESTAMP,
}
_LITERALS: Final = {
    Kind.NUMBER: LiteralKind.NUMBER,
    Kind.TEXT: LiteralKind.TEXT,
    Kind.BYTES: LiteralKind.BYTES,
}
_RESERVED: Final = (
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "IS", "NULL", "TRUE", "FALSE", "ESCAPE",
)  # fmt: skip
_ELSE: Final = "a filter compares columns with literals; the rest is for the engine's own filter, or `fluss sql`"
_QUOTE_TEXT: Final = "put a text in single quotes: name = 'x'"


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0

    def filter(self) -> Predicate:
        found = self._condition(0)
        token = self._token
        if token.kind is not Kind.END:
            raise refusal(token, "AND, OR or the end was expected", _hint_after(token))
        return found

    # --- conditions -------------------------------------------------------------------------------

    def _condition(self, depth: int) -> Predicate:
        found = [self._all(depth)]
        while self._accept_word("OR"):
            found.append(self._all(depth))
        return _joined(CompoundFunction.OR, found)

    def _all(self, depth: int) -> Predicate:
        found = [self._some(depth)]
        while self._accept_word("AND"):
            found.append(self._some(depth))
        return _joined(CompoundFunction.AND, found)

    def _some(self, depth: int) -> Predicate:
        if depth > DEPTH_MAX:
            raise refusal(self._token, f"conditions nest more than {DEPTH_MAX} deep")
        if self._accept_word("NOT"):
            return ~self._some(depth + 1)
        if self._accept_sign("("):
            found = self._condition(depth + 1)
            self._expect_sign(")")
            return found
        return self._test()

    def _test(self) -> Predicate:
        token = self._token
        if token.is_word(*_SEARCHES) and self._next.is_sign("("):
            return self._search()
        literal = self._literal_or_none()
        if literal is not None:
            return self._after_literal(token, literal)
        if token.is_word("NULL"):
            self._place += 1
            return Constant(value=None)
        return self._after_column(self._column())

    def _after_literal(self, token: Token, literal: SqlLiteral) -> Predicate:
        sign = self._token
        if not sign.is_sign(*_COMPARISONS):
            if literal.kind is LiteralKind.BOOLEAN:
                return Constant(value=literal.text.upper() == "TRUE")
            raise refusal(token, "a condition begins with a column", _ELSE)
        self._place += 1
        if self._token.kind not in {Kind.WORD, Kind.NAME}:
            raise refusal(self._token, "a column was expected", _ELSE)
        return _COMPARISONS[_MIRRORED.get(sign.text, sign.text)](self._column(), literal)

    def _after_column(self, column: ColumnRef) -> Predicate:
        token = self._token
        if token.is_sign(*_COMPARISONS):
            self._place += 1
            return _COMPARISONS[token.text](column, self._literal())
        if self._accept_word("IS"):
            return self._is(column)
        is_negated = self._accept_word("NOT")
        word = self._token
        if self._accept_word("IN"):
            values = self._listed()
            return column.not_in(values) if is_negated else column.is_in(values)
        if self._accept_word("BETWEEN"):
            found = self._between(column)
        elif self._accept_word("LIKE"):
            found = self._like(column)
        elif is_negated:
            raise refusal(word, "IN, BETWEEN or LIKE was expected", _hint_after(word))
        else:
            return self._alone(column)
        return ~found if is_negated else found

    def _alone(self, column: ColumnRef) -> Predicate:
        after, name = self._token, self._tokens[self._place - 1]
        if after.kind is Kind.END or after.is_sign(")") or after.is_word("AND", "OR"):
            return column.equal(self._of(LiteralKind.ALONE, "TRUE", name))
        raise refusal(after, "a comparison was expected", _hint_after(after))

    # --- tests of one column ----------------------------------------------------------------------

    def _is(self, column: ColumnRef) -> Predicate:
        is_negated = self._accept_word("NOT")
        token = self._token
        if self._accept_word("NULL", "UNKNOWN"):
            return column.is_not_null() if is_negated else column.is_null()
        if self._accept_word("DISTINCT"):
            if not self._accept_word("FROM"):
                raise refusal(self._token, "FROM was expected")
            return _distinct(column, self._literal(), is_negated=is_negated)
        if self._accept_word("TRUE", "FALSE"):
            literal = self._of(LiteralKind.BOOLEAN, token.text, token)
            return _distinct(column, literal, is_negated=not is_negated)
        raise refusal(token, "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM was expected")

    def _listed(self) -> list[Any]:
        self._expect_sign("(")
        values = [self._literal()]
        while self._accept_sign(","):
            values.append(self._literal())
        self._expect_sign(")")
        return values

    def _between(self, column: ColumnRef) -> Predicate:
        low = self._literal()
        if not self._accept_word("AND"):
            raise refusal(self._token, "AND was expected: BETWEEN low AND high")
        return column.greater_or_equal(low) & column.less_or_equal(self._literal())

    def _like(self, column: ColumnRef) -> Predicate:
        token = self._token
        pattern, escape = self._text("a pattern"), None
        if self._accept_word("ESCAPE"):
            escape = self._text("a character")
        found = like(column, pattern, escape)
        if isinstance(found, Predicate):
            return found
        raise refusal(token, found.why, found.hint)

    def _search(self) -> Predicate:
        search = _SEARCHES[self._token.text.upper()]
        self._place += 1
        self._expect_sign("(")
        column = self._column()
        self._expect_sign(",")
        sought = self._text("a text")
        self._expect_sign(")")
        return search(column, sought)

    # --- columns and literals ---------------------------------------------------------------------

    def _column(self) -> ColumnRef:
        token = self._token
        if token.kind is Kind.NAME or (token.kind is Kind.WORD and not token.is_word(*_RESERVED)):
            self._place += 1
            if self._token.is_sign("(", ".", "["):
                raise refusal(self._token, _WHY_NOT[self._token.text], _ELSE)
            return col(token.text)
        if token.is_word(*_RESERVED):
            raise refusal(token, "a column was expected", f'a column of this name: "{token.text}"')
        raise refusal(token, "a column was expected", _hint_after(token))

    def _literal(self) -> SqlLiteral | None:
        """The literal that comes next; None for NULL."""
        token = self._token
        if self._accept_word("NULL"):
            return None
        literal = self._literal_or_none()
        if literal is not None:
            return literal
        if token.kind is Kind.NAME:
            raise refusal(token, "a column is compared with a literal, not with a name",
                          "put a text in single quotes, and a column before the comparison"
                          )  # fmt: skip
        if token.kind is Kind.WORD:
            raise refusal(token, "a literal was expected", _QUOTE_TEXT)
        raise refusal(token, "a literal was expected", _ELSE)

    def _literal_or_none(self) -> SqlLiteral | None:
        token, place = self._token, self._place
        self._place += 1
        if token.is_sign("-", "+") and self._token.kind is Kind.NUMBER:
            number = self._token
            self._place += 1
            return self._of(LiteralKind.NUMBER, token.text + number.text, token)
        if token.kind in _LITERALS:
            text = token.text[2:-1] if token.kind is Kind.BYTES else token.text
            return self._of(_LITERALS[token.kind], text, token)
        if token.is_word("TRUE", "FALSE"):
            return self._of(LiteralKind.BOOLEAN, token.text, token)
        if token.is_word(*_TYPED) and self._token.kind is Kind.TEXT:
            text = self._token.text
            self._place += 1
            return self._of(_TYPED[token.text.upper()], text, token)
        self._place = place
        return None

    def _text(self, what: str) -> str:
        token = self._token
        if token.kind is not Kind.TEXT:
            raise refusal(token, f"{what} was expected", "put it in single quotes: 'x'")
        self._place += 1
        return token.text

    def _of(self, kind: LiteralKind, text: str, token: Token) -> SqlLiteral:
        return check_literal(SqlLiteral(kind=kind, text=text, position=token.position))

    # --- tokens -----------------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._place]

    @property
    def _next(self) -> Token:
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def _accept_word(self, *words: str) -> bool:
        is_it = self._token.is_word(*words)
        self._place += is_it
        return is_it

    def _accept_sign(self, sign: str) -> bool:
        is_it = self._token.is_sign(sign)
        self._place += is_it
        return is_it

    def _expect_sign(self, sign: str) -> None:
        if not self._accept_sign(sign):
            raise refusal(self._token, f"{sign} was expected", _hint_after(self._token))


_WHY_NOT: Final = {
    "(": "there are no functions but starts_with, ends_with and contains",
    ".": "there are no fields and no names of tables here",
    "[": "there are no elements here",
}


def _joined(function: CompoundFunction, found: list[Predicate]) -> Predicate:
    return found[0] if len(found) == 1 else Compound(function=function, children=tuple(found))


def _distinct(column: ColumnRef, literal: SqlLiteral | None, *, is_negated: bool) -> Predicate:
    """Whether a value differs from a literal, where NULL is a value; never unknown."""
    if literal is None:
        return column.is_null() if is_negated else column.is_not_null()
    if is_negated:
        return column.equal(literal) & column.is_not_null()
    return column.not_equal(literal) | column.is_null()


def _hint_after(token: Token) -> str | None:
    if token.kind is Kind.WORD and token.is_word("ILIKE"):
        return "texts are compared as they are; the engine's own filter ignores case"
    if token.is_sign("&", "|", "~", "!"):
        return "SQL joins conditions with AND and OR, and negates them with NOT"
    if token.is_sign(";"):
        return "a filter is one condition, without a semicolon"
    if token.is_sign("<=>"):
        return "write IS NOT DISTINCT FROM"
    if token.kind is Kind.END:
        return None
    return _ELSE
