"""Copies tables into their lake in the plainest way: pyiceberg's own writer, one commit per round.

For tests of reading. It reads with this project's client, and writes with none of its code, so that
a mistake in the product's files cannot hide in the product's reader.
"""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fluss.wire import messages as pb
from tests.support.servers.raw_client import COORDINATOR, RawClient

SYSTEM = {"_bucket": "__bucket", "_log_offset": "__offset", "_commit_timestamp": "__timestamp"}
PLACE = ["_partition", "_bucket"]


def tier_log(table: Any, bootstrap: str, iceberg: Any, rows: pa.Table) -> int:
    """Append rows of a log to its lake, and tell the cluster; return the id of the snapshot.

    Args:
        table: The table of a session.
        bootstrap: The cluster.
        iceberg: The Iceberg table.
        rows: The rows, with `_partition`, `_bucket`, `_log_offset` and `_commit_timestamp`.
    """
    iceberg.refresh()
    iceberg.append(_for_lake(rows, iceberg))
    return _commit(table, bootstrap, iceberg, _ends(rows))


def tier_state(table: Any, bootstrap: str, iceberg: Any, *, is_of_snapshot: bool = False) -> int:
    """Replace the rows of the lake by the state of a table with a primary key.

    Its rows get the last offset of their bucket, as if one commit had written all of them.

    Args:
        table: The table of a session.
        bootstrap: The cluster.
        iceberg: The Iceberg table.
        is_of_snapshot: Whether rows get the offset and the time -1 instead, as those have that
            Fluss's job in Flink takes from a KV snapshot.
    """
    changes = table.scan(mode="changelog", with_metadata=True, lake="off").to_arrow()
    state = table.scan(as_of="latest", with_metadata=PLACE, lake="off").to_arrow()
    ends = _ends(changes)
    placed = _named(state).join(ends, PLACE)
    rows = placed.rename_columns(
        [
            {"_log_offset_max": "_log_offset", "_commit_timestamp_max": "_commit_timestamp"}.get(
                name, name
            )
            for name in placed.column_names
        ]
    )
    if is_of_snapshot:
        for name in ("_log_offset", "_commit_timestamp"):
            place, kind = rows.column_names.index(name), rows.schema.field(name).type
            unknown = pa.array([-1] * rows.num_rows, pa.int64()).cast(kind)
            rows = rows.set_column(place, name, unknown)
    iceberg.refresh()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deletes, which pyiceberg does not write
        iceberg.overwrite(_for_lake(rows, iceberg))
    return _commit(table, bootstrap, iceberg, ends)


def _for_lake(rows: pa.Table, iceberg: Any) -> pa.Table:
    schema = iceberg.schema().as_arrow()
    named = rows.rename_columns([SYSTEM.get(name, name) for name in rows.column_names])
    return named.select(schema.names).cast(schema)


def _ends(rows: pa.Table) -> pa.Table:
    """The last offset and time of each bucket."""
    return (
        _named(rows)
        .group_by(PLACE)
        .aggregate([("_log_offset", "max"), ("_commit_timestamp", "max")])
    )


def _named(rows: pa.Table) -> pa.Table:
    """The rows with an empty name for no partition: a join does not find a NULL again."""
    partitions = pc.fill_null(rows.column("_partition"), "")
    return rows.set_column(rows.column_names.index("_partition"), "_partition", partitions)


def _commit(table: Any, bootstrap: str, iceberg: Any, ends: pa.Table) -> int:
    info, path = table.info, table.info.table_path
    snapshot_id = int(iceberg.current_snapshot().snapshot_id)
    wire_path = {"database_name": path.database_name, "table_name": path.table_name}
    listed = table.partitions() if info.is_partitioned() else []
    ids = {each.partition_name: each.partition_id for each in listed}
    prepare = pb.PrepareLakeTableSnapshotRequest()
    offsets = prepare.bucket_offsets.add(table_id=info.table_id, table_path=wire_path)
    commit = pb.CommitLakeTableSnapshotRequest()
    told = commit.tables_req.add(table_id=info.table_id, snapshot_id=snapshot_id)
    for row in ends.to_pylist():
        place = {"partition_id": ids.get(row["_partition"]), "bucket_id": row["_bucket"]}
        end = row["_log_offset_max"] + 1
        offsets.bucket_offsets.add(**place, log_end_offset=end)
        time_ms = int(row["_commit_timestamp_max"].timestamp() * 1_000)
        told.buckets_req.add(**place, log_end_offset=end, max_timestamp=time_ms)
    with RawClient(bootstrap) as client:
        (prepared,) = client.call(prepare, to=COORDINATOR).prepare_lake_table_resp
        assert not prepared.error_code, prepared.error_message
        commit.lake_table_snapshot_metadata.add(
            table_id=info.table_id,
            snapshot_id=snapshot_id,
            tiered_bucket_offsets_file_path=prepared.lake_table_offsets_path,
            earliest_snapshot_id_to_keep=-1,
        )
        (committed,) = client.call(commit, to=COORDINATOR).table_resp
        assert not committed.error_code, committed.error_message
    return snapshot_id
