"""The name somebody probably meant: one search, used by every message that says "did you mean".

It only compares text. What the known names are, and what happens to an unknown one, is decided
where the error is raised.
"""

from __future__ import annotations

from collections.abc import Iterable

# Beyond these a search would cost more than the hint is worth.
NAME_LENGTH_MAX = 300
KNOWN_NAMES_MAX = 2_000


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name most like `name`, or None where nothing is alike.

    Args:
        name: What was written.
        known: What could have been meant.
        likeness: From 0 (anything) to 1 (the same but for upper and lower case).
    """
    import difflib

    if len(name) > NAME_LENGTH_MAX:
        return None
    by_folded: dict[str, str] = {}
    for candidate in known:
        if len(by_folded) == KNOWN_NAMES_MAX:
            break
        by_folded.setdefault(candidate.casefold(), candidate)
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=likeness)
    return by_folded[found[0]] if found else None


def is_slip_of(name: str, known: Iterable[str], *, edits_max: int = 2) -> bool:
    """Whether the name is a known one but for a letter or two put in, left out or changed."""
    return any(
        abs(len(name) - len(each)) <= edits_max and _edits(name, each) <= edits_max
        for each in known
        if len(name) <= NAME_LENGTH_MAX
    )


def _edits(name: str, other: str) -> int:
    """How many letters to put in, leave out or change to make one name of the other."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(name, start=1):
        here = [row]
        for column, each in enumerate(other, start=1):
            changed = above[column - 1] + (letter != each)
            here.append(min(changed, above[column] + 1, here[-1] + 1))
        above = here
    return above[-1]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint "did you mean 'x'?", or None where nothing is alike."""
    found = nearest(name, known)
    return None if found is None else f"did you mean {found!r}?"
