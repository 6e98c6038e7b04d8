"""The prompt: reads lines with history and completion where the system has readline.

The history is kept in the user's state folder. Without readline, lines are read as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from fluss.cli.user_folders import state_folder
from fluss_duckdb.shell.completion import DELIMITERS, Completer

try:
    import readline as _readline
except ImportError:  # no such module on this system
    _readline = None  # type: ignore[assignment]

HISTORY_LINES_MAX: Final = 2_000
_HISTORY: Final = "sql_history"


class Prompt:
    """Reads lines from a person.

    Args:
        completer: Completes words.
        statement: Returns the lines of the statement before the one that is typed.
    """

    def __init__(self, completer: Completer, statement: Callable[[], str]) -> None:
        self._completer = completer
        self._statement = statement
        self._readline: ModuleType | None = _readline
        self._matches: list[str] = []

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Load the history, and save it after the block."""
        lines = self._readline
        if lines is None:
            yield
            return
        with contextlib.suppress(OSError):
            lines.read_history_file(_history())
        lines.set_history_length(HISTORY_LINES_MAX)
        lines.set_auto_history(False)
        lines.set_completer_delims(DELIMITERS)
        lines.set_completer(self._complete)
        is_libedit = "libedit" in (lines.__doc__ or "")
        lines.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        try:
            yield
        finally:
            lines.set_completer(None)
            with contextlib.suppress(OSError):
                path = _history()
                path.touch(mode=0o600)
                lines.write_history_file(path)

    def read(self, prompt: str) -> str:
        """Read a line.

        Raises:
            EOFError: Ctrl-D.
            KeyboardInterrupt: Ctrl-C.
        """
        return input(prompt)

    def remember(self, text: str) -> None:
        """Add a statement to the history, in one line."""
        line = text if "--" in text else " ".join(text.split("\n"))
        if self._readline is None or not line.strip():
            return
        for entered in line.split("\n"):
            last = self._readline.get_history_item(self._readline.get_current_history_length())
            if entered.strip() and entered != last:
                self._readline.add_history(entered)

    def _complete(self, word: str, state: int) -> str | None:
        if state == 0 and self._readline is not None:
            line = self._readline.get_line_buffer()
            self._matches = self._completer.matches(word, line, self._statement())
        return self._matches[state] if state < len(self._matches) else None


def _history() -> Path:
    return state_folder() / _HISTORY
