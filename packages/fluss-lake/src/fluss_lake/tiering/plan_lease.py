"""Decides which tables a worker holds: heartbeats, epochs, and when a lease has ended.

The coordinator assigns a table to a worker together with an epoch. If it receives no heartbeat for
the table in two minutes, it assigns the table to another worker with the next epoch. So a worker
sends a heartbeat with its tables every 20 seconds. Time is an argument of every function, from a
monotonic clock. A lease starts when the worker sends a heartbeat that the coordinator answers; the
worker ends it earlier than the coordinator does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss_lake.lake_errors import TieringFencedError

LEASE_S: Final = 120.0
# A commit may take this long after the last check of the lease.
MARGIN_S: Final = 30.0
BEAT_S: Final = 20.0
# A worker that is assigned no table waits this long before it asks again.
IDLE_S: Final = 5.0


class Outcome(StrEnum):
    """How the work on a table has ended."""

    DONE = "done"
    # There is more to copy; the coordinator queues the table again immediately.
    MORE = "more"
    # The table returns to the coordinator's queue.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A table that the coordinator has assigned to this worker.

    Attributes:
        table_id: The table's id.
        path: The table's name.
        tiering_epoch: Increases each time the table is assigned to a worker.
        coordinator_epoch: Increases with each coordinator.
    """

    table_id: int
    path: TablePath
    tiering_epoch: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The contents of a heartbeat.

    Attributes:
        tiering: The tables that the worker is copying.
        finished: The tables that are done.
        failed: The tables that the worker returns.
        again: The ids of the finished tables that have more to copy.
        wants_table: Whether the worker asks for another table.
        at_s: When the heartbeat was made.
    """

    tiering: tuple[Assigned, ...]
    finished: tuple[Assigned, ...]
    failed: tuple[Assigned, ...]
    again: tuple[int, ...]
    wants_table: bool
    at_s: float


@dataclass(slots=True)
class _Held:
    table: Assigned
    until_s: float
    lost: FlussError | None = None


@dataclass(slots=True)
class Leases:
    """The tables that one worker holds.

    Args:
        tables_max: How many tables it copies concurrently.
    """

    tables_max: int
    _held: dict[int, _Held] = field(default_factory=dict)
    _ended: dict[int, tuple[Assigned, Outcome]] = field(default_factory=dict)
    _next_beat_s: float = 0.0
    _next_request_s: float = 0.0

    @property
    def tables(self) -> list[Assigned]:
        """The tables that the worker is copying."""
        return [held.table for held in self._held.values()]

    def wait_s(self, now_s: float, *, wants_tables: bool) -> float:
        """How long until the next heartbeat is due."""
        if self._ended:
            return 0.0
        due = self._next_beat_s
        if wants_tables and len(self._held) < self.tables_max:
            due = min(due, self._next_request_s)
        return max(0.0, due - now_s)

    def beat(self, now_s: float, *, wants_tables: bool) -> Beat:
        """Make the heartbeat to send now. The caller must call `answered` or `unanswered` next."""
        ended = list(self._ended.values())
        return Beat(
            tiering=tuple(held.table for held in self._held.values() if held.lost is None),
            finished=tuple(table for table, how in ended if how is not Outcome.FAILED),
            failed=tuple(table for table, how in ended if how is Outcome.FAILED),
            again=tuple(table.table_id for table, how in ended if how is Outcome.MORE),
            wants_table=wants_tables and len(self._held) < self.tables_max,
            at_s=now_s,
        )

    def answered(
        self, beat: Beat, assigned: Assigned | None, errors: Mapping[int, FlussError]
    ) -> None:
        """Note the answer to a heartbeat.

        Args:
            beat: The heartbeat.
            assigned: The table that the coordinator has assigned.
            errors: The tables that this worker no longer holds, with the coordinator's errors.
        """
        for table in (*beat.finished, *beat.failed):
            self._ended.pop(table.table_id, None)
        for table in beat.tiering:
            held = self._held.get(table.table_id)
            if held is None or held.table != table:
                continue
            if table.table_id in errors:
                held.lost = errors[table.table_id]
            else:
                held.until_s = beat.at_s + LEASE_S - MARGIN_S
        if assigned is not None:
            self._held[assigned.table_id] = _Held(assigned, beat.at_s + LEASE_S - MARGIN_S)
        self._next_beat_s = beat.at_s + BEAT_S
        self._next_request_s = beat.at_s + (0.0 if assigned is not None else IDLE_S)

    def rest(self, now_s: float) -> None:
        """Ask for no table for `IDLE_S`: the queue has only tables that this worker skips."""
        self._next_request_s = now_s + IDLE_S

    def unanswered(self, beat: Beat) -> None:
        """Note that no answer arrived. The next heartbeat is due soon; the leases keep running."""
        self._next_beat_s = self._next_request_s = beat.at_s + IDLE_S

    def ended(self, table: Assigned, outcome: Outcome) -> None:
        """Note that the work on a table has ended; the next heartbeat reports it."""
        held = self._held.get(table.table_id)
        if held is None or held.table != table:
            return
        del self._held[table.table_id]
        if held.lost is None:
            self._ended[table.table_id] = (table, outcome)

    def check(self, table: Assigned, now_s: float) -> None:
        """Refuse to commit if another worker may hold the table now.

        Raises:
            TieringFencedError: Another worker holds the table, or may hold it.
        """
        held = self._held.get(table.table_id)
        lost = None if held is None else held.lost
        if held is None or held.table != table or lost is not None or now_s >= held.until_s:
            why = "the coordinator has answered no heartbeat for too long"
            if lost is not None:
                why = lost.sentence.rstrip(".")
            raise TieringFencedError(
                f"Another worker may hold the table {table.path} now: {why}.",
                hint="Nothing was committed. The next worker starts where the last round ended.",
                table=str(table.path),
            )
