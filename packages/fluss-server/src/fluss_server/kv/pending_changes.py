"""Changes that the changelog has and the store does not have yet: the store's write buffer.

A lookup searches it before the store. Keys are unsorted until a reader needs them in order. The
caller holds the bucket's lock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

_ENTRY_BYTES: Final = 150  # about what CPython uses for an entry besides key and value
_UNCHANGED: Final = object()


class PendingChanges:
    """The changed keys with their new rows; None for deleted keys."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self.size_bytes = 0
        self._ordered: list[bytes] | None = None

    def add(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Add the changes of one batch."""
        self.rows.update(changes)
        self.size_bytes += (
            len(changes) * _ENTRY_BYTES
            + sum(map(len, changes))
            + sum(map(len, filter(None, changes.values())))
        )
        self._ordered = None

    def clear(self) -> None:
        """Remove all changes, because the store has them."""
        self.rows, self.size_bytes, self._ordered = {}, 0, None

    def unknown(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that have not changed."""
        rows = self.rows
        return [key for key in keys if key not in rows] if rows else list(keys)

    def find(self, keys: Sequence[bytes]) -> tuple[list[bytes | None], Sequence[int]]:
        """Return the row of each key, and the positions of the keys that have not changed."""
        if not self.rows:
            return [None] * len(keys), range(len(keys))
        found: list[Any] = list(map(self.rows.get, keys, repeat(_UNCHANGED)))
        missing = [at for at, row in enumerate(found) if row is _UNCHANGED]
        return found, missing

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """Iterate over changed keys and their rows in key order from a key on."""
        if self._ordered is None:
            self._ordered = sorted(self.rows)
        ordered = self._ordered
        for index in range(bisect_left(ordered, start), len(ordered)):
            yield ordered[index], self.rows[ordered[index]]


def rows_in_order(
    changed: Iterator[tuple[bytes, bytes | None]], stored: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    """Merge stored rows with later changes, in key order."""
    change, row = next(changed, None), next(stored, None)
    while change is not None or row is not None:
        if change is None or (row is not None and row[0] < change[0]):
            if row is not None:
                yield row
            row = next(stored, None)
            continue
        if row is not None and row[0] == change[0]:
            row = next(stored, None)
        if change[1] is not None:
            yield change[0], change[1]
        change = next(changed, None)
