"""The demo ends by itself without a screen, and every engine's result equals the books."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

PROGRAM = "import sys; from fluss.cli import main; sys.exit(main())"


def test_the_demo_ends_by_itself_with_the_right_totals():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "demo", "--rounds", "4"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 engines asked; all as in the books." in done.stdout
    assert "2,000 orders, 8,000 clicks" in done.stdout
    figures = re.findall(
        r"^ (the books|duckdb|pandas|polars) [ .\d]*?((?:\S+k *)+)$", done.stdout, re.MULTILINE
    )
    assert len(figures) == 4
    assert len({tuple(row.split()) for _, row in figures}) == 1


def test_on_a_screen_it_runs_until_it_is_interrupted():
    import pty

    screen, its_end = pty.openpty()
    demo = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "demo"], stdout=its_end, stderr=its_end, stdin=its_end
    )
    os.close(its_end)
    try:
        shown = _read_until(screen, b"clicks, ")
        demo.send_signal(signal.SIGINT)
        shown += _read_until(screen, b"Ctrl-C closes it")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=20) == 0
    finally:
        demo.kill()
        os.close(screen)
    assert b"all as in the books" in shown


def _read_until(screen: int, expected: bytes) -> bytes:
    shown = b""
    while expected not in shown:
        shown += os.read(screen, 65536)  # pytest's time limit ends this if the text never appears
    return shown
