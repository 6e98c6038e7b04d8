"""A tiering worker: asks the coordinator for tables, and runs a round for each of them.

One thread sends heartbeats to the coordinator: every few seconds it reports which tables the worker
is copying, asks for more, and returns those that failed. Each table's round runs in its own thread.
A table that cannot be copied is returned, and skipped until its pause is over; it does not delay
other tables.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import FlussError
from fluss.model.paths import TableBucket, TablePath
from fluss.net.cancellation import Cancellation
from fluss_lake.tiering.carrying import Carrier, ThreadCarrier
from fluss_lake.tiering.cluster_calls import send_heartbeat
from fluss_lake.tiering.plan_lease import Assigned, Leases, Outcome
from fluss_lake.tiering.round_driver import (
    Committed,
    Round,
    RoundOptions,
    abort_round,
    begin_round,
    commit_round,
)

ROUND_S_MAX: Final = 600.0
# After a failure, a table is skipped for this long; each further failure doubles the pause.
PAUSE_S_MIN, PAUSE_S_MAX = 10.0, 600.0
# With `once`, the worker stops after this many heartbeats without a table to copy.
EMPTY_ANSWERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works.

    Attributes:
        rounds: The options of rounds.
        tables: The names of the tables to copy; None for all.
        tables_max: How many tables the worker copies concurrently.
        threads: How many buckets of a table the worker writes concurrently.
        round_s_max: How long a round reads; the next round reads the rest.
        carry: Runs the tasks of rounds; None for threads of this process.
    """

    rounds: RoundOptions = field(default_factory=RoundOptions)
    tables: frozenset[TablePath] | None = None
    tables_max: int = 1
    threads: int = 2
    round_s_max: float = ROUND_S_MAX
    carry: Carrier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """How a round has ended.

    Attributes:
        table: The table.
        took_s: How long the round took.
        committed: What the round has committed; None if it failed.
        error: Why the round failed; None if it did not.
        has_more: Whether its limits left rows for the next round.
        recovered_id: The snapshot of an interrupted round that this one has reported to the
            cluster; None if there was none.
    """

    table: TablePath
    took_s: float
    committed: Committed | None = None
    error: FlussError | None = None
    has_more: bool = False
    recovered_id: int | None = None


Reporter = Callable[[RoundReport], None]


