"""`tier`: copies the tables of a cluster into their lakes, from a program or the command line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fluss.connection.connection import ClientConnection
from fluss.connection.shared_connections import config_of, connection_for
from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss.net.cancellation import Cancellation
from fluss_lake.tiering.lake_tables import lake_tables
from fluss_lake.tiering.round_driver import check_has_lake
from fluss_lake.tiering.tier_options import table_paths, worker_options
from fluss_lake.tiering.worker import (
    RoundReport,
    Worker,
    WorkerOptions,
    rounds_now,
)
from fluss_lake.tiering.worker_notes import WorkerNotes, worker_name


@dataclass(slots=True)
class Tally:
    """The totals of a worker.

    Attributes:
        rounds: How many rounds were committed.
        changes: How many changes were copied.
        errors: The last error of each table whose last round failed.
    """

    rounds: int = 0
    changes: int = 0
    errors: dict[TablePath, FlussError] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, report: RoundReport) -> None:
        """Count a round."""
        with self._lock:
            if report.error is not None:
                self.errors[report.table] = report.error
                return
            self.errors.pop(report.table, None)
            if report.committed is not None and report.committed.snapshot_id is not None:
                self.rounds += 1
                self.changes += report.committed.changes


class TieringService:
    """Copies tables until it is stopped, or once.

    Args:
        connection: The connection.
        options: The worker's options.
        notes: The folder of notes for `fluss tier status`; None to write none.
        on_round: Called after each round.
    """

    def __init__(
        self,
        connection: ClientConnection,
        options: WorkerOptions,
        *,
        notes: Path | None = None,
        on_round: Callable[[RoundReport], None] | None = None,
    ) -> None:
        self._connection, self._options, self._on_round = connection, options, on_round
        name = worker_name()
        if options.rounds.worker == type(options.rounds)().worker:
            self._options = replace(options, rounds=replace(options.rounds, worker=name))
        servers = str(connection.config.bootstrap_servers)
        self._notes = WorkerNotes(notes, servers, self._options.rounds.worker)
        self._stopping = Cancellation()
        self._lock = threading.Lock()
        self.tally = Tally()

    def stop(self) -> None:
        """Stop soon, and abort the rounds in progress. Any thread may call it."""
        self._stopping.cancel()

    def run(self, *, once: bool = False, now: bool = False) -> Tally:
        """Copy tables.

        Args:
            once: Whether to return when the coordinator has no table to assign.
            now: Whether to copy all tables without asking the coordinator, and return.

        Raises:
            TableNotFoundError: A named table does not exist; the coordinator would never assign it.
                With `now`, the error is in the totals.
            UnsupportedOperationError: A named table has no lake that is written.
        """
        if now:
            tables = self._tables()
            rounds_now(
                self._connection,
                tables,
                self._options,
                self._reported,
                cancellation=self._stopping,
            )
            return self.tally
        self._check_named_tables()
        worker = Worker(self._connection, self._options, self._reported)
        forget = self._stopping.listen(worker.stop)
        try:
            worker.run(once=once)
        finally:
            forget()
        return self.tally

    def _check_named_tables(self) -> None:
        for path in sorted(self._options.tables or (), key=str):
            check_has_lake(self._connection.engine.run(self._connection.table(path)))

    def _tables(self) -> list[TablePath]:
        if self._options.tables is not None:
            return sorted(self._options.tables, key=str)
        found = self._connection.engine.run(lake_tables(self._connection))
        return [each.info.table_path for each in found]

    def _reported(self, report: RoundReport) -> None:
        with self._lock:
            self.tally.add(report)
            self._notes.add(report, time.time_ns() / 1e9)
            if self._on_round is not None:
                self._on_round(report)


def tier(
    tables: str | Iterable[str] | None = None,
    *,
    cluster: Any = None,
    once: bool = False,
    now: bool = False,
    on_round: Callable[[RoundReport], None] | None = None,
    **options: Any,
) -> Tally:
    """Copy tables into their lakes; see `fluss_lake.tier`."""
    made = worker_options(options)
    if tables is not None:
        made = replace(made, tables=table_paths(tables, cluster))
    config = cluster.config if hasattr(cluster, "config") else config_of(cluster)
    service = TieringService(connection_for(config), made, on_round=on_round)
    return service.run(once=once, now=now)
