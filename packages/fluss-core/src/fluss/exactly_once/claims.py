"""Reads, registers, compares and deletes claims and steps at the coordinator.

`exactly_once.plan_claims` decides what they hold and what follows from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluss.connection.connection import TableHandle
from fluss.errors import PartitionNotFoundError, WriterStateError
from fluss.exactly_once import plan_claims as plan
from fluss.exactly_once.producer_offsets import Registered, forget, register, registered
from fluss.exactly_once.writer_state import known_sequences
from fluss.log.extents import fetch_extents
from fluss.model.extent import Extent
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.leader_requests import Places
from fluss.write.partition_finder import PathFinder
from fluss.write.write_batch import WriterSettings
from fluss.write.writer_pool import expiry_of

FORGET_PARALLEL_MAX = 8
# How often partitions are looked for that were created a moment ago.
LOOKS_MAX = 20
# A table that has gained no column since it was made has this one.
FIRST_SCHEMA_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The claim that counts, and whether only this attempt can have written under it."""

    claim: plan.Claim
    is_first: bool


async def claim_buckets(
    table: TableHandle,
    task: plan.Task,
    number: int,
    places: Places,
    epoch: tuple[int, int] | None,
    *,
    now_ms: int,
) -> Claimed:
    """Claim buckets for a task, or read how another attempt has claimed some of them.

    Args:
        table: The table.
        task: The task.
        number: The number of the claim among those of the task.
        places: The buckets.
        epoch: The epoch of the task's claim before, and when it began; None for its first claim.
        now_ms: The time.

    Raises:
        WriterStateError: The task has been finished already, or the table is another one.
    """
    cluster = table.connection.cluster
    table_id = table.info.table_id
    name = task.claim_id(number)

    async def other_claim() -> Claimed | None:
        found = await _claim(cluster, name, table_id, places)
        return None if found is None else Claimed(claim=found, is_first=False)

    previous = await _step(cluster, task.run, task.step - 1) if task.is_chained else None
    if previous is not None and previous.table_id != table_id:
        raise plan.other_table(previous.table_id, table_id)
    if previous is None and task.is_chained and not await _is_start(table, task.run, task.step):
        # A step that was finished and never committed comes again, and its claims are there.
        found = await other_claim()
        if found is None:
            raise plan.overtaken(task)
        return found
    extents = await fetch_extents(cluster, places)
    _check_ends(previous, extents)
    began = epoch or plan.decide_epoch(task, previous, now_ms=now_ms)
    known = await _known(table, task, places, began[0])
    if None in known.values() and began[0] != task.step:
        # A server that does not report numbers cannot be asked where to continue.
        began = (task.step, now_ms)
        known = await _known(table, task, places, began[0])
    is_fresh = began[0] == task.step
    if is_fresh and any(each is not None and each >= 0 for each in known.values()):
        found = await other_claim()
        if found is None:
            raise _unclaimed(task)
        return found
    if previous is not None:
        # The numbers are those before this step only if no attempt had claimed it, and it was still
        # due, after they were read: an attempt may hang anywhere here, for any time.
        found = await other_claim()
        await _check_due(cluster, task)
        if found is not None:
            return found
    claim = plan.Claim(
        table_id=table_id,
        epoch=began[0],
        began_ms=began[1],
        schema_id=table.info.schema_id,
        buckets={
            bucket: plan.ClaimedBucket(
                anchor=extents[bucket].end, first=0 if is_fresh else _next(known[bucket])
            )
            for bucket in places
        },
    )
    kept_ms = plan.REGISTERED_MS if task.is_chained else plan.SHARED_MS
    is_first = await register(table, name, claim.to_numbers(), ttl_ms=kept_ms)
    winner = Claimed(claim=claim, is_first=True) if is_first else await other_claim()
    if previous is not None:
        try:
            await _check_due(cluster, task)
        except WriterStateError:
            if is_first:
                await forget(cluster, name)  # the claim of this step was deleted before
            raise
    if winner is None:
        raise _unclaimed(task)
    return winner


async def gained_columns(table: TableHandle, task: plan.Task) -> frozenset[str]:
    """Read which columns a table has gained since another attempt at a task claimed its buckets.

    Args:
        table: The table.
        task: The task.
    """
    if table.info.schema_id == FIRST_SCHEMA_ID:
        return frozenset()
    found = await registered(table.connection.cluster, task.claim_id(0))
    if found is None or found.table_id != table.info.table_id:
        return frozenset()
    claimed = plan.Claim.of_numbers(found.table_id, found.numbers).schema_id
    if claimed is None or claimed == table.info.schema_id:
        return frozenset()
    await table.schemas.load([claimed])
    before = table.schemas.get(claimed)
    names = frozenset(table.info.schema.column_names)
    return names.difference(names if before is None else before.column_names)


