"""Requests about the lake: its snapshots, and the rounds of tiering workers.

Without a lake, the responses are those of a Fluss cluster without one. The server trusts workers as
Fluss does: it does not look up a snapshot id in the lake, and accepts offsets that go backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_table_path, write_table_path
from fluss_server.catalog.catalog_entries import TableEntry
from fluss_server.lake.lake_snapshots import KnownSnapshot
from fluss_server.lake.server_lake import ServerLake
from fluss_server.lake.tiered_tables import remove_files
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import code_and_text, request_error
from fluss_server.server_node import Node

_NO_COORDINATOR_EPOCH = 0


async def get_lake_snapshot(
    node: Node, call: Call, request: pb.GetLakeSnapshotRequest
) -> pb.GetLakeSnapshotResponse:
    """Return a snapshot of the lake: the newest, one by its id, or the newest readable one."""
    del call
    by_id = request.snapshot_id if request.HasField("snapshot_id") else None
    if request.readable and by_id is not None:
        raise request_error(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "A request for a lake snapshot names an id or asks for the newest readable one, not both.",
        )
    table = node.catalog.table(read_table_path(request.table_path))
    found = await node.in_storage(node.tiered.snapshot, table, by_id, is_readable=request.readable)
    if found is None:
        kind = "readable snapshot" if request.readable else "snapshot"
        named = "" if by_id is None else f", snapshot id: {by_id}"
        raise request_error(
            ErrorCode.LAKE_SNAPSHOT_NOT_EXIST,
            f"Lake table {kind} doesn't exist for table: {table.path}, table id: "
            f"{table.table_id}{named}",
        )
    response = pb.GetLakeSnapshotResponse(table_id=table.table_id, snapshotId=found[0])
    for (partition_id, bucket), offset in sorted(found[1].items(), key=_place):
        added = response.bucket_snapshots.add(bucket_id=bucket, log_offset=offset)
        if partition_id is not None:
            added.partition_id = partition_id
    return response


def _place(item: tuple[tuple[int | None, int], int]) -> tuple[int, int]:
    (partition_id, bucket), _ = item
    return -1 if partition_id is None else partition_id, bucket


# --- the rounds of workers ------------------------------------------------------------------------


def lake_heartbeat(
    node: Node, call: Call, request: pb.LakeTieringHeartbeatRequest
) -> pb.LakeTieringHeartbeatResponse:
    """End and extend the rounds of a worker, and assign a table if it asks for one."""
    del call
    lake, now_ms = node.lake, node.now_ms()
    if lake is None:
        return pb.LakeTieringHeartbeatResponse(coordinator_epoch=_NO_COORDINATOR_EPOCH)
    response = pb.LakeTieringHeartbeatResponse(coordinator_epoch=lake.coordinator_epoch)
    forced = set(request.force_finished_tables)
    plan = lake.plan

    def fail(each: Any) -> None:
        plan.fail(each.table_id, each.tiering_epoch, now_ms=now_ms)

    def renew(each: Any) -> None:
        plan.renew(each.table_id, each.tiering_epoch, now_ms=now_ms)

    def finish(each: Any) -> None:
        is_forced = each.table_id in forced
        plan.finish(each.table_id, each.tiering_epoch, is_forced=is_forced, now_ms=now_ms)

    _apply(lake, request.failed_tables, response.failed_table_resp, fail)
    _apply(lake, request.tiering_tables, response.tiering_table_resp, renew)
    _apply(lake, request.finished_tables, response.finished_table_resp, finish)
    if request.request_table:
        assigned = plan.request(now_ms=now_ms)
        if assigned is not None:
            response.tiering_table.table_id = assigned.table_id
            response.tiering_table.table_path.CopyFrom(write_table_path(assigned.path))
            response.tiering_table.tiering_epoch = assigned.epoch
    return response


def _apply(
    lake: ServerLake, tables: Iterable[Any], responses: Any, change: Callable[[Any], None]
) -> None:
    for table in tables:
        added = responses.add(table_id=table.table_id)
        try:
            if table.coordinator_epoch != lake.coordinator_epoch:
                raise request_error(
                    ErrorCode.INVALID_COORDINATOR_EXCEPTION,
                    f"The coordinator epoch {table.coordinator_epoch} in request is not match "
                    f"current coordinator epoch {lake.coordinator_epoch} for table {table.table_id}.",
                )
            change(table)
        except FlussError as error:
            added.error.error_code, added.error.error_message = code_and_text(error)


# --- snapshots ------------------------------------------------------------------------------------


async def prepare_snapshot(
    node: Node, call: Call, request: pb.PrepareLakeTableSnapshotRequest
) -> pb.PrepareLakeTableSnapshotResponse:
    """Write the offsets of snapshots into files before their commit; return the files' paths."""
    _lake_of(node, call)
    response = pb.PrepareLakeTableSnapshotResponse()
    for given in request.bucket_offsets:
        added = response.prepare_lake_table_resp.add()
        try:
            table = _table_of(node, given.table_id)
            offsets = {
                _bucket(node, table, each): each.log_end_offset for each in given.bucket_offsets
            }
            if not request.ignore_previous_table_offsets:
                _, known = await node.in_storage(node.tiered.newest, table)
                offsets = {**known, **offsets}
            path = await node.in_storage(node.tiered.store, table, offsets)
            added.table_id, added.lake_table_offsets_path = table.table_id, path
        except (FlussError, OSError) as error:
            added.error_code, added.error_message = code_and_text(error)
    return response


