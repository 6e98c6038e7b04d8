"""Runs one program as a child and stops it when the parent ends. A standalone script.

    python watchdog.py <orphan delay in seconds> <program> [<argument> ...]

It gives the jar's own main classes what our launcher has built in: the line "stop" on standard
input, or its end, stops the program; a program that does not stop in time is killed. It imports
only the standard library, because it is started without site-packages.
"""

import signal
import subprocess
import sys
import threading
import time

STOP_DEADLINE_S = 20.0
ORPHAN_DEADLINE_S = 8.0


def main() -> int:
    """Run the program of the command line, and return its exit code."""
    delay_s, command = float(sys.argv[1]), sys.argv[2:]
    # Signals reach the whole process group, so the program receives them itself. They are caught
    # rather than ignored: a child inherits ignored signals, and Java would not receive them.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    # The command line is the caller's. The program inherits our locks as well.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # noqa: S603
    threading.Thread(target=_watch_parent, args=(child, delay_s), daemon=True).start()
    return child.wait()


def _watch_parent(child: subprocess.Popen[bytes], delay_s: float) -> None:
    is_requested = sys.stdin.buffer.readline() == b"stop\n"
    if not is_requested:
        time.sleep(delay_s)  # so that the servers of one cluster stop in order
    child.terminate()
    time.sleep(STOP_DEADLINE_S if is_requested else ORPHAN_DEADLINE_S)
    child.kill()


if __name__ == "__main__":
    sys.exit(main())