async def _check_due(cluster: Cluster, task: plan.Task) -> None:
    """Check that the step of a task is not committed; its claims count until then."""
    if await _step(cluster, task.run, task.step - 1) is None:
        raise plan.overtaken(task)


async def bind_run(table: TableHandle, run: str, step: int) -> int:
    """Bind a run to a table for good; the id of the table that it was first bound to."""
    return (await _start(table, run, step)).table_id


async def is_claimed(cluster: Cluster, task: plan.Task, number: int) -> bool:
    """Whether an attempt at a task has made a claim of this number."""
    return await registered(cluster, task.claim_id(number)) is not None


async def share(table: TableHandle, task: plan.Task) -> None:
    """Register, before anything is written, that there is more than one attempt at a task."""
    await register(table, task.shared_id, plan.shared_numbers(), ttl_ms=plan.SHARED_MS)


async def is_shared(cluster: Cluster, task: plan.Task) -> bool:
    """Whether there has been more than one attempt at a task."""
    return await registered(cluster, task.shared_id) is not None


async def commit_step(
    table: TableHandle, run: str, step: int, receipts: Sequence[plan.Receipt]
) -> None:
    """Register that a step is finished, and delete the entries of the step before. Idempotent.

    Args:
        table: The table.
        run: The run.
        step: The step, all of whose tasks have ended.
        receipts: The receipts of its tasks.

    Raises:
        WriterStateError: Another process has committed the step and later ones; or an earlier
            attempt at it had more tasks.
    """
    cluster = table.connection.cluster
    previous = await _step(cluster, run, step - 1)
    if previous is None and not await _may_commit(table, run, step, receipts):
        raise plan.overtaken(plan.Task(run=run, step=step, part=0))
    surplus = plan.Task(
        run=run, step=step, part=1 + max((each.part for each in receipts), default=-1)
    )
    if await is_claimed(cluster, surplus, 0):
        raise plan.more_tasks(surplus)
    done = plan.Step.of_receipts(table.info.table_id, step, receipts, previous)
    await register(table, plan.step_id(run, step), done.to_numbers())
    await _forget_all(cluster, _shared_ids(run, step, receipts))
    if previous is not None:
        await forget_claims(cluster, run, step - 1, previous.claims)
        await forget(cluster, plan.step_id(run, step - 1))


async def forget_claims(cluster: Cluster, run: str, step: int, claims: Mapping[int, int]) -> None:
    """Delete the claims of all tasks of a step, given how many each part has."""
    names = [
        plan.Task(run=run, step=step, part=part).claim_id(number)
        for part, count in claims.items()
        for number in range(count)
    ]
    await _forget_all(cluster, names)


async def forget_run(cluster: Cluster, run: str, receipts: Sequence[plan.Receipt]) -> None:
    """Delete all entries of a run of one step."""
    await forget_claims(cluster, run, 0, {each.part: each.claims for each in receipts})
    await _forget_all(cluster, _shared_ids(run, 0, receipts))


def _shared_ids(run: str, step: int, receipts: Sequence[plan.Receipt]) -> list[str]:
    return [
        plan.Task(run=run, step=step, part=each.part).shared_id
        for each in receipts
        if each.is_shared
    ]


async def _forget_all(cluster: Cluster, names: Sequence[str]) -> None:
    for first in range(0, len(names), FORGET_PARALLEL_MAX):
        some = names[first : first + FORGET_PARALLEL_MAX]
        await asyncio.gather(*(forget(cluster, each) for each in some))


async def _may_commit(
    table: TableHandle, run: str, step: int, receipts: Sequence[plan.Receipt]
) -> bool:
    """Whether a step without one before it is the first step, or is repeated."""
    cluster = table.connection.cluster
    is_first = await _is_start(table, run, step)
    if await _step(cluster, run, step) is not None:
        return True
    claimed = next((each.part for each in receipts if each.claims), None)
    if claimed is None or not is_first:
        return is_first
    # The claims of the first step are deleted when the second has been done.
    name = plan.Task(run=run, step=step, part=claimed).claim_id(0)
    return await registered(cluster, name) is not None


