"""Runs one program as its child and ends it when the parent is gone. A script of its own.

    python watchdog.py <orphan delay in seconds> <program> [<argument> ...]

It gives the jar's own main classes the leash that our launcher has built in: the line "stop" on
standard input, or its end, stops the program; a program that does not stop in time is killed.
Imports nothing but the standard library, because it is started without site-packages.
"""

import signal
import subprocess
import sys
import threading
import time

STOP_DEADLINE_S = 20.0
ORPHAN_DEADLINE_S = 8.0


def main() -> int:
    """Run the program given on the command line; its exit code is ours."""
    delay_s, command = float(sys.argv[1]), sys.argv[2:]
    # Signals reach the whole process group, so the program gets them by itself. They are caught
    # rather than ignored: what is ignored stays ignored in a child, and Java would not hear them.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda *_: None)
    # The command line is the caller's. Locks that we inherited are for the program as well.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # noqa: S603
    threading.Thread(target=_hold_leash, args=(child, delay_s), daemon=True).start()
    return child.wait()


def _hold_leash(child: subprocess.Popen[bytes], delay_s: float) -> None:
    asked = sys.stdin.buffer.readline() == b"stop\n"
    if not asked:
        time.sleep(delay_s)  # so that the servers of one cluster stop in order
    child.terminate()
    time.sleep(STOP_DEADLINE_S if asked else ORPHAN_DEADLINE_S)
    child.kill()


if __name__ == "__main__":
    sys.exit(main())
