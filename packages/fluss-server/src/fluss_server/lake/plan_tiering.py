"""Decides which table is assigned to a tiering worker, and whether a worker still holds it.

A table is scheduled until its freshness interval has passed. Then it is pending until a worker asks
for a table. The worker holds the table until it reports the end of its round, or sends no heartbeat
for two minutes. The table's epoch increases each time the table becomes pending, so the server
recognises a worker that has lost it. Pure: the time is an argument.
Java: `LakeTableTieringManager`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.paths import TablePath
from fluss_server.server_errors import request_error

LEASE_MS: Final = 120_000


class _State(StrEnum):
    SCHEDULED = "Scheduled"
    PENDING = "Pending"
    TIERING = "Tiering"


@dataclass(slots=True, kw_only=True)
class _Table:
    path: TablePath
    freshness_ms: int
    tiered_ms: int
    state: _State = _State.SCHEDULED
    epoch: int = 0
    heartbeat_ms: int = 0

    @property
    def due_ms(self) -> int:
        """When the table becomes pending."""
        return self.tiered_ms + self.freshness_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A table that is assigned to a worker."""

    table_id: int
    path: TablePath
    epoch: int


class TieringPlan:
    """The tables of a server that are tiered."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}
        self._pending: deque[int] = deque()

    def put(self, table_id: int, path: TablePath, *, freshness_ms: int, tiered_ms: int) -> None:
        """Add a table, or change the interval of a known one.

        Args:
            table_id: The table's id.
            path: The table's name.
            freshness_ms: How far its lake may lag behind its log.
            tiered_ms: When the table was tiered last; for a new table, when it was created.
        """
        known = self._tables.get(table_id)
        if known is not None:
            known.freshness_ms = freshness_ms
        else:
            self._tables[table_id] = _Table(
                path=path, freshness_ms=freshness_ms, tiered_ms=tiered_ms
            )

    def remove(self, table_id: int) -> None:
        """Remove a table that was dropped, or is no longer tiered. Idempotent."""
        if self._tables.pop(table_id, None) is not None and table_id in self._pending:
            self._pending.remove(table_id)

    def request(self, *, now_ms: int) -> Assignment | None:
        """Assign the table that has been pending longest; None if no table is pending."""
        self._advance(now_ms)
        if not self._pending:
            return None
        table_id = self._pending.popleft()
        table = self._tables[table_id]
        table.state, table.heartbeat_ms = _State.TIERING, now_ms
        return Assignment(table_id=table_id, path=table.path, epoch=table.epoch)

    def renew(self, table_id: int, epoch: int, *, now_ms: int) -> None:
        """Extend the lease of the worker that holds a table.

        Raises:
            FlussError: The table does not exist (7), another worker holds it (50), or no worker
                does (-1).
        """
        table = self._checked(table_id, epoch, now_ms)
        if table.state is not _State.TIERING:
            raise request_error(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"The table {table_id} to renew tiering heartbeat must in Tiering state, but in "
                f"{table.state} state.",
            )
        table.heartbeat_ms = now_ms

    def finish(self, table_id: int, epoch: int, *, is_forced: bool, now_ms: int) -> None:
        """End a round. The table is due again after its interval.

        Args:
            table_id: The table.
            epoch: The epoch with which the worker holds it.
            is_forced: Whether the table becomes pending immediately, because it has more rows.
            now_ms: The current time.

        Raises:
            FlussError: The table does not exist (7), or another worker holds it (50).
        """
        table = self._checked(table_id, epoch, now_ms)
        if table.state is _State.TIERING:
            table.state, table.tiered_ms = _State.SCHEDULED, now_ms
            if is_forced:
                self._make_pending(table_id, table)

    def fail(self, table_id: int, epoch: int, *, now_ms: int) -> None:
        """End a failed round; the table becomes pending again.

        Raises:
            FlussError: The table does not exist (7), or another worker holds it (50).
        """
        table = self._checked(table_id, epoch, now_ms)
        if table.state is _State.TIERING:
            self._make_pending(table_id, table)

    def _checked(self, table_id: int, epoch: int, now_ms: int) -> _Table:
        self._advance(now_ms)
        table = self._tables.get(table_id)
        if table is None:
            raise request_error(ErrorCode.TABLE_NOT_EXIST, f"The table {table_id} doesn't exist.")
        if epoch != table.epoch:
            raise request_error(
                ErrorCode.FENCED_TIERING_EPOCH_EXCEPTION,
                f"The tiering epoch {epoch} is not match current epoch {table.epoch} in coordinator "
                f"for table {table_id}.",
            )
        return table

    def _advance(self, now_ms: int) -> None:
        """Make those tables pending that are due, or whose worker sends no heartbeats."""
        changed: list[tuple[int, int]] = []
        for table_id, table in self._tables.items():
            if table.state is _State.SCHEDULED and table.due_ms <= now_ms:
                changed.append((table.due_ms, table_id))
            elif table.state is _State.TIERING and now_ms - table.heartbeat_ms >= LEASE_MS:
                changed.append((table.heartbeat_ms + LEASE_MS, table_id))
        for _, table_id in sorted(changed):
            self._make_pending(table_id, self._tables[table_id])

    def _make_pending(self, table_id: int, table: _Table) -> None:
        table.state = _State.PENDING
        table.epoch += 1
        self._pending.append(table_id)
