"""One line in the log for many failures of the same kind.

A server that dies while a writer uses it fails hundreds of batches within a second. The caller gets
one error for all of them; the log gets the first, and a count of the others.
"""

from __future__ import annotations

import logging
from typing import Final

from fluss.model.paths import TablePath

log = logging.getLogger("fluss.sender")

# A table whose writes fail again and again gets at most one line in this time.
SILENT_S: Final = 60.0
TABLES_MAX: Final = 1_024


class FailureLog:
    """Logs failed writes to tables. For one thread."""

    def __init__(self) -> None:
        self._silent_until: dict[TablePath, float] = {}
        self._unlogged: dict[TablePath, int] = {}

    def failed(self, table: TablePath, message: str, *, now: float) -> None:
        """Log or count a batch that could not be written."""
        if now < self._silent_until.get(table, now):
            self._unlogged[table] = self._unlogged.get(table, 0) + 1
            return
        if len(self._silent_until) >= TABLES_MAX:
            self._silent_until.clear()
            self._unlogged.clear()
        self._silent_until[table] = now + SILENT_S
        more = self._unlogged.pop(table, 0)
        before = f" ({more} more batches failed since the last such line.)" if more else ""
        log.warning("%s%s", message, before)