async def _is_start(table: TableHandle, run: str, step: int) -> bool:
    """Whether a run began, or begins now, with a step."""
    return plan.read_start((await _start(table, run, step)).numbers) == step


async def _start(table: TableHandle, run: str, step: int) -> Registered:
    """The table and the step that a run began with; these, if none are registered."""
    name, numbers = plan.start_id(run), plan.start_numbers(step)
    mine = Registered(table_id=table.info.table_id, numbers=tuple(numbers))
    if await register(table, name, numbers):
        return mine
    return await registered(table.connection.cluster, name) or mine


async def _step(cluster: Cluster, run: str, step: int) -> plan.Step | None:
    if step < 0:
        return None
    found = await registered(cluster, plan.step_id(run, step))
    return None if found is None else plan.Step.of_numbers(found.table_id, found.numbers)


async def _claim(cluster: Cluster, name: str, table_id: int, places: Places) -> plan.Claim | None:
    found = await registered(cluster, name)
    if found is None:
        return None
    if found.table_id != table_id:
        raise plan.other_table(found.table_id, table_id)
    claim = plan.Claim.of_numbers(found.table_id, found.numbers)
    if not any(each in claim.buckets for each in places):
        missing = next(iter(places))
        raise WriterStateError(
            f"An earlier attempt at this task has not claimed {missing}, which this one needs: "
            "its rows came in another order, or a partition was dropped and created again since.",
            hint="Rows must come in the same order each time: sort within partitions, or write into "
            "a primary-key table. Otherwise begin with a new checkpoint.",
            bucket=missing.bucket_id,
        )
    return claim


async def _known(
    table: TableHandle, task: plan.Task, places: Places, epoch: int
) -> dict[TableBucket, int | None]:
    writer_id = task.writer_id(epoch)
    return await known_sequences(
        table.connection.cluster,
        places,
        dict.fromkeys(places, writer_id),
        schema_id=table.info.schema_id,
    )


def _next(last_known: int | None) -> int:
    return 0 if last_known is None else last_known + 1


def _check_ends(previous: plan.Step | None, extents: dict[TableBucket, Extent]) -> None:
    """Check that the logs still hold the rows of the step before."""
    for bucket, end in ({} if previous is None else previous.ends).items():
        if bucket in extents and extents[bucket].end < end:
            raise plan.rows_gone(bucket, end=extents[bucket].end, needed=end)


def _unclaimed(task: plan.Task) -> WriterStateError:
    return WriterStateError(
        f"Rows of task {task.part} of step {task.step} of {task.run} are there, and its claim is "
        "not: this attempt is an old one whose step has been done since, or the claim was deleted.",
        hint="An old attempt is of no use any more. If the step has not been done, begin with a new "
        "checkpoint, after the rows that are there.",
        step=task.step,
    )


async def buckets_of(
    handle: TableHandle, paths: Sequence[PhysicalTablePath], settings: WriterSettings
) -> dict[TableBucket, PhysicalTablePath]:
    """Find all buckets of a table, or of some of its partitions, before anything is written.

    A partition that does not exist is created, as its first row would create it.

    Raises:
        PartitionNotFoundError: There is no such partition, and none may be created.
        UnsupportedOperationError: A partition has expired, and the table keeps its history.
    """
    table, cluster = handle.info, handle.connection.cluster
    finder = PathFinder(cluster, settings)
    finder.partition_keys[table.table_path] = tuple(table.partition_keys)
    finder.writes_history = False
    has_expired = expiry_of(table)
    if has_expired is not None:
        finder.has_expired[table.table_path] = has_expired
    # Known ids may be those of partitions that were dropped since, so all are asked for.
    missing = [each for each in paths if each.partition_name is not None]
    for _ in range(LOOKS_MAX):
        if not missing:
            break
        async for _, error in finder.find(missing):
            raise error
        missing = _missing(cluster, paths)
    for path in missing:
        raise PartitionNotFoundError(
            f"The partition {path.partition_name!r} of {table.table_path} was created and is not "
            "there.",
            hint="Does another program drop it at the same time?",
            table=str(table.table_path),
            partition=path.partition_name,
        )
    return {
        TableBucket.with_partition(table.table_id, cluster.view.partition_id(path), bucket): path
        for path in paths
        for bucket in range(cluster.view.bucket_count(path) or table.num_buckets)
    }


def _missing(cluster: Cluster, paths: Sequence[PhysicalTablePath]) -> list[PhysicalTablePath]:
    named = [each for each in paths if each.partition_name is not None]
    return [each for each in named if cluster.view.partition_id(each) is None]
