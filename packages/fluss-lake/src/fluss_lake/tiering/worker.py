"""A worker of tiering: asks the coordinator for tables, and makes a round of each.

One thread talks to the coordinator: it says every few seconds which tables are worked at, asks for
others, and gives back those that failed. Rounds run in threads of their own, one for each table. A
table that cannot be copied is given back, and asked for again no sooner than its pause is over; it
holds up no other one.
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
# A table that failed is left alone for so long, and twice as long after each further failure.
PAUSE_S_MIN, PAUSE_S_MAX = 10.0, 600.0
# `once` ends when the coordinator has had no table to give for so many questions.
EMPTY_ANSWERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works.

    Attributes:
        rounds: How rounds are made.
        tables: The names of the tables it copies; None for all.
        tables_max: How many tables it works at concurrently.
        threads: How many buckets of a table are written concurrently.
        round_s_max: How long a round reads; what is left is of the next one.
        carry: Who carries out the tasks of rounds; threads of this process otherwise.
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
        took_s: How long it took.
        committed: What it has committed; None where it failed.
        error: Why it failed.
        has_more: Whether its bounds left rows for the next round.
        recovered_id: A snapshot that an earlier round had not told the cluster.
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
        options: How.
        cancellation: Ends it from another thread.
        may_commit: Raises if the table is another worker's by now.

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
    """Copies the tables that the coordinator gives to it.

    Args:
        connection: The connection.
        options: How it works.
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
        self._passed_over: set[TablePath] = set()

    def stop(self) -> None:
        """End soon: rounds are given up, their files removed. Any thread may call it."""
        self._stopping.cancel()
        self._ended.put(None)

    def run(self, *, once: bool = False) -> None:
        """Work until `stop`; or with `once`, until the coordinator has no table to give.

        Raises:
            FlussError: The coordinator cannot be reached for the first time, or refuses.
        """
        with ThreadPoolExecutor(
            self._options.tables_max, thread_name_prefix="fluss-tier-table"
        ) as pool:
            try:
                self._work(pool, once=once)
            finally:
                self._stopping.cancel()
                pool.shutdown(wait=True)
                self._say_goodbye()

    def _work(self, pool: ThreadPoolExecutor, *, once: bool) -> None:
        empty, has_spoken = 0, False
        while not self._stopping.is_cancelled:
            is_ending = once and empty >= EMPTY_ANSWERS
            asked, assigned = self._beat(wants_tables=not is_ending, may_fail=has_spoken)
            has_spoken = True
            if assigned is not None and self._is_wanted(assigned):
                self._passed_over.clear()
                pool.submit(self._round, assigned)
                empty = 0
            elif asked and (assigned is None or self._has_seen(assigned)):
                empty += 1
            is_idle = not self._leases.tables
            if once and is_idle and empty >= EMPTY_ANSWERS:
                return
            self._wait(wants_tables=not is_ending, hurries=once and is_idle)

    # --- the coordinator ----------------------------------------------------------------------

    def _beat(self, *, wants_tables: bool, may_fail: bool) -> tuple[bool, Assigned | None]:
        """Say what is done; whether a table was asked for, and the one that was given."""
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

    def _say_goodbye(self) -> None:
        """Give back what was not finished, so that others need not wait for the lease to end."""
        with self._lock:
            for each in self._leases.tables:
                self._leases.ended(each, Outcome.FAILED)
            beat = self._leases.beat(time.monotonic(), wants_tables=False)
        if beat.finished or beat.failed:
            try:
                self._connection.engine.run(send_heartbeat(self._connection, beat))
            except FlussError:
                return  # the lease ends by itself

    def _is_wanted(self, table: Assigned) -> bool:
        """Whether it is copied now; if not, it goes back to the end of the queue."""
        tables = self._options.tables
        pause_until, _ = self._pauses.get(table.path, (0.0, 0.0))
        if (tables is None or table.path in tables) and time.monotonic() >= pause_until:
            return True
        with self._lock:
            self._leases.ended(table, Outcome.FAILED)
        return False

    def _has_seen(self, table: Assigned) -> bool:
        """Whether an unwanted table has come before: then the queue has no other one."""
        if table.path not in self._passed_over:
            self._passed_over.add(table.path)
            return False
        self._passed_over.clear()
        with self._lock:
            self._leases.rest(time.monotonic())
        return True

    def _wait(self, *, wants_tables: bool, hurries: bool) -> None:
        with self._lock:
            wait_s = self._leases.wait_s(time.monotonic(), wants_tables=wants_tables)
        try:
            self._ended.get(timeout=min(wait_s, 0.2) if hurries else max(wait_s, 0.05))
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
        except Exception as error:  # noqa: BLE001 - whatever it is, other tables are copied on
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
    """An error of whatever kind as one that has a sentence and a place for a hint."""
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
    """Make rounds of tables now, until all rows are copied, whichever worker has them.

    Two rounds of one table at the same time are no danger: one of them is committed. But Fluss's
    job in Flink repeats a commit that has met another one, and would add its rows twice.
    """
    for path in tables:
        began = time.monotonic()
        while not cancellation.is_cancelled:
            try:
                handle = connection.engine.run(connection.table(path))
                found = one_round(handle, options, cancellation=cancellation)
            except Exception as error:  # noqa: BLE001 - as above
                if not cancellation.is_cancelled:
                    took = time.monotonic() - began
                    report(RoundReport(table=path, took_s=took, error=as_fluss_error(error)))
                break
            report(replace(found))
            if not found.has_more:
                break
