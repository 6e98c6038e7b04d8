"""Cuts text into statements at the semicolons that are not in quotes or comments.

Text may end inside a statement, in quotes or in a comment: a prompt then asks for the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# Strings, names and comments, as DuckDB writes them; then what opens one and has no end.
_PARTS: Final = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$
    | --[^\n]*
    | /\*.*?\*/
    | (?P<end>;)
    | (?P<open>['"]|/\*|\$[A-Za-z_]*\$)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the complete statements of a text, without semicolons, and what comes after them."""
    statements: list[str] = []
    begin = 0
    for found in _PARTS.finditer(text):
        if found["open"] is not None:
            break
        if found["end"] is not None:
            statements.append(text[begin : found.start()].strip())
            begin = found.end()
    return [each for each in statements if not is_blank(each)], text[begin:].lstrip()


def is_blank(text: str) -> bool:
    """Whether a text has only white space and comments."""
    return not _COMMENT.sub("", text).strip()


def ends_inside(text: str) -> bool:
    """Whether a text ends in quotes or in a comment."""
    return any(found["open"] is not None for found in _PARTS.finditer(text))


def all_statements(text: str) -> Iterator[str]:
    """Yield the statements of a whole text; the last one needs no semicolon."""
    complete, rest = split_statements(text)
    yield from complete
    if not is_blank(rest):
        yield rest.strip()
