"""A process that forks attempts at tasks, which a test kills, pauses and resumes.

Run as a program: `once_attempts.py BOOTSTRAP DATABASE FOLDER`. Each line of its input requests one
attempt, `HOW RUN STEP PART FIRST COUNT SEED`; it prints the pid of the fork that runs it. `HOW` is
`exact` (`append_exactly_once` into the log `exact`), `naive` (plain appends, chunk by chunk) or
`keyed` (upserts). An attempt writes its progress to `FOLDER/PID.at`, so that it can be killed
anywhere, and its result to `FOLDER/PID`: 0, or 1 with a line on standard error.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

LOADED = (
    "anyio._backends._asyncio",
    "fluss.exactly_once",
    "fluss.session.session",
    "pyarrow.compute",
)
PAUSE_S = 0.02
ROWS_PER_BATCH = 1_024
BATCHES_PER_WRITE = 4


def rows_of(first: int, count: int, seed: int) -> Iterator[object]:
    """Generate the rows of a task, a kilobyte each, in small chunks."""
    import pyarrow as pa

    rng = random.Random(seed)
    for start in range(first, first + count, ROWS_PER_BATCH):
        ids = pa.array(range(start, min(start + ROWS_PER_BATCH, first + count)), pa.int64())
        texts = pa.array([f"{each}" + "x" * 1_000 for each in ids.to_pylist()])
        time.sleep(rng.random() * PAUSE_S)
        yield pa.RecordBatch.from_arrays([ids, texts], names=["id", "text"])


def watched(batches: Iterator[object], folder: Path) -> Iterator[object]:
    """Generate the same rows, and record how many have been consumed."""
    for place, batch in enumerate(batches):
        Path(folder, f"{os.getpid()}.at").write_text(str(place))
        yield batch


def attempt(bootstrap: str, database: str, folder: Path, asked: list[str]) -> None:
    """Run one attempt."""
    import pyarrow as pa

    import fluss
    from fluss.exactly_once import Task, append_exactly_once

    how, run, *numbers = asked
    step, part, first, count, seed = map(int, numbers)
    with fluss.connect(f"fluss://{bootstrap}/{database}") as session:
        table = session.table(how)
        rows = watched(rows_of(first, count, seed), folder)
        if how == "exact":
            append_exactly_once(table, Task(run=run, step=step, part=part), rows)
            return
        while some := list(islice(rows, BATCHES_PER_WRITE)):
            (table.append if how == "naive" else table.upsert)(pa.Table.from_batches(some))


def main(bootstrap: str, database: str, folder: Path) -> None:
    """Fork attempts until the input ends."""
    import pyarrow as pa

    from fluss.wire import messages

    # Imports that every attempt needs; none of them starts a thread.
    for name in LOADED:
        import_module(name)
    pa.array(["pandas is imported by this"])
    messages.ProduceLogResponse()

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for attempts here
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                attempt(bootstrap, database, folder, line.split())
                code = 0
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shall read it
                sys.stderr.write(
                    f"{line.strip()}: {type(error).__name__}: {error}\n".replace("\n", " ") + "\n"
                )
                sys.stderr.flush()
            Path(folder, str(os.getpid())).write_text(str(code))
            os._exit(code)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