async def commit_snapshot(
    node: Node, call: Call, request: pb.CommitLakeTableSnapshotRequest
) -> pb.CommitLakeTableSnapshotResponse:
    """Record snapshots of the lake; retention may then delete their old rows from the log."""
    _lake_of(node, call)
    response = pb.CommitLakeTableSnapshotResponse()
    told = {each.table_id: each for each in request.tables_req}
    named = {each.table_id: each for each in request.lake_table_snapshot_metadata}
    for table_id in {**named, **told}:
        added = response.table_resp.add(table_id=table_id)
        try:
            if table_id in named:
                await _commit(node, named[table_id], told.get(table_id))
            elif named:
                raise request_error(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Lake snapshot metadata is null for table {table_id}",
                )
            else:
                await _commit_offsets(node, told[table_id])
        except (FlussError, OSError) as error:
            added.error_code, added.error_message = code_and_text(error)
    return response


async def _commit(node: Node, named: Any, told: Any | None) -> None:
    table = _table_of(node, named.table_id)
    name, offsets = await node.in_storage(
        node.tiered.check_file, table, named.tiered_bucket_offsets_file_path
    )
    readable: str | None = None
    if named.HasField("readable_bucket_offsets_file_path"):
        readable, _ = await node.in_storage(
            node.tiered.check_file, table, named.readable_bucket_offsets_file_path
        )
    ends = {} if told is None else _told_offsets(node, table, told)
    kept = named.earliest_snapshot_id_to_keep
    await _record(
        node,
        table,
        KnownSnapshot(snapshot_id=named.snapshot_id, tiered=name, readable=readable),
        earliest_kept=kept if named.HasField("earliest_snapshot_id_to_keep") else None,
        ends={**offsets, **{each: max(end, offsets.get(each, 0)) for each, end in ends.items()}},
    )


async def _commit_offsets(node: Node, told: Any) -> None:
    """Record a snapshot of a worker before 0.9, whose request holds the offsets."""
    table = _table_of(node, told.table_id)
    ends = _told_offsets(node, table, told)
    _, known = await node.in_storage(node.tiered.newest, table)
    path = await node.in_storage(node.tiered.store, table, {**known, **ends})
    name, offsets = await node.in_storage(node.tiered.check_file, table, path)
    await _record(
        node,
        table,
        KnownSnapshot(snapshot_id=told.snapshot_id, tiered=name, readable=name),
        earliest_kept=None,
        ends=offsets,
    )


async def _record(
    node: Node,
    table: TableEntry,
    added: KnownSnapshot,
    *,
    earliest_kept: int | None,
    ends: Any,
) -> None:
    table = _table_of(node, table.table_id)  # it may have been dropped in the meantime
    unneeded = node.tiered.commit(table, added, earliest_kept=earliest_kept, now_ms=node.now_ms())
    node.tiered.raise_ends(table, ends)
    await node.in_storage(remove_files, unneeded)
    node.expire_soon(table)


def _told_offsets(node: Node, table: TableEntry, told: Any) -> dict[tuple[int | None, int], int]:
    return {
        _bucket(node, table, each): each.log_end_offset
        for each in told.buckets_req
        if each.HasField("log_end_offset")
    }


def _bucket(node: Node, table: TableEntry, given: Any) -> tuple[int | None, int]:
    """Return the bucket of a message, as the pair that is used in files of offsets."""
    partition_id = given.partition_id if given.HasField("partition_id") else None
    counts = [each.bucket_count for each in node.catalog.partitions_of(table)]
    has_partition = partition_id is not None
    if has_partition != table.descriptor.is_partitioned or not 0 <= given.bucket_id < max(
        [table.bucket_count, *counts]
    ):
        raise request_error(
            ErrorCode.UNKNOWN_TABLE_OR_BUCKET_EXCEPTION,
            f"{table.path} has no bucket {given.bucket_id}"
            + (f" of partition {partition_id}." if has_partition else "."),
        )
    return partition_id, given.bucket_id


def _table_of(node: Node, table_id: int) -> TableEntry:
    found = node.catalog.find_table_by_id(table_id)
    if found is None:
        raise request_error(ErrorCode.TABLE_NOT_EXIST, f"The table {table_id} doesn't exist.")
    return found


def _lake_of(node: Node, call: Call) -> ServerLake:
    if node.lake is None:
        raise request_error(
            ErrorCode.LAKE_STORAGE_NOT_CONFIGURED_EXCEPTION,
            f"{call.key.name}: this cluster has no lake.",
            hint="Start the server with one: fluss server --lake",
        )
    return node.lake


HANDLERS = (
    message_handler(ApiKey.GET_LAKE_SNAPSHOT, get_lake_snapshot),
    message_handler(ApiKey.LAKE_TIERING_HEARTBEAT, lake_heartbeat),
    message_handler(ApiKey.PREPARE_LAKE_TABLE_SNAPSHOT, prepare_snapshot),
    message_handler(ApiKey.COMMIT_LAKE_TABLE_SNAPSHOT, commit_snapshot),
)
