"""The progress bar of `fluss import` and `fluss export`: rows, rate, percent and the time left.

It is drawn on the standard error and disappears at the end; the command decides if it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

_STEPS = 10_000


class ProgressBar:
    """Shows how far a command has come; made by `progress_bar`."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._rows = 0

    def add(self, rows: int, *, fraction: float | None) -> None:
        """Add rows to the count.

        Args:
            rows: How many.
            fraction: How much of the work is done, from 0 to 1; None while it is unknown.
        """
        self._rows += rows
        elapsed = self._bar.tasks[0].elapsed or 0.0
        rate = f"{self._rows / elapsed:,.0f} rows/s" if elapsed else ""
        percent = "" if fraction is None else f"{fraction:4.0%}"
        self._bar.update(
            self._task,
            total=None if fraction is None else _STEPS,
            completed=0 if fraction is None else fraction * _STEPS,
            text=f"{self._rows:,} rows {percent} {rate}",
        )

    def note(self, text: str) -> None:
        """Write a line above the bar."""
        if self._bar.disable:
            typer.echo(text, err=True)
        else:
            self._bar.console.print(Text(text))


@contextmanager
def progress_bar(what: str, *, is_shown: bool) -> Iterator[ProgressBar]:
    """Show a bar while the block runs.

    Args:
        what: What is done: `importing`.
        is_shown: Whether it is drawn at all.
    """
    bar = Progress(
        TextColumn(f"[bold]{what}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not is_shown,
        transient=True,
    )
    with bar:
        yield ProgressBar(bar, bar.add_task(what, total=None, text=""))
