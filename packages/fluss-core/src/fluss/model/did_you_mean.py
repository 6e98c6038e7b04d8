"""Finds the nearest known name, for every message with "did you mean".

It only compares text. The code that raises the error gives the known names and decides what an
unknown one means.
"""

from __future__ import annotations

from collections.abc import Iterable

# Above these limits a search would cost more than the hint is worth.
NAME_LENGTH_MAX = 300
KNOWN_NAMES_MAX = 2_000


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """Return the known name nearest to `name`, or None where none is similar.

    Args:
        name: The unknown name.
        known: The known names.
        likeness: From 0 (any name) to 1 (equal except for case).
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
    """Return whether the name is one or two edits away from a known one."""
    return any(
        abs(len(name) - len(each)) <= edits_max and _edits(name, each) <= edits_max
        for each in known
        if len(name) <= NAME_LENGTH_MAX
    )


def _edits(name: str, other: str) -> int:
    """Return the edit distance: letters inserted, deleted or replaced."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(name, start=1):
        here = [row]
        for column, other_letter in enumerate(other, start=1):
            changed = above[column - 1] + (letter != other_letter)
            here.append(min(changed, above[column] + 1, here[-1] + 1))
        above = here
    return above[-1]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the hint "did you mean 'x'?", or None where no name is similar."""
    found = nearest(name, known)
    return None if found is None else f"did you mean {found!r}?"
