"""Shows the progress of the scans that DuckDB reads while the caller waits for DuckDB.

DuckDB pulls the rows of a scan from threads of its own, and may pull them in several calls of the
user: `execute` begins, `fetchall` goes on. So the bar belongs to the scans of a catalog. It is
shown in a call in which one of them is being read, and erased before the call returns to the user,
who may write on the same screen.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from fluss.scan import Amount, Progress, ProgressDisplay, Scan


@dataclass(eq=False, slots=True, kw_only=True)
class _Read:
    """A reading of a scan, which goes on or has ended in the same query.

    Attributes:
        scan: The scan; its counters go on when it is read again.
        before: What they were before.
    """

    scan: Scan
    before: Amount
    is_done: bool = False

    def amount(self) -> Amount:
        """How far this reading is."""
        now = self.scan.stats.amount()
        return Amount(
            rows=now.rows - self.before.rows,
            done=now.done - self.before.done,
            rows_max=now.rows_max,
        )


class ScanProgress:
    """The scans of one catalog, and the bar that counts them together. Any thread may use it.

    Args:
        progress: Whether and how it is shown.
    """

    def __init__(self, progress: Progress = None) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._calls = 0
        self._reads: list[_Read] = []
        self._begun_s = 0.0
        self._display: ProgressDisplay | None = None

    @contextlib.contextmanager
    def reading(self, scan: Scan) -> Iterator[None]:
        """Count a scan while its rows are pulled."""
        read = _Read(scan=scan, before=scan.stats.amount())
        with self._lock:
            if not self._reads:
                self._begun_s = time.monotonic()
            self._reads.append(read)
            self._show()
        try:
            yield
        finally:
            read.is_done = True

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar in this block, while a scan is read."""
        with self._lock:
            self._calls += 1
            if self._calls == 1:
                self._reads = [each for each in self._reads if not each.is_done]
                self._show()
        try:
            yield
        finally:
            self._end_call()

    def _show(self) -> None:
        """Begin to show the bar, if a caller waits and there are many rows."""
        is_shown = self._display is not None and self._display.is_running
        if not self._calls or not self._reads or is_shown:
            return
        self._display = ProgressDisplay(
            self._reads[0].scan.name, self._amount, self._progress, since_s=self._begun_s
        )
        self._display.__enter__()

    def _end_call(self) -> None:
        with self._lock:
            self._calls -= 1
            display = None
            if not self._calls:
                display, self._display = self._display, None
        if display is not None:
            display.__exit__(None, None, None)

    def _amount(self) -> Amount:
        amounts = [each.amount() for each in tuple(self._reads)]
        bounds = [each.rows_max for each in amounts if each.rows_max is not None]
        return Amount(
            rows=sum(each.rows for each in amounts),
            done=sum(each.done for each in amounts),
            rows_max=sum(bounds) if len(bounds) == len(amounts) else None,
        )
