"""Changes that the changelog has and the store has not yet: the store's write buffer.

A key is looked for here before anyone asks the store. Keys are kept as they came and put in order
when someone reads in order. Whoever holds the bucket's turn is the only one here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_ENTRY_BYTES: Final = 150  # what CPython spends on an entry besides key and value, about


class PendingChanges:
    """Changed keys with the row they have since, None where they were deleted."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self.size_bytes = 0
        self._ordered: list[bytes] | None = None

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Take the outcome of one batch."""
        self.rows.update(changes)
        self.size_bytes += (
            len(changes) * _ENTRY_BYTES
            + sum(map(len, changes))
            + sum(map(len, filter(None, changes.values())))
        )
        self._ordered = None

    def clear(self) -> None:
        """The store has them all."""
        self.rows, self.size_bytes, self._ordered = {}, 0, None

    def unknown(self, keys: Sequence[bytes]) -> list[bytes]:
        """Those of the keys that have not changed."""
        rows = self.rows
        return [key for key in keys if key not in rows] if rows else list(keys)

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """Changed keys in their order with their rows, from this one on."""
        if self._ordered is None:
            self._ordered = sorted(self.rows)
        ordered = self._ordered
        for index in range(bisect_left(ordered, start), len(ordered)):
            yield ordered[index], self.rows[ordered[index]]


def rows_in_order(
    changed: Iterator[tuple[bytes, bytes | None]], stored: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    """Stored rows with the changes since, in the order of the keys."""
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
