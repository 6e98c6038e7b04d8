"""The requests that tiering sends to the cluster; each function sends one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluss.admin.admin import admin_of
from fluss.connection.connection import ClientConnection
from fluss.errors import FlussError, SnapshotNotFoundError, error_from_code, unusable_answer
from fluss.model.paths import TableBucket, TablePath
from fluss.wire import messages
from fluss.wire.table_paths import write_table_path
from fluss_lake.tiering.plan_lease import Assigned, Beat
from fluss_lake.tiering.plan_round import BucketEnd, Known


async def known_snapshot(connection: ClientConnection, path: TablePath) -> Known | None:
    """The snapshot of a table's lake that the cluster knows; None if it knows none."""
    try:
        found = await admin_of(connection).get_latest_lake_snapshot(path)
    except SnapshotNotFoundError:
        return None
    return Known(snapshot_id=found.snapshot_id, ends=found.table_buckets_offset)


async def prepare_offsets(
    connection: ClientConnection,
    path: TablePath,
    table_id: int,
    ends: Mapping[TableBucket, BucketEnd],
) -> str:
    """Ask the server to write a file of offsets; return its path.

    The server adds the offsets of the snapshot that it knows. The file has no effect before
    `report_snapshot`.
    """
    request = messages.PrepareLakeTableSnapshotRequest()
    table = request.bucket_offsets.add(table_id=table_id, table_path=write_table_path(path))
    for bucket, end in ends.items():
        table.bucket_offsets.add(
            partition_id=bucket.partition_id,
            bucket_id=bucket.bucket_id,
            log_end_offset=end.end,
        )
    answer = await connection.cluster.ask_coordinator(
        request, messages.PrepareLakeTableSnapshotResponse
    )
    for prepared in answer.prepare_lake_table_resp:
        if prepared.error_code:
            raise error_from_code(prepared.error_code, prepared.error_message, table=str(path))
        if prepared.lake_table_offsets_path:
            return str(prepared.lake_table_offsets_path)
    raise unusable_answer("PREPARE_LAKE_TABLE_SNAPSHOT", f"it names no file of offsets of {path}")


async def report_snapshot(
    connection: ClientConnection,
    table_id: int,
    snapshot_id: int,
    offsets_path: str,
    ends: Mapping[TableBucket, BucketEnd],
    *,
    keep_from: int,
) -> None:
    """Report a snapshot to the cluster, without a retry.

    If no answer arrives, the cluster may know the snapshot or not.

    Args:
        connection: The connection.
        table_id: The table.
        snapshot_id: The snapshot.
        offsets_path: The file of its offsets.
        ends: The same offsets; tablet servers decide by them which segments they may delete.
        keep_from: The oldest snapshot whose offsets the server keeps; -1 for all.
    """
    request = messages.CommitLakeTableSnapshotRequest()
    if ends:
        reported = request.tables_req.add(table_id=table_id, snapshot_id=snapshot_id)
        for bucket, end in ends.items():
            reported.buckets_req.add(
                partition_id=bucket.partition_id,
                bucket_id=bucket.bucket_id,
                log_end_offset=end.end,
                max_timestamp=end.max_timestamp_ms,
            )
    request.lake_table_snapshot_metadata.add(
        table_id=table_id,
        snapshot_id=snapshot_id,
        tiered_bucket_offsets_file_path=offsets_path,
        earliest_snapshot_id_to_keep=keep_from,
    )
    answer = await connection.cluster.ask_coordinator(
        request, messages.CommitLakeTableSnapshotResponse, repeatable=False
    )
    for table in answer.table_resp:
        if table.error_code:
            raise error_from_code(table.error_code, table.error_message, table_id=table_id)


# --- heartbeats -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a heartbeat.

    Attributes:
        coordinator_epoch: The epoch of the coordinator.
        assigned: The table that the coordinator assigns to this worker; None if it assigns none.
        errors: The tables whose report the coordinator refuses, each with its error.
    """

    coordinator_epoch: int
    assigned: Assigned | None
    errors: Mapping[int, FlussError]


async def send_heartbeat(connection: ClientConnection, beat: Beat) -> Answered:
    """Report this worker's tables to the coordinator, and ask for another table."""
    request = messages.LakeTieringHeartbeatRequest(request_table=beat.wants_table)
    for listed, tables in (
        (request.tiering_tables, beat.tiering),
        (request.finished_tables, beat.finished),
        (request.failed_tables, beat.failed),
    ):
        for table in tables:
            listed.add(
                table_id=table.table_id,
                coordinator_epoch=table.coordinator_epoch,
                tiering_epoch=table.tiering_epoch,
            )
    request.force_finished_tables.extend(beat.again)
    answer = await connection.cluster.ask_coordinator(
        request, messages.LakeTieringHeartbeatResponse
    )
    assigned = None
    if answer.HasField("tiering_table"):
        given = answer.tiering_table
        assigned = Assigned(
            table_id=given.table_id,
            path=TablePath(given.table_path.database_name, given.table_path.table_name),
            tiering_epoch=given.tiering_epoch,
            coordinator_epoch=answer.coordinator_epoch,
        )
    refused = (answer.tiering_table_resp, answer.finished_table_resp, answer.failed_table_resp)
    return Answered(
        coordinator_epoch=answer.coordinator_epoch,
        assigned=assigned,
        errors={
            one.table_id: error_from_code(
                one.error.error_code, one.error.error_message, table_id=one.table_id
            )
            for responses in refused
            for one in responses
            if one.HasField("error") and one.error.error_code
        },
    )