def one_round(
    table: TableHandle,
    options: WorkerOptions,
    *,
    cancellation: Cancellation,
    may_commit: Callable[[], None] = lambda: None,
) -> RoundReport:
    """Make one round of a table.

    Args:
        table: The table, as it is now.
        options: The options.
        cancellation: Cancels the round from another thread.
        may_commit: Raises if another worker may hold the table now.

    Raises:
        FlussError: Nothing was committed, and no file is left.
    """
    began = time.monotonic()
    round_ = begin_round(table, options.rounds, now_ms=time.time_ns() // 1_000_000)

    carry = options.carry or ThreadCarrier(options.threads)
    left_s = options.round_s_max - (time.monotonic() - began)
    written = carry(round_, cancellation=cancellation, read_s_max=max(0.0, left_s))
    try:
        cancellation.check()
        may_commit()
    except FlussError:
        abort_round(round_, written)
        raise
    committed = commit_round(round_, written)
    ends = {each.bucket: each.end for each in written}
    return RoundReport(
        table=table.info.table_path,
        took_s=time.monotonic() - began,
        committed=committed,
        has_more=_has_more(round_, ends),
        recovered_id=round_.recovered_id,
    )


def _has_more(round_: Round, ends: Mapping[TableBucket, int]) -> bool:
    return round_.is_cut or any(ends[each.bucket] < each.stop for each in round_.tasks)


class Worker:
    """Copies the tables that the coordinator assigns to it.

    Args:
        connection: The connection.
        options: The options.
        report: Called after each round, on a thread of the worker.
    """

    def __init__(
        self, connection: ClientConnection, options: WorkerOptions, report: Reporter
    ) -> None:
        self._connection, self._options, self._report = connection, options, report
        self._leases = Leases(tables_max=options.tables_max)
        self._lock = threading.Lock()
        self._stopping = Cancellation()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pauses: dict[TablePath, tuple[float, float]] = {}
        self._skipped: set[TablePath] = set()

    def stop(self) -> None:
        """Stop soon: abort all rounds and remove their files. Any thread may call it."""
        self._stopping.cancel()
        self._ended.put(None)

    def run(self, *, once: bool = False) -> None:
        """Work until `stop`; or with `once`, until the coordinator has no table to assign.

        Raises:
            FlussError: The first heartbeat fails, or the coordinator refuses one.
        """
        with ThreadPoolExecutor(
            self._options.tables_max, thread_name_prefix="fluss-tier-table"
        ) as pool:
            try:
                self._work(pool, once=once)
            finally:
                self._stopping.cancel()
                pool.shutdown(wait=True)
                self._return_tables()

    def _work(self, pool: ThreadPoolExecutor, *, once: bool) -> None:
        empty, is_connected = 0, False
        while not self._stopping.is_cancelled:
            is_ending = once and empty >= EMPTY_ANSWERS
            asked, assigned = self._beat(wants_tables=not is_ending, may_fail=is_connected)
            is_connected = True
            if assigned is not None and self._is_accepted(assigned):
                self._skipped.clear()
                pool.submit(self._round, assigned)
                empty = 0
            elif asked and (assigned is None or self._is_skipped_again(assigned)):
                empty += 1
            is_idle = not self._leases.tables
            if once and is_idle and empty >= EMPTY_ANSWERS:
                return
            self._wait(wants_tables=not is_ending, is_impatient=once and is_idle)

    # --- the coordinator ----------------------------------------------------------------------

    def _beat(self, *, wants_tables: bool, may_fail: bool) -> tuple[bool, Assigned | None]:
        """Send a heartbeat.

        Returns:
            Whether it asked for a table, and the table that the coordinator has assigned.
        """
        with self._lock:
            beat = self._leases.beat(time.monotonic(), wants_tables=wants_tables)
        try:
            answer = self._connection.engine.run(send_heartbeat(self._connection, beat))
        except FlussError as error:
            with self._lock:
                self._leases.unanswered(beat)
            if not may_fail or not error.retriable:
                raise
            return False, None
        with self._lock:
            self._leases.answered(beat, answer.assigned, answer.errors)
        return beat.wants_table, answer.assigned

    def _return_tables(self) -> None:
        """Return unfinished tables, so that other workers need not wait for the leases to end."""
        with self._lock:
            for table in self._leases.tables:
                self._leases.ended(table, Outcome.FAILED)
            beat = self._leases.beat(time.monotonic(), wants_tables=False)
        if beat.finished or beat.failed:
            try:
                self._connection.engine.run(send_heartbeat(self._connection, beat))
            except FlussError:
                return  # the lease ends by itself

    def _is_accepted(self, table: Assigned) -> bool:
        """Whether the worker copies a table now; if not, it returns the table to the queue."""
        tables = self._options.tables
        pause_until, _ = self._pauses.get(table.path, (0.0, 0.0))
        if (tables is None or table.path in tables) and time.monotonic() >= pause_until:
            return True
        with self._lock:
            self._leases.ended(table, Outcome.FAILED)
        return False

    def _is_skipped_again(self, table: Assigned) -> bool:
        """Whether a table is skipped for the second time: then the queue has no other one."""
        if table.path not in self._skipped:
            self._skipped.add(table.path)
            return False
        self._skipped.clear()
        with self._lock:
            self._leases.rest(time.monotonic())
        return True

    def _wait(self, *, wants_tables: bool, is_impatient: bool) -> None:
        with self._lock:
            wait_s = self._leases.wait_s(time.monotonic(), wants_tables=wants_tables)
        try:
            self._ended.get(timeout=min(wait_s, 0.2) if is_impatient else max(wait_s, 0.05))
        except queue.Empty:
            return

    # --- rounds -------------------------------------------------------------------------------

    def _round(self, assigned: Assigned) -> None:
        began = time.monotonic()
        try:
            handle = self._connection.engine.run(self._connection.table(assigned.path))
            report = one_round(
                handle,
                self._options,
                cancellation=self._stopping,
                may_commit=lambda: self._check(assigned),
            )
            self._pauses.pop(assigned.path, None)
            outcome = Outcome.MORE if report.has_more else Outcome.DONE
        except Exception as error:  # noqa: BLE001 - no error of one table may stop the others
            report = RoundReport(
                table=assigned.path, took_s=time.monotonic() - began, error=as_fluss_error(error)
            )
            outcome = Outcome.FAILED
            self._pause(assigned.path)
        with self._lock:
            self._leases.ended(assigned, outcome)
        if not (self._stopping.is_cancelled and report.error is not None):
            self._report(report)
        self._ended.put(None)

    def _check(self, assigned: Assigned) -> None:
        with self._lock:
            self._leases.check(assigned, time.monotonic())

    def _pause(self, path: TablePath) -> None:
        _, before = self._pauses.get(path, (0.0, 0.0))
        pause = min(max(2 * before, PAUSE_S_MIN), PAUSE_S_MAX)
        self._pauses[path] = (time.monotonic() + pause, pause)


def as_fluss_error(error: Exception) -> FlussError:
    """Turn any error into a `FlussError`, which has a sentence and a hint."""
    if isinstance(error, FlussError):
        return error
    why = " ".join(str(error).split())[:300]
    made = FlussError(f"{type(error).__name__}: {why}" if why else type(error).__name__)
    made.__cause__ = error
    return made


def rounds_now(
    connection: ClientConnection,
    tables: Sequence[TablePath],
    options: WorkerOptions,
    report: Reporter,
    *,
    cancellation: Cancellation,
) -> None:
    """Run rounds of tables until all rows are copied, without leases.

    If two workers run rounds of one table at the same time, one of them commits and the other one
    fails with a conflict. But Fluss's job in Flink retries a commit after a conflict, and would add
    its rows twice.
    """
    for path in tables:
        began = time.monotonic()
        while not cancellation.is_cancelled:
            try:
                handle = connection.engine.run(connection.table(path))
                found = one_round(handle, options, cancellation=cancellation)
            except Exception as error:  # noqa: BLE001 - no error of one table may stop the others
                if not cancellation.is_cancelled:
                    took = time.monotonic() - began
                    report(RoundReport(table=path, took_s=took, error=as_fluss_error(error)))
                break
            report(replace(found))
            if not found.has_more:
                break
