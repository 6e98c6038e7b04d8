"""Reports the progress of a long read: on a line that is updated, or by calling a function.

A line is written only to a terminal or a notebook, and only if the read takes longer than a second.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Self, TextIO

from fluss.scan import ScanStats
from fluss.waiting import join

Progress = bool | Callable[[int, int], object]

SILENT_S = 1.0
EVERY_S = 0.25
_MEGABYTE = 1_000_000


class ProgressLine:
    """Reports the progress of a scan while a `with` block reads it.

    Args:
        name: The name of the table, for the line.
        stats: The counters of the scan.
        progress: True for a line on standard error; or a function that is called with the rows
            read and their upper bound, on a thread of its own, and once more at the end.
        stream: Where the line is written.
    """

    def __init__(
        self, name: str, stats: ScanStats, progress: Progress, stream: TextIO | None = None
    ) -> None:
        self._name = name
        self._stats = stats
        self._stream = stream or sys.stderr
        self._call = progress if callable(progress) else None
        self._is_on = self._call is not None or (progress is True and _is_watched(self._stream))
        self._written = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report, name="fluss-progress", daemon=True)
        self._start_s = time.monotonic()

    def __enter__(self) -> Self:
        if self._is_on:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_on:
            return
        self._ended.set()
        join(self._thread)
        if self._call is not None:
            self._call(self._stats.rows_returned, self._stats.rows_max)
        elif self._written:
            self._stream.write(f"\r{' ' * self._written}\r")
            self._stream.flush()

    def _report(self) -> None:
        wait_s = EVERY_S if self._call is not None else SILENT_S
        while not self._ended.wait(wait_s):
            wait_s = EVERY_S
            if self._call is not None:
                self._call(self._stats.rows_returned, self._stats.rows_max)
            else:
                self._write(self._line())

    def _line(self) -> str:
        stats = self._stats
        took_s = time.monotonic() - self._start_s
        of = f" of at most {stats.rows_max:,}" if stats.rows_max else ""
        return (
            f"{self._name}: {stats.rows_returned:,}{of} rows, "
            f"{stats.bytes_read / _MEGABYTE:,.0f} MB, {took_s:.0f} s"
        )

    def _write(self, line: str) -> None:
        self._stream.write(f"\r{line:<{self._written}}")
        self._stream.flush()
        self._written = max(self._written, len(line))


def _is_watched(stream: TextIO) -> bool:
    # A notebook's stream is no terminal, but can update a line all the same.
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")
