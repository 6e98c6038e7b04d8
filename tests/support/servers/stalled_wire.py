"""A cluster whose servers stop sending rows during a scan, and a program that reads it.

The program is a separate process. It receives SIGINT while it waits for rows, and must then still
be able to use its connection:

    def test_ctrl_c_ends_a_stalled_read(stalled_table):
        interrupted = interrupt(stalled_table, "pd.read_fluss(TABLE)", setup="import pandas as pd")
        assert interrupted.after_s < INTERRUPTED_S_MAX

Its last line is the length of the same read after the rows flow again. A late interruption on a
busy machine proves nothing, so it is tried again.
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
    """Forwards everything, but holds large responses back while it is stalled."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._flowing = threading.Event()
        self._flowing.set()
        self.holds_back = threading.Event()

    def stall(self) -> None:
        """Hold large responses back from now on."""
        self.holds_back.clear()
        self._flowing.clear()

    def flow(self) -> None:
        """Send the held responses, and all later ones."""
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
    """The result of a program.

    Attributes:
        after_s: How long after SIGINT it reported the interruption.
        rows: How many rows it read afterwards.
    """

    after_s: float
    rows: int


def interrupt(wire: StallingWire, table: str, reading: str, *, setup: str) -> Interrupted:
    """Read in another process, interrupt it while its rows are held back, and let it read again.

    Args:
        wire: The proxy in front of the cluster.
        table: `database.table`, large enough for a response of more than `LARGE_BYTES`.
        reading: An expression that reads `TABLE` and returns an object with a length.
        setup: Code that runs before it.

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
            line = process.stdout.readline()
            assert line == "reading\n", f"{line}{process.stderr.read() if not line else ''}"
            assert wire.holds_back.wait(WAIT_S), "no rows were asked for"
            time.sleep(0.2)  # so that it already waits
            began = time.perf_counter()
            process.send_signal(signal.SIGINT)
            line = process.stdout.readline()
            after_s = time.perf_counter() - began
            assert line == "interrupted\n", line
            wire.flow()
            process.stdin.write("\n")
            process.stdin.flush()
            line = process.stdout.readline()
            _, complaints = process.communicate(timeout=WAIT_S)
            assert line, complaints
            rows = int(line)
            ended = process.returncode, complaints
            assert ended == (0, ""), ended
        finally:
            wire.flow()
            process.kill()
    return Interrupted(after_s=after_s, rows=rows)
