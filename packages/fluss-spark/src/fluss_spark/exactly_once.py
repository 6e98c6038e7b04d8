"""What a write promises, and how a worker knows which task it is.

Spark runs tasks and whole micro-batches again, and sometimes two attempts at once. Appends are told
apart by what stays the same: the query's id in its checkpoint, the micro-batch's number and the
task's. How rows are then written once is `fluss.exactly_once`'s business; here it is decided
whether that is done, and said what can be relied on. Upserts need none of it: the same rows again
leave the same state. A query only has to keep to one table there: a table that was dropped and
created again lacks the rows of the micro-batches before.
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
from fluss.session.table import Table
from fluss_spark.column_names import matched
from fluss_spark.error_context import is_news
from fluss_spark.spark_options import FlussOptions

DeliveryMode = Literal["auto", "required", "never"]
WISHES: Final = ("auto", "required", "never")
_LOG = logging.getLogger("fluss.spark")

# What Spark tells the tasks of a micro-batch; the same when it runs again, also after a restart.
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
# Of which queries this process knows already that a table is theirs.
_BOUND_MAX: Final = 1_024
_bound: set[tuple[str, int]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryGuarantee:
    """What can be relied on when Spark repeats something.

    Args:
        claims: Whether appends are told apart, so that those that come again are left out.
        doubts: Why it is at least once all the same; nothing where it is exactly once.
        is_required: Whether nothing less will do.
        binds: Whether a query writes to one table only, which it must not find emptied.
    """

    claims: bool
    doubts: tuple[str, ...]
    is_required: bool = False
    binds: bool = False


def promise_of(options: FlussOptions, table: Table) -> DeliveryGuarantee:
    """What writes to a table can promise.

    Raises:
        InvalidValueError: The option `exactlyOnce` says something else.
        UnsupportedOperationError: Exactly once is required, and cannot be promised.
    """
    wish = options.choice("exactlyOnce", WISHES, "auto")
    is_log = not table.primary_key
    if wish == "never":
        return DeliveryGuarantee(claims=False, doubts=("exactlyOnce is never",) if is_log else ())
    doubts = tuple(delivery_caveats(table))
    if wish == "required" and doubts:
        raise UnsupportedOperationError(
            f"Writing to {table.name} is at least once, and exactlyOnce is required: "
            f"{'; '.join(doubts)}.",
            hint="create the table with 'table.replication.factor' of 2 or more and leave "
            "writer.acks at 'all'"
            if is_log
            else "sum the rows up in Spark, and upsert the sums",
        )
    return DeliveryGuarantee(
        claims=is_log and keeps_order(table),
        doubts=doubts,
        is_required=wish == "required",
        binds=not is_log,
    )


def columns_that_may_differ(options: FlussOptions, table: Table) -> tuple[str, ...]:
    """The columns of the option `mayDiffer`, whose values another attempt at a task may change.

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
            hint="leave it out: rows by key are written again, and the last values stay",
        )
    found = matched(named, table.schema.names)
    for name in found:
        if name not in table.schema.names:
            raise InvalidValueError(
                f"mayDiffer names the column {name!r}, which {table.name} does not have.",
                hint=did_you_mean(name, table.schema.names),
                option="mayDiffer",
            )
        if name in {*table.info.bucket_keys, *table.partition_by}:
            raise InvalidValueError(
                f"mayDiffer names {name!r}, by which {table.name} finds the bucket or the "
                "partition of a row: another value puts the row elsewhere, a second time.",
                hint="make the value from the row: sha2(concat_ws('-', ...), 256), not uuid()",
                option="mayDiffer",
            )
    return tuple(found)


def say(table: str, promise: DeliveryGuarantee) -> None:
    """Say what is promised, once and not with each micro-batch: Spark makes a sink for each."""
    if not is_news(table, *promise.doubts):
        return
    if promise.doubts:
        _LOG.warning("%s: written at least once: %s", table, "; ".join(promise.doubts))
    else:
        _LOG.info("%s: written exactly once", table)


def this_task(promise: DeliveryGuarantee, run: str | None) -> Task | None:
    """Which task this worker runs; None where its rows are not told apart.

    Args:
        promise: What has been promised.
        run: The write it belongs to, for writes that are no streams.

    Raises:
        UnsupportedOperationError: Exactly once is required, and Spark does not say which task
            this is, or will write its rows again under another name.
    """
    if not promise.claims:
        return None
    task = _task_of(run, promise)
    if task is None:
        said = "Spark does not tell its tasks which query and micro-batch they belong to"
        if promise.is_required:
            raise UnsupportedOperationError(
                f"{said}, and exactlyOnce is required.",
                hint="this version of Spark does it in another way; leave exactlyOnce out",
            )
        _LOG.warning("written at least once: %s", said)
    return task


def check_bound(promise: DeliveryGuarantee, table: Table, run: str | None) -> None:
    """Refuse a table that is another one than the query has written to before.

    Args:
        promise: What has been promised.
        table: The table, as it is now.
        run: The write that the task belongs to; None for a stream.

    Raises:
        WriterStateError: The table was dropped and created again, or the checkpoint is of another.
    """
    context = TaskContext.get()
    if not promise.binds or context is None:
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
        if is_news(table.name, "binding"):
            _LOG.warning("%s: dropping the table is not noticed: %s", table.name, error)
        return
    if bound != table_id:
        raise WriterStateError(
            f"This query has written to the table with the id {bound}, and {table.name} has the id "
            f"{table_id}: it was dropped and created again, or the checkpoint is that of another "
            "table. Rows of earlier micro-batches are not in it.",
            hint="begin with a new checkpoint, and every row is written again; or "
            "exactlyOnce=never, which goes on with what comes now",
            table=table.name,
            table_id=table_id,
        )
    if len(_bound) >= _BOUND_MAX:
        _bound.clear()
    _bound.add((query, table_id))


def _task_of(run: str | None, promise: DeliveryGuarantee) -> Task | None:
    context = TaskContext.get()
    if context is None:
        return None
    query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
    if run is not None:
        if promise.is_required and query:
            raise UnsupportedOperationError(
                "exactlyOnce is required, and a frame that foreachBatch writes into a log is written "
                "again whenever its micro-batch comes again.",
                hint="writeStream.format('fluss'); or upsert into a table with a primary key",
            )
        return Task(run=run, step=0, part=context.partitionId(), is_chained=False)
    if not query or batch is None or not batch.isdecimal():
        return None
    return Task(run=query, step=int(batch), part=context.partitionId())
