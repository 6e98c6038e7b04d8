"""Writing to logs so that what is done again is done once: for engines that repeat their tasks.

    task = Task(run="9f2c…", step=57, part=3)      # a query, its micro-batch, one of its tasks
    receipt = append_exactly_once(table, task, batches)     # on a worker; any number of attempts
    commit_once(table, "9f2c…", 57, receipts)      # on the driver, before the next step begins

What must hold for that is in `docs/decisions/0006-once.md`: the same rows in the same order from
every attempt, acknowledgements of all replicas, and servers that lose nothing they acknowledged.
`delivery_caveats` says what of it can be seen not to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.exactly_once.claims import bind_run, commit_step, forget_run
from fluss.exactly_once.durability import default_replicas, keeps_without_replicas
from fluss.exactly_once.plan_claims import Receipt, Task
from fluss.exactly_once.task_writer import TaskWriter
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.write.write_batch import ACKS_ALL
from fluss.write.writer_pool import writer_pool

__all__ = [
    "Receipt",
    "Task",
    "append_exactly_once",
    "bound_table_id",
    "commit_once",
    "delivery_caveats",
    "end_run",
    "keeps_order",
]

REPLICAS_MIN = 2


def append_exactly_once(
    table: TableHandle,
    task: Task,
    batches: Iterable[pa.RecordBatch],
    *,
    may_differ: Collection[str] = (),
) -> Receipt:
    """Append the rows of a task to a log, whichever of them another attempt has not appended.

    Blocks until the servers have them all.

    Rows that merely break off, without an error, are written as far as they go, and so is the
    receipt: whoever knows that they did must not commit it. An attempt that has them all goes on
    behind them.

    Args:
        table: A log table.
        task: Which task this is an attempt at.
        batches: All its rows; other attempts have the same in the same order.
        may_differ: Columns in which their values may be others; rows that are there keep theirs.

    Raises:
        UnsupportedOperationError: The table has a primary key.
        InvalidValueError: A row does not fit the table.
        WriterStateError: Rows may not be written now: the step has been done, another attempt has
            written other rows, or rows that had been acknowledged are gone.
        FlussError: They could not be written; another attempt goes on where this one ended.
    """
    with TaskWriter(table, task, may_differ=may_differ) as writer:
        return writer.write(batches)


def commit_once(table: TableHandle, run: str, step: int, receipts: Sequence[Receipt]) -> None:
    """Note that all tasks of a step have ended, and forget what the step before needed.

    The next step must not begin before. A step that comes again is committed again.

    Args:
        table: The table.
        run: The run.
        step: The step.
        receipts: Those of all its tasks.
    """
    table.connection.engine.run(commit_step(table, run, step, receipts))


def end_run(table: TableHandle, run: str, receipts: Sequence[Receipt]) -> None:
    """Forget what a run of one step needed, whose tasks are not chained."""
    table.connection.engine.run(forget_run(table.connection.cluster, run, receipts))


def bound_table_id(table: TableHandle, run: str, step: int) -> int:
    """The id of the one table that a run writes to, for tables whose writes need no claims.

    The first call binds the run to the table. A table that was dropped and created again has
    another id, and not the rows of the steps before.

    Args:
        table: The table that is to be written to.
        run: The run.
        step: The step that is under way.
    """
    return table.connection.engine.run(bind_run(table, run, step))


def delivery_caveats(table: TableHandle) -> list[str]:
    """What keeps repeated writes to a table from being exactly once, as far as it can be seen.

    For a primary-key table that is about repeated upserts, which need no claims: the same rows
    again leave the same state.
    """
    info = table.info
    if info.has_primary_key():
        return _doubts_of_keys(info)
    doubts = []
    settings = writer_pool(table.connection).settings
    if settings.acks != ACKS_ALL:
        doubts.append(f"writer.acks is {settings.acks}, which waits for no replica")
    if not settings.is_idempotent:
        doubts.append("writer.enable-idempotence is false")
    replicas = info.options.replication_factor or _default_replicas(table)
    if replicas < REPLICAS_MIN and not _is_enough_alone(table):
        doubts.append(
            f"{info.table_path} has {replicas} replica, and a tablet server that crashes loses what "
            "it acknowledged in its last seconds"
        )
    return doubts


def _default_replicas(table: TableHandle) -> int:
    connection = table.connection
    return connection.engine.run(default_replicas(connection.cluster))


def _is_enough_alone(table: TableHandle) -> bool:
    connection = table.connection
    return connection.engine.run(keeps_without_replicas(connection.cluster))


def keeps_order(table: TableHandle) -> bool:
    """Whether the settings leave batches the numbers that tell them apart."""
    settings = writer_pool(table.connection).settings
    return settings.is_idempotent and settings.acks == ACKS_ALL


def _doubts_of_keys(info: TableInfo) -> list[str]:
    if info.options.merge_engine is MergeEngine.AGGREGATION:
        return [f"{info.table_path} adds up what is written, and so it does with what comes again"]
    return []
