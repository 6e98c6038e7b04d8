"""The lake of Fluss tables in Iceberg: scans read it together with the log, and `tier` writes it.

To read, install this package: `fluss` finds it by its entry point. A scan of a table that has a
snapshot in its lake then reads the lake and the log.
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

    The worker asks the coordinator for tables, as Fluss's own service does, and runs a round for
    each. Several workers may run concurrently. The function does not return until it is
    interrupted, unless `once` or `now` is set.

    Args:
        tables: The names of the tables; None for all that have a lake. A name without a database
            is in the database of the session, or of the URL that `cluster` is.
        cluster: A session, or settings to connect with; None for those of `fluss.connect`.
        once: Whether to return when the coordinator has no more tables to assign. It assigns a
            table when `table.datalake.freshness` has passed since the table was last copied.
        now: Whether to copy all rows of the tables now, without asking the coordinator. Do not use
            it while a job in Flink copies the same table: the job may add its rows twice.
        on_round: Called after each round.
        **options: `write_mode` (`"equality-deletes"` or `"copy-on-write"`), `rows_max`,
            `skips_lost`, `replaces_partitions`, `file_bytes`, `memory_bytes`, `settings`, `worker`
            (see `RoundOptions`); `tables_max`, `threads`, `round_s_max`, `carry` (see
            `WorkerOptions`).

    Returns:
        The totals, with the last error of each table that could not be copied.

    Raises:
        ConfigError: There is no option of a name; the hint has the nearest one.
        InvalidValueError: An option does not take a value.
        FlussError: The cluster cannot be reached. Errors of single tables are in the result.
    """
    from fluss_lake.tiering.service import tier as run

    return run(tables, cluster=cluster, once=once, now=now, on_round=on_round, **options)
