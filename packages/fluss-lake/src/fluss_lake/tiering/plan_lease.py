"""Decides whose tables are whose: heartbeats, epochs, and when nothing may be committed any more.

The coordinator gives a table to a worker with an epoch, and to another one with the next epoch if
it hears nothing of it for two minutes. So a worker says every 20 seconds what it works at. Time is
an argument everywhere, of a clock that never goes back; a lease is counted from when the heartbeat
was sent that the coordinator answered, and ends here before it ends there.
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
# What a commit may take after the last look at the lease.
MARGIN_S: Final = 30.0
BEAT_S: Final = 20.0
# How long a worker that got no table waits before it asks again.
IDLE_S: Final = 5.0


class Outcome(StrEnum):
    """How the work at a table has ended."""

    DONE = "done"
    # It has more to copy, and is handed out again immediately.
    MORE = "more"
    # It is given back to the queue.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A table that the coordinator has given to this worker.

    Attributes:
        table_id: The table.
        path: Its name.
        tiering_epoch: Grows each time the table is given to a worker.
        coordinator_epoch: Grows with each coordinator.
    """

    table_id: int
    path: TablePath
    tiering_epoch: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a heartbeat says.

    Attributes:
        tiering: The tables that are worked at.
        finished: Those that are done.
        failed: Those that are given back.
        again: The ids of those that are done and have more to copy.
        wants_table: Whether another table is asked for.
        at_s: When it was made.
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
    """The tables that one worker has.

    Args:
        tables_max: How many it works at concurrently.
    """

    tables_max: int
    _held: dict[int, _Held] = field(default_factory=dict)
    _ended: dict[int, tuple[Assigned, Outcome]] = field(default_factory=dict)
    _next_beat_s: float = 0.0
    _next_request_s: float = 0.0

    @property
    def tables(self) -> list[Assigned]:
        """The tables it works at."""
        return [each.table for each in self._held.values()]

    def wait_s(self, now_s: float, *, wants_tables: bool) -> float:
        """How long nothing has to be sent."""
        if self._ended:
            return 0.0
        due = self._next_beat_s
        if wants_tables and len(self._held) < self.tables_max:
            due = min(due, self._next_request_s)
        return max(0.0, due - now_s)

    def beat(self, now_s: float, *, wants_tables: bool) -> Beat:
        """What a heartbeat reports now; `answered` or `unanswered` must follow."""
        ended = list(self._ended.values())
        return Beat(
            tiering=tuple(each.table for each in self._held.values() if each.lost is None),
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
            beat: What was reported.
            assigned: The table that was given.
            errors: The tables that are no longer this worker's, with what the coordinator said.
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
        """Ask for no table for a while, as those that come are of no use."""
        self._next_request_s = now_s + IDLE_S

    def unanswered(self, beat: Beat) -> None:
        """Note that no answer came; it is reported again soon, and leases run on."""
        self._next_beat_s = self._next_request_s = beat.at_s + IDLE_S

    def ended(self, table: Assigned, outcome: Outcome) -> None:
        """Note that the work at a table has ended; the next heartbeat says so."""
        held = self._held.get(table.table_id)
        if held is None or held.table != table:
            return
        del self._held[table.table_id]
        if held.lost is None:
            self._ended[table.table_id] = (table, outcome)

    def check(self, table: Assigned, now_s: float) -> None:
        """Refuse to commit where the table may be another worker's by now.

        Raises:
            TieringFencedError: It is, or may be.
        """
        held = self._held.get(table.table_id)
        lost = None if held is None else held.lost
        if held is None or held.table != table or lost is not None or now_s >= held.until_s:
            why = "the coordinator has answered no heartbeat for too long"
            if lost is not None:
                why = lost.sentence.rstrip(".")
            raise TieringFencedError(
                f"The table {table.path} may be another worker's by now: {why}.",
                hint="Nothing was committed. The next worker begins where the last round ended.",
                table=str(table.path),
            )
