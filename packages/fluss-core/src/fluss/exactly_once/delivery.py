"""Appends to logs so that a repeated task writes its rows once: for engines that repeat tasks.

    task = Task(run="9f2c…", step=57, part=3)      # a query, its micro-batch, one of its tasks
    receipt = append_exactly_once(table, task, batches)     # on a worker; any number of attempts
    commit_once(table, "9f2c…", 57, receipts)      # on the driver, before the next step begins

`docs/decisions/0006-once.md` has the conditions: the same rows in the same order from every
attempt, acknowledgements of all replicas, and servers that lose nothing they acknowledged.
`delivery_caveats` lists the conditions that visibly do not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError
from fluss.exactly_once.claims import bind_run, commit_step, forget_run
from fluss.exactly_once.plan_claims import Receipt, Task
from fluss.exactly_once.task_writer import TaskWriter
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.write.write_batch import ACKS_ALL
from fluss.write.writer_pool import writer_pool

REPLICAS_MIN: Final = 2
DURABILITY_KEY: Final = "embedded.durability"
REPLICAS_KEY: Final = "default.replication.factor"
_KEEPING: Final = frozenset({"process", "disk"})


class AnyTable(Protocol):
    """A table: `session.table(...)`, or a handle of one."""

    def __fluss_table__(self) -> TableHandle: ...


def append_exactly_once(
    table: AnyTable,
    task: Task,
    batches: Iterable[pa.RecordBatch],
    *,
    may_differ: Collection[str] = (),
) -> Receipt:
    """Append the rows of a task to a log, except those that another attempt has appended.

    Blocks until the servers have them all.

    Rows that break off without an error are written as far as they go, and the receipt counts them:
    a caller that knows of it must not commit the receipt. An attempt that has all rows continues
    after them.

    Args:
        table: A log table.
        task: The task.
        batches: All its rows; other attempts have the same rows in the same order.
        may_differ: Columns whose values may differ; rows that are in the log keep theirs.

    Raises:
        UnsupportedOperationError: The table has a primary key.
        InvalidValueError: A row does not fit the table.
        WriterStateError: The rows may not be written now: the step is finished, another attempt has
            written other rows, or acknowledged rows are gone.
        FlussError: They could not be written; another attempt continues where this one ended.
    """
    with TaskWriter(table.__fluss_table__(), task, may_differ=may_differ) as writer:
        return writer.write(batches)


def commit_once(table: AnyTable, run: str, step: int, receipts: Sequence[Receipt]) -> None:
    """Register that all tasks of a step have ended, and delete the entries of the step before.

    The next step must not begin earlier. A repeated step is committed again.

    Args:
        table: The table.
        run: The run.
        step: The step.
        receipts: The receipts of all its tasks.
    """
    handle = table.__fluss_table__()
    handle.connection.engine.run(commit_step(handle, run, step, receipts))


def end_run(table: AnyTable, run: str, receipts: Sequence[Receipt]) -> None:
    """Delete the entries of a run of one step, whose tasks are not chained."""
    connection = table.__fluss_table__().connection
    connection.engine.run(forget_run(connection.cluster, run, receipts))


def bound_table_id(table: AnyTable, run: str, step: int) -> int:
    """Bind a run to one table, for tables whose writes need no claims.

    The first call binds the run to the table. A table that was dropped and created again has
    another id, and not the rows of the steps before.

    Args:
        table: The table that is written to.
        run: The run.
        step: The step in progress.

    Returns:
        The id of the table that the run is bound to.
    """
    handle = table.__fluss_table__()
    return handle.connection.engine.run(bind_run(handle, run, step))


def delivery_caveats(table: AnyTable) -> list[str]:
    """List what keeps repeated writes to a table from being exactly once, as far as is known.

    For a primary-key table it is about repeated upserts, which need no claims: upserting the same
    rows again leaves the same state.
    """
    handle = table.__fluss_table__()
    info, connection = handle.info, handle.connection
    if info.has_primary_key():
        return _caveats_of_keys(info)
    caveats = []
    settings = writer_pool(connection).settings
    if settings.acks != ACKS_ALL:
        caveats.append(f"writer.acks is {settings.acks}, which waits for no replica")
    if not settings.is_idempotent:
        caveats.append("writer.enable-idempotence is false")
    replicas = info.options.replication_factor
    if replicas is None or replicas < REPLICAS_MIN:
        cluster_options = connection.engine.run(_cluster_options(connection.cluster))
        replicas = replicas or _default_replicas(cluster_options)
        if replicas < REPLICAS_MIN and cluster_options.get(DURABILITY_KEY) not in _KEEPING:
            caveats.append(
                f"{info.table_path} has {replicas} replica, and a tablet server that crashes loses what "
                "it acknowledged in its last seconds"
            )
    return caveats


def _default_replicas(cluster_options: Mapping[str, str]) -> int:
    """How many replicas a table has that names no number; one where the cluster names none."""
    shown = cluster_options.get(REPLICAS_KEY, "")
    return int(shown) if shown.isascii() and shown.isdecimal() else 1


async def _cluster_options(cluster: Cluster) -> dict[str, str]:
    """The settings of the servers; none where the user may not ask for them."""
    try:
        answer = await cluster.ask_any(
            messages.DescribeClusterConfigsRequest(),
            messages.DescribeClusterConfigsResponse,
        )
    except FlussError:
        return {}
    return {option.config_key: option.config_value for option in answer.configs}


def keeps_order(table: AnyTable) -> bool:
    """Whether the settings number batches, so that servers recognise a repeated one."""
    settings = writer_pool(table.__fluss_table__().connection).settings
    return settings.is_idempotent and settings.acks == ACKS_ALL


def _caveats_of_keys(info: TableInfo) -> list[str]:
    if info.options.merge_engine is MergeEngine.AGGREGATION:
        return [f"{info.table_path} adds up what is written, and so it does with what comes again"]
    return []
