"""Decides what a write guarantees when Spark repeats it, and identifies the task of a worker.

Spark runs tasks and whole micro-batches again, and sometimes two attempts concurrently. An append
is identified by what stays the same: the query's id in its checkpoint, the number of the
micro-batch and that of the task. `fluss.exactly_once` writes the rows of a task once; this file
decides whether to use it. Upserts need none of it: the same rows again leave the same state. There
a query only has to keep to one table: a table that was dropped and created again lacks the rows of
earlier micro-batches.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal

from pyspark import TaskContext

from fluss.errors import (
    InvalidValueError,
    UnsupportedOperationError,
    UnsupportedVersionError,
    WriterStateError,
)
from fluss.exactly_once import Task, bound_table_id, delivery_caveats, keeps_order
from fluss.model.did_you_mean import did_you_mean
from fluss.session import Table
from fluss_spark.column_names import match_names
from fluss_spark.error_context import should_log
from fluss_spark.spark_options import FlussOptions

DeliveryMode = Literal["auto", "required", "never"]
DELIVERY_MODES: Final = ("auto", "required", "never")
_LOG = logging.getLogger("fluss.spark")

# Properties of the tasks of a micro-batch; they stay the same when it runs again or restarts.
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
# Queries whose table this process has already checked.
_BOUND_MAX: Final = 1_024
_bound: set[tuple[str, int]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryGuarantee:
    """What holds when Spark repeats a task or a micro-batch.

    Args:
        claims: Whether tasks claim their appends, so that repeated ones are left out.
        caveats: Why writes are at least once all the same; empty where they are exactly once.
        is_required: Whether the user requires exactly once.
        binds: Whether a query is bound to one table, and must not find it emptied.
    """

    claims: bool
    caveats: tuple[str, ...]
    is_required: bool = False
    binds: bool = False


def guarantee_of(options: FlussOptions, table: Table) -> DeliveryGuarantee:
    """Return what writes to a table can guarantee.

    Raises:
        InvalidValueError: The option `exactlyOnce` has an unknown value.
        UnsupportedOperationError: Exactly once is required, and cannot be guaranteed.
    """
    mode = options.choice("exactlyOnce", DELIVERY_MODES, "auto")
    is_log = not table.primary_key
    if mode == "never":
        return DeliveryGuarantee(claims=False, caveats=("exactlyOnce is never",) if is_log else ())
    caveats = tuple(delivery_caveats(table))
    if mode == "required" and caveats:
        raise UnsupportedOperationError(
            f"Writing to {table.name} is at least once, and exactlyOnce is required: "
            f"{'; '.join(caveats)}.",
            hint="create the table with 'table.replication.factor' of 2 or more and leave "
            "writer.acks at 'all'"
            if is_log
            else "aggregate the rows in Spark, and upsert the results",
        )
    return DeliveryGuarantee(
        claims=is_log and keeps_order(table),
        caveats=caveats,
        is_required=mode == "required",
        binds=not is_log,
    )


def columns_that_may_differ(options: FlussOptions, table: Table) -> tuple[str, ...]:
    """Return the columns of `mayDiffer`, whose values another attempt at a task may change.

    Raises:
        InvalidValueError: The table has no such column, or it decides where a row goes.
        UnsupportedOperationError: The table has a primary key.
    """
    named = options.names("mayDiffer")
    if named is None:
        return ()
    if table.primary_key:
        raise UnsupportedOperationError(
            f"mayDiffer is for logs, and {table.name} has a primary key.",
            hint="leave it out: rows with a key are upserted again, and the last values stay",
        )
    found = match_names(named, table.schema.names)
    for name in found:
        if name not in table.schema.names:
            raise InvalidValueError(
                f"mayDiffer names the column {name!r}, which {table.name} does not have.",
                hint=did_you_mean(name, table.schema.names),
                option="mayDiffer",
            )
        if name in {*table.info.bucket_keys, *table.partition_by}:
            raise InvalidValueError(
                f"mayDiffer names {name!r}, which decides the bucket or the partition of a row of "
                f"{table.name}: another value would write the row a second time, elsewhere.",
                hint="make the value from the row: sha2(concat_ws('-', ...), 256), not uuid()",
                option="mayDiffer",
            )
    return tuple(found)


def log_guarantee(table: str, guarantee: DeliveryGuarantee) -> None:
    """Log what is guaranteed, once per query and not with each micro-batch."""
    if not should_log(table, *guarantee.caveats):
        return
    if guarantee.caveats:
        _LOG.warning("%s: written at least once: %s", table, "; ".join(guarantee.caveats))
    else:
        _LOG.info("%s: written exactly once", table)


def current_task(guarantee: DeliveryGuarantee, run: str | None) -> Task | None:
    """Return the task that this worker runs; None where tasks do not claim their rows.

    Args:
        guarantee: The guarantee of the write.
        run: The id of the write; None for a stream.

    Raises:
        UnsupportedOperationError: Exactly once is required, and Spark does not identify the task,
            or will write its rows again under another identity.
    """
    if not guarantee.claims:
        return None
    task = _task_of(run, guarantee)
    if task is None:
        reason = "Spark does not tell its tasks which query and micro-batch they belong to"
        if guarantee.is_required:
            raise UnsupportedOperationError(
                f"{reason}, and exactlyOnce is required.",
                hint="this version of Spark does it in another way; leave exactlyOnce out",
            )
        _LOG.warning("written at least once: %s", reason)
    return task


def check_same_table(guarantee: DeliveryGuarantee, table: Table, run: str | None) -> None:
    """Refuse a table that is not the one that the query wrote to before.

    Args:
        guarantee: The guarantee of the write.
        table: The table, as it is now.
        run: The id of the write; None for a stream.

    Raises:
        WriterStateError: The table was dropped and created again, or the checkpoint is of another.
    """
    context = TaskContext.get()
    if not guarantee.binds or context is None:
        return
    query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
    if not query or batch is None or not batch.isdecimal():
        return
    if run is not None:  # foreachBatch, which may write to several tables
        query = f"{query}_{blake2b(table.name.encode(), digest_size=8).hexdigest()}"
    table_id = table.info.table_id
    if (query, table_id) in _bound:
        return
    try:
        bound = bound_table_id(table, query, int(batch))
    except UnsupportedVersionError as error:
        if should_log(table.name, "binding"):
            _LOG.warning("%s: a dropped table will not be detected: %s", table.name, error)
        return
    if bound != table_id:
        raise WriterStateError(
            f"This query has written to the table with the id {bound}, and {table.name} has the id "
            f"{table_id}: it was dropped and created again, or the checkpoint is that of another "
            "table. Rows of earlier micro-batches are not in it.",
            hint="start with a new checkpoint, and every row is written again; or "
            "exactlyOnce=never, which continues with the rows that come now",
            table=table.name,
            table_id=table_id,
        )
    if len(_bound) >= _BOUND_MAX:
        _bound.clear()
    _bound.add((query, table_id))


def _task_of(run: str | None, guarantee: DeliveryGuarantee) -> Task | None:
    context = TaskContext.get()
    if context is None:
        return None
    query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
    if run is not None:
        if guarantee.is_required and query:
            raise UnsupportedOperationError(
                "exactlyOnce is required, and a frame that foreachBatch writes into a log is written "
                "again whenever its micro-batch comes again.",
                hint="writeStream.format('fluss'); or upsert into a table with a primary key",
            )
        return Task(run=run, step=0, part=context.partitionId(), is_chained=False)
    if not query or batch is None or not batch.isdecimal():
        return None
    return Task(run=query, step=int(batch), part=context.partitionId())
