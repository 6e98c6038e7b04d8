"""Splits the text of a filter into tokens, and refuses texts that no filter begins with.

`model.predicates.filter_text` parses the tokens. Every token has its position, because an error
names the place in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fluss.errors import InvalidValueError

FILTER_CHARS_MAX: Final = 1_000_000
_SHOWN_MAX: Final = 40


class Kind(StrEnum):
    """The kinds of tokens."""

    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"
    NAME = "name"
    WORD = "word"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A piece of a filter's text.

    Attributes:
        kind: Its kind.
        text: Its value: a text or a name without its quotes, anything else as it is written.
        written: It as it is written.
        position: Where it begins; the first character is 1.
    """

    kind: Kind
    text: str
    written: str
    position: int

    def is_word(self, *words: str) -> bool:
        """Return whether this is one of these words, in any case, and not in quotes."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        """Return whether this is one of these signs."""
        return self.kind is Kind.SIGN and self.text in signs


_TOKEN: Final = re.compile(
    r"(?P<bytes>[xX]'[^']*')"
    r"|(?P<text>'[^']*(?:''[^']*)*')"
    r'|(?P<name>"[^"]+(?:""[^"]*)*"|`[^`]+(?:``[^`]*)*`)'
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<sign><=>|<=|>=|<>|!=|==|\|\||::|[=<>(),.+\-*/%;\[\]:&|!~?@#^])"
)
_SPACE: Final = re.compile(r"\s*")
_QUOTES: Final = "'\"`"


def tokens_of(text: str) -> list[Token]:
    """Split a text into tokens, with one of kind END after the last.

    Raises:
        InvalidValueError: A part of it is no token, or it is too long.
    """
    if len(text) > FILTER_CHARS_MAX:
        raise InvalidValueError(
            f"The filter has {len(text):,} characters; {FILTER_CHARS_MAX:,} are allowed.",
            hint="look many keys up, or join a table of them in the engine",
            option="filter",
        )
    tokens: list[Token] = []
    place = _end_of_space(text, 0)
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise _no_token(text, place)
        tokens.append(_token(found))
        place = _end_of_space(text, found.end())
    end = Token(kind=Kind.END, text="", written="", position=len(text.rstrip()) + 1)
    return [*tokens, end]


def refusal(token: Token, why: str, hint: str | None = None) -> InvalidValueError:
    """Return the error for a token that does not fit.

    Args:
        token: The token.
        why: What was expected in its place, or what is wrong with it.
        hint: What to write instead.
    """
    what = "its end" if token.kind is Kind.END else _shown(token.written)
    return InvalidValueError(
        f"The filter is wrong at position {token.position}, at {what}: {why}.",
        hint=hint,
        option="filter",
        position=token.position,
    )


def _end_of_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _token(found: re.Match[str]) -> Token:
    written = found.group()
    kind = Kind(found.lastgroup or "")
    text = written
    if kind in {Kind.TEXT, Kind.NAME}:
        quote = written[0]
        text = written[1:-1].replace(quote * 2, quote)
    return Token(kind=kind, text=text, written=written, position=found.start() + 1)


def _no_token(text: str, place: int) -> InvalidValueError:
    rest = text[place:]
    token = Token(kind=Kind.SIGN, text=rest, written=rest, position=place + 1)
    if rest.startswith(('""', "``")):
        return refusal(token, "a name stands between these quotes, and there is none")
    if rest[0] in _QUOTES:
        return refusal(token, f"the quote {rest[0]} is not closed", f"double a {rest[0]} inside")
    if rest[0].isdigit():
        return refusal(token, "a number ends where a letter follows", "put a name in double quotes")
    one = Token(kind=Kind.SIGN, text=rest[0], written=rest[0], position=place + 1)
    return refusal(one, "this character has no meaning here", "put texts in single quotes")


def _shown(written: str) -> str:
    cut = written if len(written) <= _SHOWN_MAX else written[: _SHOWN_MAX - 1] + "…"
    return " ".join(cut.split())
