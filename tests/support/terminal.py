"""A program in a terminal of a given size, and what its screen shows.

The program has a controlling terminal, so that a typed Ctrl-C reaches it, and its whole group of
processes, as it does for a person. pyte keeps the screen.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte

CTRL_C = b"\x03"
HISTORY_LINES = 1_000
READ_BYTES = 65_536


class Terminal:
    """Runs one program; a context manager that ends it.

    Args:
        words: The program and its arguments.
        columns: The width of the screen.
        lines: Its height.
        settings: As for `subprocess.Popen`.
    """

    def __init__(self, words, *, columns=80, lines=24, **settings):
        self.screen = pyte.HistoryScreen(columns, lines, history=HISTORY_LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._end, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        settings["env"] = {
            **os.environ,
            **settings.get("env", {}),
            "TERM": "xterm-256color",
        }
        # What would override the size of the terminal.
        for name in ("COLUMNS", "LINES"):
            settings["env"].pop(name, None)
        self.process = subprocess.Popen(
            words,
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - a system call only
            **settings,
        )
        os.close(its_end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._end)

    @property
    def text(self):
        """The lines of the screen, and those that have scrolled out of it."""
        above = [
            "".join(line[column].data for column in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join([*above, *(line.rstrip() for line in self.screen.display)]).rstrip()

    def type(self, keys):
        """Type keys, given as bytes."""
        os.write(self._end, keys)

    def wait_for(self, text, *, seconds=60):
        """Wait until the screen shows a text."""
        limit = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < limit, f"no {text!r} on the screen:\n{self.text}"
            if not self._read(0.1) and self.process.poll() is not None:
                assert text in self.text, f"it ended without {text!r}:\n{self.text}"

    def wait(self, *, seconds=60):
        """Wait until the program has ended, and return its exit code."""
        limit = time.monotonic() + seconds
        while self.process.poll() is None:
            self._read(0.1)
            assert time.monotonic() < limit, f"it runs after {seconds} s:\n{self.text}"
        while self._read(0):
            pass
        return self.process.returncode

    def _read(self, seconds):
        """Pass on what the program has written; return whether there was something."""
        if not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            written = os.read(self._end, READ_BYTES)
        except OSError:  # EIO: no process has the terminal any more
            return False
        self._stream.feed(written)
        return bool(written)
