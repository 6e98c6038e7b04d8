"""The past of Fluss tables in Iceberg: scans read it together with the log, `tier` writes it.

Installing this package is enough for reading: `fluss` finds it by its entry point, and a scan of a
table that has a snapshot in its lake reads both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluss_lake.tiering.service import Tally
    from fluss_lake.tiering.worker import RoundReport

__all__ = ["tier"]


def tier(
    tables: str | Iterable[str] | None = None,
    *,
    cluster: Any = None,
    once: bool = False,
    now: bool = False,
    on_round: Callable[[RoundReport], None] | None = None,
    **options: Any,
) -> Tally:
    """Copy the rows of tables into their lakes.

    It asks the coordinator for tables, as Fluss's own service does, and makes a round of each:
    several workers may run beside each other. It does not return before it is interrupted, unless
    `once` or `now` is set.

    Args:
        tables: The names of the tables; all that have a lake otherwise.
        cluster: A session, or settings to connect with; as of `fluss.connect` otherwise.
        once: Whether it ends when the coordinator has no more tables to give. A table is given
            when its `table.datalake.freshness` has passed since it was last copied.
        now: Whether it copies all rows of the tables now, without asking the coordinator. Not
            while a job in Flink copies the same table: that one may add its rows twice.
        on_round: Called after each round.
        **options: `write_mode`, `rows_max`, `skips_lost`, `file_bytes`, `memory_bytes`, `settings`
            (of `RoundOptions`), `tables_max`, `threads`, `round_s_max`, `carry` (of
            `WorkerOptions`).

    Returns:
        What was done, with the last error of each table that could not be copied.

    Raises:
        FlussError: The cluster cannot be reached. Errors of single tables are in the result.
    """
    from fluss_lake.tiering.service import tier as run

    return run(tables, cluster=cluster, once=once, now=now, on_round=on_round, **options)
