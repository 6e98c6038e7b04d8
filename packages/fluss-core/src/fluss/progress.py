"""Shows the progress of a long read or write: one implementation for all doors.

Terminals and notebooks show it by themselves, after a moment and only for many rows; pipes never
do. A bar of rich or tqdm is drawn where one of them is installed, a line of text otherwise, and it
is erased at the end. `FLUSS_PROGRESS=off` turns it off for a process, `progress=False` for a call.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TextIO, TypeAlias

from fluss.waiting import join

# Whether it is shown: None for terminals and notebooks; or a function that is called with the
# rows done and their upper bound, 0 where it is not known.
Progress: TypeAlias = bool | Callable[[int, int], object] | None

SILENT_S: Final = 1.0
EVERY_S: Final = 0.25
# Fewer rows are done before a person would look for a line.
ROWS_MIN: Final = 20_000
VARIABLE: Final = "FLUSS_PROGRESS"
# A terminal shows ^C after the line when it is pressed.
_ECHO: Final = " " * len("^C")
_OFF: Final = frozenset({"0", "off", "false", "no", "never"})
# Two lines on one terminal would overwrite each other.
_one_at_a_time = threading.Lock()


class Amount(NamedTuple):
    """How far it is.

    Attributes:
        rows: The rows that the caller has got, or the servers have acknowledged.
        done: The rows that are done with, those that a filter left out among them.
        rows_max: How many rows there are at most; None where that is not known.
    """

    rows: int
    done: int
    rows_max: int | None


class ProgressDisplay:
    """Shows how far the work of a `with` block is.

    Args:
        name: What is read or written, for the line.
        amount: Returns how far it is; called on a thread of its own, and once more at the end.
        progress: Whether and how; see `Progress`.
        stream: Where it is shown; standard error by default.
        since_s: When the work began, by `time.monotonic`; now by default.
    """

    def __init__(
        self,
        name: str,
        amount: Callable[[], Amount],
        progress: Progress = None,
        stream: TextIO | None = None,
        *,
        since_s: float | None = None,
    ) -> None:
        self._name, self._amount = name, amount
        self._stream = stream or sys.stderr
        self._call = progress if callable(progress) else None
        self._is_on = self._call is not None or self._is_shown(progress)
        self._is_given = progress is not None
        self._ended = threading.Event()
        self._start_s = time.monotonic() if since_s is None else since_s
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._is_on and (self._is_given or self._is_long()):
            self._thread = threading.Thread(target=self._run, name="fluss-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        if self._thread is not None:
            self._ended.set()
            join(self._thread)
            if self._call is not None:
                self._report()
        return False

    @property
    def is_running(self) -> bool:
        """Whether the work is long enough to be watched: a thread looks at it."""
        return self._thread is not None

    def _is_shown(self, progress: object) -> bool:
        is_off = os.environ.get(VARIABLE, "").strip().lower() in _OFF
        return progress is not False and not is_off and is_watched(self._stream)

    def _is_long(self) -> bool:
        rows_max = self._amount().rows_max
        return rows_max is None or rows_max >= ROWS_MIN

    def _run(self) -> None:
        if self._call is not None:
            while not self._ended.wait(EVERY_S):
                self._report()
            return
        if self._ended.wait(SILENT_S) or not _one_at_a_time.acquire(blocking=False):
            return
        bar = _bar_on(self._stream, self._name)
        try:
            while True:
                amount = self._amount()
                bar.show(amount, _line(amount, time.monotonic() - self._start_s))
                if self._ended.wait(EVERY_S):
                    return
        finally:
            bar.erase()
            _one_at_a_time.release()

    def _report(self) -> None:
        amount = self._amount()
        if self._call is not None:
            self._call(amount.rows, amount.rows_max or 0)


def is_watched(stream: TextIO) -> bool:
    """Return whether a person looks at a stream: it is a terminal, or that of a notebook."""
    try:
        is_terminal = stream.isatty()
    except (AttributeError, ValueError):  # closed, or none, as in a program without a console
        return False
    return is_terminal or _is_of_notebook(stream)


def _is_of_notebook(stream: TextIO) -> bool:
    # It is no terminal, but can update a line all the same.
    return type(stream).__module__.startswith("ipykernel")


def _line(amount: Amount, took_s: float) -> str:
    """What is shown beside a bar, or alone."""
    rate = amount.rows / took_s if took_s > 0 else 0.0
    parts = [f"{amount.rows:,} rows", f"{rate:,.0f} rows/s", f"{took_s:.0f} s"]
    if amount.rows_max:
        parts.insert(1, f"{min(1.0, amount.done / amount.rows_max):.0%}")
    return ", ".join(parts)


# --- bars -----------------------------------------------------------------------------------------


class _Bar(Protocol):
    def show(self, amount: Amount, line: str) -> None: ...

    def erase(self) -> None: ...


def _bar_on(stream: TextIO, name: str) -> _Bar:
    """Make the best bar that there is for a stream."""
    # In notebooks, rich needs widgets.
    if not _is_of_notebook(stream) and _is_installed("rich"):
        return _RichBar(stream, name)
    if _is_installed("tqdm"):
        return _TqdmBar(stream, name)
    return _TextLine(stream, name)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # it is being replaced
        return False


class _TextLine:
    """A line that is overwritten."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name, self._width = stream, name, 0

    def show(self, amount: Amount, line: str) -> None:  # noqa: ARG002 - the line has it
        text = f"{self._name}: {line}"
        self._stream.write(f"\r{text:<{self._width}}")
        self._stream.flush()
        self._width = max(self._width, len(text))

    def erase(self) -> None:
        self._stream.write(f"\r{' ' * self._width}{_ECHO}\r")
        self._stream.flush()


class _TqdmBar:
    def __init__(self, stream: TextIO, name: str) -> None:
        from tqdm import tqdm

        self._stream = stream
        self._bar: Any = tqdm(desc=name, file=stream, leave=False, bar_format="{desc} {bar:20}")
        self._name = name

    def show(self, amount: Amount, line: str) -> None:
        self._bar.total = amount.rows_max
        self._bar.n = min(amount.done, amount.rows_max or amount.done)
        self._bar.bar_format = "{desc} |{bar:20}|" if amount.rows_max else "{desc}"
        self._bar.set_description_str(f"{self._name}: {line}", refresh=True)

    def erase(self) -> None:
        width = len(str(self._bar))
        self._bar.close()
        if not _is_of_notebook(self._stream):
            self._stream.write(f"\r{' ' * width}{_ECHO}\r")
            self._stream.flush()


class _RichBar:
    def __init__(self, stream: TextIO, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as RichProgress, TextColumn

        self._bar: Any = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[line]}", markup=False),
            console=Console(file=stream),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(name, total=None, line="")
        self._bar.start()

    def show(self, amount: Amount, line: str) -> None:
        done = min(amount.done, amount.rows_max or amount.done)
        self._bar.update(self._task, total=amount.rows_max, completed=done, line=line)
        self._bar.refresh()

    def erase(self) -> None:
        self._bar.stop()
