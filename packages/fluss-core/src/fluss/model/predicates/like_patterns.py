"""LIKE with the patterns that predicates decide exactly.

A text is searched at its start, at its end and anywhere in it. So a pattern may have `%` at its
ends, once in its middle, or nowhere. `_`, which stands for one character, has no equivalent.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fluss.model.predicates.predicate import ColumnRef, Predicate

_ELSE: Final = "the engine's own filter takes any pattern"


class NoPattern(NamedTuple):
    """Why a pattern is refused, and what to write instead."""

    why: str
    hint: str


def like(column: ColumnRef, pattern: str, escape: str | None = None) -> Predicate | NoPattern:
    """Return the condition that a column is like a pattern.

    Args:
        column: The column.
        pattern: The pattern.
        escape: The character before a `%` or `_` that stands for itself; empty for none. None
            where it is not given: databases differ in whether a backslash is one then.
    """
    if escape is None and "\\" in pattern:
        return NoPattern(
            "databases differ in what a backslash means in a pattern",
            "add ESCAPE '\\' if it escapes the next character, ESCAPE '' if it does not",
        )
    parts = _parts(pattern, escape or "")
    if isinstance(parts, NoPattern):
        return parts
    match parts:
        case [whole]:
            return column.equal(whole)
        case ["", ""]:
            return column.starts_with("")
        case [first, ""]:
            return column.starts_with(first)
        case ["", last]:
            return column.ends_with(last)
        case [first, last]:
            return _surrounded(column, first, last)
        case ["", middle, ""]:
            return column.contains(middle)
        case _:
            return NoPattern("% may be at the ends of a pattern, or once in its middle", _ELSE)


def _surrounded(column: ColumnRef, first: str, last: str) -> Predicate:
    """The texts that start and end so, without those that are too short for both."""
    both = column.starts_with(first) & column.ends_with(last)
    short = [
        first + last[count:]
        for count in range(1, min(len(first), len(last)) + 1)
        if first.endswith(last[:count])
    ]
    return both & column.not_in(short) if short else both


def _parts(pattern: str, escape: str) -> list[str] | NoPattern:
    """The literal texts between runs of `%`."""
    if len(escape) > 1:
        return NoPattern("ESCAPE takes one character, or none", "write ESCAPE '!'")
    parts, is_escaped, after_percent = [""], False, False
    for char in pattern:
        if is_escaped:
            if char not in {"%", "_", escape}:
                return NoPattern(f"{escape} escapes %, _ and itself", f"double the {escape}")
            parts[-1] += char
            is_escaped = after_percent = False
        elif char == escape:
            is_escaped = True
        elif char == "_":
            return NoPattern(
                "_ stands for one character, and that cannot be decided here",
                f"escape it to search for it: LIKE 'a!_b' ESCAPE '!'; {_ELSE}",
            )
        elif char == "%":
            if not after_percent:
                parts.append("")
            after_percent = True
        else:
            parts[-1] += char
            after_percent = False
    if is_escaped:
        return NoPattern("the pattern ends with its escape character", f"double the {escape}")
    return parts
