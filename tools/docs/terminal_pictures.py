"""Runs commands in a pseudo terminal and draws what its screen shows as SVG.

The programs are the real ones, with colours and cursor movements; pyte is the terminal.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Self
from xml.sax.saxutils import escape

import pyte

TIMEOUT_S = 90.0
_READ_BYTES = 65_536

_CELL_WIDTH: Final = 8.43
_LINE_HEIGHT: Final = 19
_FONT_SIZE: Final = 14
_MARGIN: Final = 18
_TOP: Final = 44
_BACKGROUND: Final = "#1b2430"
_TEXT: Final = "#dfe7ee"
_COLOURS: Final[Mapping[str, str]] = {
    "default": _TEXT,
    "black": "#5c6b7a",
    "red": "#ef8a80",
    "green": "#8fce8b",
    "brown": "#e2c275",
    "blue": "#82b5ea",
    "magenta": "#cfa0e4",
    "cyan": "#7fd0d6",
    "white": "#dfe7ee",
}
_FONTS: Final = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"
_BLOCK: Final = "\u2588"
# Up to the next two spaces: one space within a text keeps its width, more are left out.
_WORDS: Final = re.compile(rf"{_BLOCK}+|[^ {_BLOCK}]+(?: [^ {_BLOCK}]+)*")
_BRIGHT: Final = "bright"


class Terminal:
    """A command in a terminal of a given size; leave the `with` block to end it."""

    def __init__(
        self, command: Sequence[str], *, columns: int, lines: int, environment: Mapping[str, str]
    ) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            size = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(lines)}
            os.execvpe(command[0], list(command), {**os.environ, **environment, **size})  # noqa: S606 - no shell is needed
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGHUP)
        os.close(self._file)
        os.waitpid(self._pid, 0)

    def wait_for(self, pattern: str) -> None:
        """Wait until the screen shows a text.

        Raises:
            TimeoutError: It does not appear in time; the message has the screen.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while not re.search(pattern, "\n".join(self._screen.display)):
            if time.monotonic() > deadline or not self._read(1.0):
                shown = "\n".join(line.rstrip() for line in self._screen.display)
                raise TimeoutError(f"{pattern!r} is not on the screen:\n{shown}")

    def settle(self, quiet_s: float = 0.4) -> None:
        """Wait until nothing is printed any more."""
        while self._read(quiet_s, is_patient=False):
            pass

    def send(self, text: str) -> None:
        """Type a text."""
        os.write(self._file, text.encode())

    def picture(self, title: str) -> str:
        """Return what the screen shows as SVG."""
        return _svg(self._screen, title)

    def _read(self, timeout_s: float, *, is_patient: bool = True) -> bool:
        ready, _, _ = select.select([self._file], [], [], timeout_s)
        if not ready:
            return is_patient
        try:
            data = os.read(self._file, _READ_BYTES)
        except OSError:  # the program has ended
            return False
        self._stream.feed(data)
        return bool(data)


def _svg(screen: pyte.Screen, title: str) -> str:
    lines = [screen.buffer[row] for row in range(screen.lines)]
    shown = [row for row, text in enumerate(screen.display) if text.strip()]
    count = (shown[-1] + 1) if shown else 1
    width = round(screen.columns * _CELL_WIDTH + 2 * _MARGIN)
    height = count * _LINE_HEIGHT + _TOP + _MARGIN
    caption = (
        f'<text x="{width / 2:.0f}" y="27" text-anchor="middle" font-size="13" fill="#8fa1b3" '
        f'font-family="system-ui, sans-serif">{escape(title)}</text>'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="10" fill="{_BACKGROUND}"/>',
        *(
            f'<circle cx="{_MARGIN + 6 + 20 * index}" cy="22" r="6" fill="{fill}"/>'
            for index, fill in enumerate(("#ef8a80", "#e2c275", "#8fce8b"))
        ),
        caption,
        f'<g font-family="{_FONTS}" font-size="{_FONT_SIZE}" xml:space="preserve">',
    ]
    for row in range(count):
        parts += _line(lines[row], screen.columns, _TOP + (row + 1) * _LINE_HEIGHT - 6)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _line(cells: Mapping[int, pyte.screens.Char], columns: int, y: int) -> Iterator[str]:
    """Yield the words of a line, each in its place and of its exact width."""
    numbered = [(column, cells[column]) for column in range(columns)]
    for style, run in groupby(numbered, key=lambda cell: _style(cell[1])):
        found = list(run)
        text = "".join(char.data for _, char in found)
        for word in _WORDS.finditer(text):
            left = _MARGIN + (found[0][0] + word.start()) * _CELL_WIDTH
            width = len(word[0]) * _CELL_WIDTH
            if set(word[0]) == {_BLOCK}:  # glyphs would have seams
                yield (
                    f'<rect x="{left:.1f}" y="{y - _FONT_SIZE + 1}" width="{width:.1f}" '
                    f'height="{_FONT_SIZE}"{style}/>'
                )
            else:
                yield (
                    f'<text x="{left:.1f}" y="{y}" textLength="{width:.1f}" '
                    f'lengthAdjust="spacingAndGlyphs"{style}>{escape(word[0])}</text>'
                )


def _style(char: pyte.screens.Char) -> str:
    colour = char.bg if char.reverse else char.fg
    name = colour.removeprefix(_BRIGHT)
    fill = _COLOURS.get(name) or (f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else _TEXT)
    weight = ' font-weight="bold"' if char.bold else ""
    slant = ' font-style="italic"' if char.italics else ""
    return f' fill="{fill}"{weight}{slant}'
