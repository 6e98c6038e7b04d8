"""The last lines of `benchmarks/peer.py`: time and memory of `import fluss`, in new processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._measure import interleaved
from tools.peer import peer_environment

SECONDS_MAX = 60e-3
HEAVY = ("pandas", "polars", "duckdb", "pyarrow")  # imported where they are used
# Resident memory, where the system reports it: a peak would include that of the parent.
PROGRAM = """
import json, os, resource, sys, time
def resident():
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before, started = resident(), time.perf_counter()
import {module}
seconds = time.perf_counter() - started
heavy = [name for name in {heavy} if name in sys.modules]
print(json.dumps({{"seconds": seconds, "bytes": resident() - before, "heavy": heavy}}))
"""


class Importer:
    """Imports one module in a series of processes."""

    def __init__(self, python: str, module: str) -> None:
        self._command = [python, "-c", PROGRAM.format(module=module, heavy=HEAVY)]
        self.bytes: list[int] = []
        self.heavy: list[str] = []

    def seconds(self) -> float:
        """Return how long the import took."""
        done = subprocess.run(
            self._command, capture_output=True, text=True, check=True, env=peer_environment()
        )
        answer = json.loads(done.stdout)
        self.bytes.append(answer["bytes"])
        self.heavy = answer["heavy"]
        return float(answer["seconds"])


def import_lines(peer_python: Path | None, *, pairs: int) -> list[Sequence[str]]:
    """Return the lines for `fluss` and `fluss.aio`; the peer has one module only."""
    found = []
    for module in ("fluss", "fluss.aio"):
        ours = Importer(sys.executable, module)
        peer = Importer(str(peer_python or sys.executable), "fluss")
        ours.seconds(), peer.seconds()  # the files are in the page cache from here on
        taken = interleaved(ours.seconds, peer.seconds, pairs=pairs)
        mine = statistics.median(taken.ours)
        verdicts = ["MISSED"] if mine > SECONDS_MAX else []
        verdicts += [f"loads {name}" for name in ours.heavy]
        beside = ("", "", "")
        if peer_python is not None:
            beside = (_figure(taken.peer, peer.bytes), f"{taken.ratio:.2f}", taken.spread)
        found.append(
            (
                f"import {module}",
                _figure(taken.ours, ours.bytes),
                *beside,
                "",
                f"<= {SECONDS_MAX * 1e3:.0f} ms",
                ", ".join(verdicts),
            )
        )
    return found


def _figure(seconds: Sequence[float], grown: Sequence[int]) -> str:
    return f"{statistics.median(seconds) * 1e3:.1f} ms, +{statistics.median(grown) / 1e6:.1f} MB"
