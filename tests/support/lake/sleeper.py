"""A worker that stops itself (SIGSTOP) at a step of its first round, and says how the round ended.

`sleeper.py URL TABLE STEP LEASE_S`: it takes the table from the coordinator. When it is continued,
it prints the class of the round's error, or what it committed, and ends. A lease of 0 is the real
one.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
# A worker that has not stopped by then writes to its standard error what its threads are doing.
LATE_S = 240
# What the worker does next when it stops.
STEPS = ("read", "check the lease", "commit", "report")


def shorten(lease_s: float) -> None:
    """Let this process work with leases of so many seconds, as its coordinator does."""
    from fluss_lake.tiering import plan_lease

    if lease_s:
        plan_lease.LEASE_S, plan_lease.MARGIN_S = lease_s, lease_s / 4
        plan_lease.BEAT_S, plan_lease.IDLE_S = lease_s / 6, lease_s / 12


def asleep(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; this process stops before it."""

    def stopped(*given: Any, **more: Any) -> Any:
        faulthandler.cancel_dump_traceback_later()
        # To this thread: another one may be slow to take the signal, and this one would go on.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return work(*given, **more)

    return stopped


def said_of(report: Any) -> str:
    """How a round has ended."""
    if report.error is not None:
        return type(report.error).__name__
    return f"committed {report.committed.changes} changes as {report.committed.snapshot_id}"


def main(url: str, name: str, step: str, lease_s: str) -> None:
    """Work until a round has ended."""
    import fluss
    from fluss.model.paths import TablePath
    from fluss_lake.tiering import round_driver, worker
    from fluss_lake.tiering.carrying import ThreadCarrier
    from fluss_lake.tiering.service import TieringService

    faulthandler.dump_traceback_later(LATE_S)
    shorten(float(lease_s))
    carry: Any = ThreadCarrier(1)
    if step == "read":
        carry = asleep(carry)
    elif step == "check the lease":
        worker.Worker._check = asleep(worker.Worker._check)  # type: ignore[method-assign]
    elif step == "commit":
        round_driver.commit_change = asleep(round_driver.commit_change)
    else:
        round_driver._report = asleep(round_driver._report)
    ends = []

    def ended(report: worker.RoundReport) -> None:
        if not ends:
            ends.append(report)
            sys.stdout.write(said_of(report))
            sys.stdout.flush()
        service.stop()

    with fluss.connect(url) as session:
        connection = session.table(name).__fluss_table__().connection
        options = worker.WorkerOptions(tables=frozenset([TablePath.parse(name)]), carry=carry)
        service = TieringService(connection, options, on_round=ended)
        service.run()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(*sys.argv[1:])
