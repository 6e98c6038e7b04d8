"""A cluster whose servers stop sending rows in the middle of a scan, and a program that reads it.

The program runs in a process of its own, is sent SIGINT while it waits for rows that do not come,
and must then still be able to use its connection:

    def test_ctrl_c_ends_a_stalled_read(stalled_table):
        interrupted = interrupt(stalled_table, "pd.read_fluss(TABLE)", setup="import pandas as pd")
        assert interrupted.after_s < INTERRUPTED_S_MAX

What it prints last is the answer to `len(...)` of the same reading once the rows flow again. A
machine that has other things to do proves nothing by being late, so who is late has more tries.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from tests.support.servers.wire_recorder import WireRecorder

LARGE_BYTES = 50_000
WAIT_S = 60
INTERRUPTED_S_MAX = 1.0
TRIES_MAX = 3
PROGRAM = """
import sys
{setup}
TABLE = {table!r}
def read():
    return {reading}
print("reading", flush=True)
try:
    read()
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
print(len(read()), flush=True)
"""


class StallingWire(WireRecorder):
    """Passes everything on, but keeps back large answers while `stall` is in force."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._flowing = threading.Event()
        self._flowing.set()
        self.holds_back = threading.Event()

    def stall(self) -> None:
        """Send no large answer from now on."""
        self.holds_back.clear()
        self._flowing.clear()

    def flow(self) -> None:
        """Send what was kept back, and all that follows."""
        self._flowing.set()

    def _pass_answers(
        self, target: socket.socket, client: socket.socket, pending: dict[int, Any]
    ) -> None:
        super()._pass_answers(target, _Gate(client, self), pending)  # type: ignore[arg-type]

    def wait(self) -> None:
        """Hold back the calling thread while the wire is stalled."""
        if not self._flowing.is_set():
            self.holds_back.set()
            self._flowing.wait(WAIT_S)


class _Gate:
    def __init__(self, client: socket.socket, wire: StallingWire) -> None:
        self._client, self._wire = client, wire

    def sendall(self, data: bytes) -> None:
        if len(data) > LARGE_BYTES:
            self._wire.wait()
        self._client.sendall(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """What became of a program.

    Attributes:
        after_s: How long after SIGINT it said that it was interrupted.
        rows: How many rows it read afterwards.
    """

    after_s: float
    rows: int


def interrupt(wire: StallingWire, table: str, reading: str, *, setup: str) -> Interrupted:
    """Read in another process, interrupt it when its rows are kept back, and let it read again.

    Args:
        wire: What stands before the cluster.
        table: `database.table`, large enough for an answer of more than `LARGE_BYTES`.
        reading: An expression that reads `TABLE` and gives something with a length.
        setup: What comes before it.

    Returns:
        The first try that was in time, or the last.
    """
    for number in range(1, TRIES_MAX + 1):
        interrupted = _interrupt_once(wire, table, reading, setup)
        if interrupted.after_s < INTERRUPTED_S_MAX or number == TRIES_MAX:
            break
    return interrupted


def _interrupt_once(wire: StallingWire, table: str, reading: str, setup: str) -> Interrupted:
    wire.stall()
    program = PROGRAM.format(setup=setup, table=table, reading=reading)
    environ = {**os.environ, "FLUSS_BOOTSTRAP_SERVERS": wire.bootstrap}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            said = process.stdout.readline()
            assert said == "reading\n", f"{said}{process.stderr.read() if not said else ''}"
            assert wire.holds_back.wait(WAIT_S), "no rows were asked for"
            time.sleep(0.2)  # so that it waits, and is not about to
            began = time.perf_counter()
            process.send_signal(signal.SIGINT)
            said = process.stdout.readline()
            after_s = time.perf_counter() - began
            assert said == "interrupted\n", said
            wire.flow()
            process.stdin.write("\n")
            process.stdin.flush()
            rows = int(process.stdout.readline())
            _, complaints = process.communicate(timeout=WAIT_S)
            assert (process.returncode, complaints) == (0, "")
        finally:
            wire.flow()
            process.kill()
    return Interrupted(after_s=after_s, rows=rows)
