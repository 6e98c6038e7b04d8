"""Requests about a lake, sent without the product's client: tables, heartbeats, snapshots."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fluss.wire import messages as pb
from tests.support.servers.raw_client import COORDINATOR, RawClient, RefusedError

ENABLED = {"table.datalake.enabled": "true"}
SET, DELETE = 0, 1
FIELD_ID_MAX = 99
POLL_S, PATIENCE_S = 0.2, 30.0

Offset = tuple[int | None, int, int]
"""A partition id or None, a bucket, and the offset after its last row."""


class LakeRequests:
    """A database of a cluster with a lake.

    Args:
        bootstrap: The cluster.
        database: The database, which exists.
    """

    def __init__(self, bootstrap: str, database: str) -> None:
        self.client = RawClient(bootstrap)
        self.database = database

    def call(self, request: Any, *, version: int = 0) -> Any:
        return self.client.call(request, to=COORDINATOR, version=version)

    def refusal(self, request: Callable[[], Any]) -> int:
        """Return the code of the refusal of a call."""
        try:
            answer = request()
        except RefusedError as error:
            return error.code
        raise AssertionError(f"it was not refused: {answer}")

    def path(self, table: str) -> dict[str, str]:
        return {"database_name": self.database, "table_name": table}

    # --- tables -----------------------------------------------------------------------------------

    def create(
        self,
        table: str,
        columns: Sequence[tuple[str, Any]] = (("id", "BIGINT"), ("name", "STRING")),
        *,
        keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        bucket_keys: Sequence[str] = (),
        buckets: int = 2,
        properties: Mapping[str, str] = ENABLED,
        custom: Mapping[str, str] = {},
        ignore_if_exists: bool = False,
    ) -> None:
        described: dict[str, Any] = {
            "version": 1,
            "schema": {
                "version": 1,
                "columns": [
                    {
                        "id": place,
                        "name": name,
                        "data_type": _typed(data_type, nullable=name not in keys),
                        **({"comment": "its key"} if name in keys else {}),
                    }
                    for place, (name, data_type) in enumerate(columns)
                ],
                "highest_field_id": FIELD_ID_MAX,  # fields within columns have ids, too
            },
            "partition_key": list(partition_keys),
            "bucket_key": list(bucket_keys),
            "bucket_count": buckets,
            "properties": dict(properties),
            "custom_properties": dict(custom),
        }
        if keys:
            described["schema"]["primary_key"] = list(keys)
        self.call(
            pb.CreateTableRequest(
                table_path=self.path(table),
                table_json=json.dumps(described).encode(),
                ignore_if_exists=ignore_if_exists,
            )
        )

    def drop(self, table: str) -> None:
        self.call(pb.DropTableRequest(table_path=self.path(table), ignore_if_not_exists=False))

    def alter(self, table: str, key: str, value: str | None) -> None:
        """Set a property, or delete it."""
        request = pb.AlterTableRequest(table_path=self.path(table), ignore_if_not_exists=False)
        change = request.config_changes.add(config_key=key, op_type=DELETE)
        if value is not None:
            change.op_type, change.config_value = SET, value
        self.call(request)

    def add_column(self, table: str, name: str) -> None:
        request = pb.AlterTableRequest(table_path=self.path(table), ignore_if_not_exists=False)
        request.add_columns.add(
            column_name=name, data_type_json=b'{"type":"INTEGER"}', column_position_type=0
        )
        self.call(request)

    def info(self, table: str) -> Any:
        return self.call(pb.GetTableInfoRequest(table_path=self.path(table)))

    def table_id(self, table: str) -> int:
        return int(self.info(table).table_id)

    def described(self, table: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.info(table).table_json)
        return found

    # --- rounds -----------------------------------------------------------------------------------

    def heartbeat(self, **lists: Any) -> Any:
        """Send a heartbeat; its lists have (table id, coordinator epoch, tiering epoch)."""
        request = pb.LakeTieringHeartbeatRequest()
        for name, value in lists.items():
            if name in {"request_table", "force_finished_tables"}:
                _set(request, name, value)
                continue
            for table_id, coordinator_epoch, tiering_epoch in value:
                getattr(request, name).add(
                    table_id=table_id,
                    coordinator_epoch=coordinator_epoch,
                    tiering_epoch=tiering_epoch,
                )
        return self.call(request)

    def take(self, table_id: int) -> tuple[int, int, int]:
        """Ask for tables until this one is handed out; return what heartbeats say of it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            answer = self.heartbeat(request_table=True)
            found = answer.tiering_table
            if answer.HasField("tiering_table") and found.table_id == table_id:
                return table_id, answer.coordinator_epoch, found.tiering_epoch
            time.sleep(POLL_S)
        raise AssertionError(f"table {table_id} was not handed out")

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self, table: str, **which: Any) -> tuple[int, dict[tuple[int | None, int], int]]:
        """Return a snapshot's id and its offsets by partition id and bucket."""
        found = self.call(pb.GetLakeSnapshotRequest(table_path=self.path(table), **which))
        return found.snapshotId, {
            (each.partition_id if each.HasField("partition_id") else None, each.bucket_id): (
                each.log_offset
            )
            for each in found.bucket_snapshots
        }

    def prepare(
        self, table: str, offsets: Sequence[Offset], *, table_id: int = 0, **more: Any
    ) -> Any:
        request = pb.PrepareLakeTableSnapshotRequest(**more)
        table_id = table_id or self.table_id(table)
        added = request.bucket_offsets.add(table_id=table_id, table_path=self.path(table))
        for partition_id, bucket, offset in offsets:
            named = {} if partition_id is None else {"partition_id": partition_id}
            added.bucket_offsets.add(bucket_id=bucket, log_end_offset=offset, **named)
        (answer,) = self.call(request).prepare_lake_table_resp
        return answer

    def prepared(self, table: str, offsets: Sequence[Offset], **more: Any) -> str:
        """Prepare a snapshot and return the path of its offsets."""
        answer = self.prepare(table, offsets, **more)
        assert not answer.error_code, answer.error_message
        return str(answer.lake_table_offsets_path)

    def commit(
        self,
        table_id: int,
        snapshot_id: int,
        path: str | None,
        *,
        keep: int | None = None,
        readable: str | None = None,
        told: Sequence[Offset] | None = None,
    ) -> Any:
        request = pb.CommitLakeTableSnapshotRequest()
        if path is not None:
            added = request.lake_table_snapshot_metadata.add(
                table_id=table_id, snapshot_id=snapshot_id, tiered_bucket_offsets_file_path=path
            )
            if keep is not None:
                added.earliest_snapshot_id_to_keep = keep
            if readable is not None:
                added.readable_bucket_offsets_file_path = readable
        if told is not None:
            ends = request.tables_req.add(table_id=table_id, snapshot_id=snapshot_id)
            for partition_id, bucket, offset in told:
                named = {} if partition_id is None else {"partition_id": partition_id}
                ends.buckets_req.add(bucket_id=bucket, log_end_offset=offset, **named)
        (answer,) = self.call(request).table_resp
        return answer

    def committed(
        self, table: str, snapshot_id: int, offsets: Sequence[Offset], **more: Any
    ) -> str:
        """Prepare and commit a snapshot; return the path of its offsets."""
        path = self.prepared(table, offsets)
        answer = self.commit(self.table_id(table), snapshot_id, path, **more)
        assert not answer.error_code, answer.error_message
        return path


def local_file(path: str) -> Path:
    """The file of a path that a server on this machine returned."""
    return Path(path.removeprefix("file:"))


def _typed(data_type: Any, *, nullable: bool) -> dict[str, Any]:
    written = dict(data_type) if isinstance(data_type, Mapping) else {"type": data_type}
    return written if nullable else {**written, "nullable": False}


def _set(request: Any, name: str, value: Any) -> None:
    if isinstance(value, list):
        getattr(request, name).extend(value)
    else:
        setattr(request, name, value)
