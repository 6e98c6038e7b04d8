"""Random operations on a table of two servers: what is asked, and what both have to agree on.

Left out is where the embedded server is meant to answer otherwise (`embedded_differences` and
docs/server.md): rows nobody could read, appends to keyed tables, requests of several batches of
which some are duplicates. Tests of their own look at those.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from fluss.model.data_types import DataTypes
from fluss.model.schema import Schema
from fluss.model.table_options import KvFormat
from fluss.model.type_json import type_to_json
from fluss.records.log_batch import iter_log_batches
from fluss.records.log_records import read_log_records
from fluss.records.row_bytes import rows_from_batch
from fluss.records.value_batch import read_value_batch
from fluss.wire import messages as pb
from tests.support.seeded_values import exact
from tests.support.twin_servers import Twin, Twins
from tests.support.twin_tables import PARTITIONS, Row, TwinTable, layout_of

ALL_BYTES = 1 << 26
WRITERS = 3
COLUMNS_MAX = 20
IN_FAR_FUTURE_MS = 1 << 53

Operation = Callable[[Random, Twins, TwinTable], None]


def operate(chance: Random, twins: Twins, table: TwinTable) -> None:
    """Do one random operation."""
    if not table.exists and chance.random() < 0.9:
        create(chance, twins, table)
        return
    pool = _ON_KEYS if table.kind.keys else _ON_LOGS
    operation = chance.choices(list(pool), weights=list(pool.values()))[0]
    operation(chance, twins, table)


# --- tables -------------------------------------------------------------------------------------


def create(chance: Random, twins: Twins, table: TwinTable) -> None:
    descriptor = table.descriptor
    ignore = chance.random() < 0.3
    buckets = descriptor.bucket_count or 1

    def question(twin: Twin) -> None:
        request = pb.CreateTableRequest(
            table_path=twin.path(table.name),
            table_json=descriptor.to_json().encode(),
            ignore_if_exists=ignore,
        )
        twin.call(request)
        while not descriptor.is_partitioned and not twin.settles(table.name, None, buckets):
            # Now and then a coordinator of 0.9.1 loses a creation: the table never gets a leader.
            twin.call(
                pb.DropTableRequest(table_path=twin.path(table.name), ignore_if_not_exists=True)
            )
            twin.call(request)

    twins.ask(f"{table.name} create", question)
    table.exists = table.exists or twins.succeeded


def drop(chance: Random, twins: Twins, table: TwinTable) -> None:
    ignore = chance.random() < 0.5
    name = table.name if chance.random() < 0.5 else f"no_{table.name}"
    twins.ask(
        f"{name} drop",
        lambda twin: _nothing(
            twin.call(pb.DropTableRequest(table_path=twin.path(name), ignore_if_not_exists=ignore))
        ),
    )
    if name == table.name:
        table.dropped()


_NEW_TYPES = (DataTypes.int(), DataTypes.string(), DataTypes.timestamp(9), DataTypes.boolean())


def alter(chance: Random, twins: Twins, table: TwinTable) -> None:
    request = pb.AlterTableRequest(ignore_if_not_exists=False)
    what = chance.choice(["add", "add", "ttl", "bad", "position", "drop", "exists", "custom"])
    name, data_type = f"c{len(table.schemas)}", chance.choice(_NEW_TYPES)
    known = chance.choice(table.newest.column_names)
    match what:
        case "add" | "position" | "exists":
            if len(table.newest.columns) > COLUMNS_MAX:
                return
            request.add_columns.add(
                column_name=known if what == "exists" else name,
                data_type_json=json.dumps(type_to_json(data_type)).encode(),
                column_position_type=1 if what == "position" else 0,
            )
        case "ttl":
            # 0.9.1 lets nobody change it, main does: the option must be one neither changes.
            request.config_changes.add(
                config_key="table.replication.factor", config_value="1", op_type=0
            )
        case "bad":
            request.config_changes.add(config_key="table.no.such", config_value="1", op_type=0)
        case "custom":
            value = str(chance.randrange(3))
            request.config_changes.add(config_key="mine", config_value=value, op_type=0)
        case _:
            request.drop_columns.add(column_name=known)

    def question(twin: Twin) -> None:
        request.table_path.CopyFrom(twin.path(table.name))
        twin.call(request)

    twins.ask(f"{table.name} alter {what}", question)
    if what == "add" and twins.succeeded and table.exists:
        table.add_column(name, data_type)


def describe(chance: Random, twins: Twins, table: TwinTable) -> None:
    schema_id = chance.randrange(1, len(table.schemas) + 2)

    def info(twin: Twin) -> Any:
        found = twin.call(pb.GetTableInfoRequest(table_path=twin.path(table.name)))
        return found.schema_id, json.loads(found.table_json)

    def schema(twin: Twin) -> Any:
        request = pb.GetTableSchemaRequest(table_path=twin.path(table.name), schema_id=schema_id)
        found = twin.call(request)
        return found.schema_id, json.loads(found.schema_json)

    def names(twin: Twin) -> Any:
        return sorted(
            twin.call(pb.ListTablesRequest(database_name=twin.database)).table_name
        ), twin.call(pb.TableExistsRequest(table_path=twin.path(table.name))).exists

    twins.ask(f"{table.name} describe", chance.choice([info, schema, names]))


def partition(chance: Random, twins: Twins, table: TwinTable) -> None:
    if not table.kind.partition_by and chance.random() < 0.8:
        return
    name = chance.choice(PARTITIONS)
    key = "place" if chance.random() < 0.9 else "nothing"
    spec = pb.PbPartitionSpec(partition_key_values=[pb.PbKeyValue(key=key, value=name)])
    ignore = chance.random() < 0.3
    makes = chance.random() < 0.7
    buckets = table.descriptor.bucket_count or 1

    def unmake(path: pb.PbTablePath) -> pb.DropPartitionRequest:
        return pb.DropPartitionRequest(
            table_path=path, partition_spec=spec, ignore_if_not_exists=ignore
        )

    def question(twin: Twin) -> None:
        path = twin.path(table.name)
        if makes:
            make = pb.CreatePartitionRequest(
                table_path=path, partition_spec=spec, ignore_if_not_exists=ignore
            )
            twin.call(make)
            while not twin.settles(table.name, name, buckets):  # lost, as tables are
                twin.call(unmake(path))
                twin.call(make)
        else:
            twin.call(unmake(path))

    twins.ask(f"{table.name} {'make' if makes else 'drop'} {key}={name}", question)
    if twins.succeeded and table.exists:
        table.partitioned(name, exists=makes)
    twins.ask(f"{table.name} partitions", lambda twin: _partitions(twin, table))


def _partitions(twin: Twin, table: TwinTable) -> Any:
    listed = twin.call(pb.ListPartitionInfosRequest(table_path=twin.path(table.name)))
    return sorted(
        [(pair.key, pair.value) for pair in each.partition_spec.partition_key_values]
        for each in listed.partitions_info
    )


# --- writing ------------------------------------------------------------------------------------


def append(chance: Random, twins: Twins, table: TwinTable) -> None:
    place = table.some_place(chance)
    schema_id = _some_schema(chance, table)
    rows = [
        table.random_row(chance, table.schemas[schema_id - 1], place[0])
        for _ in range(chance.choice([0, 1, 1, 2, 5, 40]))
    ]
    writer = _next_of_writer(chance, table, place)
    batch = table.log_batch(rows, schema_id=schema_id, writer=writer)
    acks = chance.choice([-1, -1, -1, 1, 7])

    def question(twin: Twin) -> Any:
        request = pb.ProduceLogRequest(
            acks=acks, table_id=twin.table_id(table.name), timeout_ms=10_000
        )
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=twin.partition_id(table.name, place[0]),
            records=batch,
        )
        return [_said(each, "base_offset") for each in twin.call(request).buckets_resp]

    answer = twins.ask(f"{table.name} append {len(rows)} rows as {writer}", question)
    _note_writer(table, place, writer, answer)


def put(chance: Random, twins: Twins, table: TwinTable) -> None:
    place = table.some_place(chance)
    schema_id = _some_schema(chance, table)
    schema = table.schemas[schema_id - 1]
    deletes = chance.choice([0, 0, 0.3, 1])
    records = [
        (table.random_row(chance, schema, place[0]), chance.random() < deletes)
        for _ in range(chance.choice([1, 1, 2, 3, 12]))
    ]
    writer = _next_of_writer(chance, table, place)
    batch = table.kv_batch(records, schema_id=schema_id, writer=writer)
    targets = _some_targets(chance, table, schema)
    mode = chance.choice([0, 0, 0, 1, 2])

    def question(twin: Twin) -> Any:
        request = pb.PutKvRequest(
            acks=-1,
            table_id=twin.table_id(table.name),
            timeout_ms=10_000,
            target_columns=targets,
            agg_mode=mode,
        )
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=twin.partition_id(table.name, place[0]),
            records=batch,
        )
        return [_said(each, "log_end_offset") for each in twin.call(request).buckets_resp]

    what = f"{table.name} put {records} of schema {schema_id} in {targets} as {writer}, mode {mode}"
    answer = twins.ask(what, question)
    _note_writer(table, place, writer, answer)


def _some_schema(chance: Random, table: TwinTable) -> int:
    newest = len(table.schemas)
    return newest if chance.random() < 0.7 else chance.randrange(1, newest + 1)


def _some_targets(chance: Random, table: TwinTable, schema: Schema) -> list[int]:
    names = schema.column_names
    keys = [names.index(each) for each in table.kind.keys]
    rest = [each for each in range(len(names)) if each not in keys]
    numbered = table.kind.auto_increment is not None
    if chance.random() < (0.1 if numbered else 0.7):
        return []
    if numbered and chance.random() < 0.9:
        rest.remove(names.index(table.kind.auto_increment))
    chosen = rest if numbered else [each for each in rest if chance.random() < 0.5]
    return sorted(chosen + (keys if chance.random() < 0.9 else keys[1:]))


def _next_of_writer(
    chance: Random, table: TwinTable, place: tuple[str | None, int]
) -> tuple[int, int]:
    """A writer and its sequence: mostly the next one, now and then a known one, or a gap."""
    if chance.random() < 0.4:
        return -1, -1
    writer = chance.randrange(WRITERS)
    last = table.sequences.get((*place, writer), -1)
    step = chance.choice([1, 1, 1, 1, 1, 0, -1, -3, -5, -6, 2])
    return writer, max(last + step, 0)


def _note_writer(
    table: TwinTable, place: tuple[str | None, int], writer: tuple[int, int], answer: Any
) -> None:
    number, sequence = writer
    is_taken = answer is not None and answer[0][1] is None
    key = (*place, number)
    if number >= 0 and is_taken and sequence == table.sequences.get(key, -1) + 1:
        table.sequences[key] = sequence


# --- reading ------------------------------------------------------------------------------------


def fetch(chance: Random, twins: Twins, table: TwinTable) -> None:
    place = table.some_place(chance)
    offset = chance.choice([0, 0, -2, -1, chance.randrange(40), 10**6])
    positions = _some_positions(chance, table)
    # What the servers write themselves differs in bytes, never in rows; and where a first batch
    # has no more than the 48 bytes of a header, 0.9.1 does not give it out for so few bytes.
    bytes_max = ALL_BYTES if table.kind.keys else chance.choice([60, 500, ALL_BYTES])
    if positions is not None:
        bytes_max = ALL_BYTES
    read_log(twins, table, place, offset=offset, positions=positions, bytes_max=bytes_max)


def read_log(
    twins: Twins,
    table: TwinTable,
    place: tuple[str | None, int],
    *,
    offset: int = 0,
    positions: list[int] | None = None,
    bytes_max: int = ALL_BYTES,
) -> None:
    """Fetch, and compare every batch: where it is, whose it is, its rows and changes."""

    def question(twin: Twin) -> Any:
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=ALL_BYTES)
        asked = request.tables_req.add(
            table_id=twin.table_id(table.name),
            projection_pushdown_enabled=positions is not None,
            projected_fields=positions or (),
        )
        asked.buckets_req.add(
            bucket_id=place[1],
            partition_id=twin.partition_id(table.name, place[0]),
            fetch_offset=offset,
            max_fetch_bytes=bytes_max,
        )
        ((found,),) = (each.buckets_resp for each in twin.call(request).tables_resp)
        return (
            *_said(found, "high_watermark"),
            _batches(found.records, table, positions, is_projected=positions is not None),
        )

    twins.ask(f"{table.name} fetch {place} from {offset}, columns {positions}", question)


def _some_positions(chance: Random, table: TwinTable) -> list[int] | None:
    """Columns that every batch has, because 0.9.1 fails where one has not."""
    if chance.random() < 0.7:
        return None
    count = len(table.schemas[0].columns)
    chosen = sorted(chance.sample(range(count), chance.randrange(1, count + 1)))
    return chosen if chance.random() < 0.9 else [*chosen, chosen[0]]


def _batches(
    data: bytes, table: TwinTable, positions: list[int] | None, *, is_projected: bool
) -> Any:
    found = []
    for batch in iter_log_batches(data, verify_crc=not is_projected):
        header = batch.header
        place = (header.base_offset, header.last_offset_delta, header.schema_id)
        writer = (header.writer_id, header.batch_sequence, header.is_append_only)
        rows, changes = None, None
        if header.record_count:
            layout = layout_of(table.schemas[header.schema_id - 1])
            layout = layout if positions is None else layout.project(positions)
            records, kinds = read_log_records(batch, layout, table.log_format)
            encoded = rows_from_batch(records, layout, KvFormat.COMPACTED)
            rows = encoded.offsets.tobytes(), encoded.data.tobytes()
            changes = None if kinds is None else kinds.tolist()
        found.append((place, writer, changes, rows))
    return found


def offsets(chance: Random, twins: Twins, table: TwinTable) -> None:
    partition_name, _ = table.some_place(chance)
    kind = chance.randrange(3)
    moment = chance.choice([0, IN_FAR_FUTURE_MS])
    buckets = chance.choice([[0], [0, 1], [7]])

    def question(twin: Twin) -> Any:
        request = pb.ListOffsetsRequest(
            follower_server_id=-1,
            offset_type=kind,
            table_id=twin.table_id(table.name),
            partition_id=twin.partition_id(table.name, partition_name),
            bucket_id=buckets,
            startTimestamp=moment if kind == 2 else None,
        )
        found = twin.call(request).buckets_resp
        return sorted(_said(each, "offset") for each in found)

    twins.ask(f"{table.name} offsets {kind} of {buckets}", question)


def lookup(chance: Random, twins: Twins, table: TwinTable) -> None:
    place = table.some_place(chance)
    keys = [table.key(_some_row(chance, table, place)) for _ in range(chance.choice([1, 3, 20]))]
    # Where key columns are not in the key, 0.9.1 reads behind its end (see docs/server.md).
    inserts = chance.random() < 0.3 and not table.kind.partition_by

    def question(twin: Twin) -> Any:
        request = pb.LookupRequest(table_id=twin.table_id(table.name))
        if inserts:
            request.insert_if_not_exists = True
            request.acks, request.timeout_ms = -1, 10_000
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=twin.partition_id(table.name, place[0]),
            keys=keys,
        )
        ((found),) = twin.call(request).buckets_resp
        return found.bucket_id, _code(found), [_value(each, table) for each in found.values]

    twins.ask(f"{table.name} lookup {len(keys)} keys{' or insert' * inserts}", question)


def _some_row(chance: Random, table: TwinTable, place: tuple[str | None, int]) -> Row:
    return table.random_row(chance, table.newest, place[0])


def _value(found: Any, table: TwinTable) -> Any:
    return exact(table.read_value(found.values)) if found.HasField("values") else None


def prefix(chance: Random, twins: Twins, table: TwinTable) -> None:
    place = table.some_place(chance)
    prefixes = [table.key(_some_row(chance, table, place))[:1] for _ in range(2)]

    def question(twin: Twin) -> Any:
        request = pb.PrefixLookupRequest(table_id=twin.table_id(table.name))
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=twin.partition_id(table.name, place[0]),
            keys=prefixes,
        )
        (found,) = twin.call(request).buckets_resp
        lists = [
            [exact(table.read_value(value)) for value in each.values] for each in found.value_lists
        ]
        return found.bucket_id, _code(found), lists

    twins.ask(f"{table.name} prefix {prefixes}", question)


def limit_scan(chance: Random, twins: Twins, table: TwinTable) -> None:
    scan_first(twins, table, table.some_place(chance), limit=chance.choice([1, 3, 1000]))


def scan_first(
    twins: Twins, table: TwinTable, place: tuple[str | None, int], *, limit: int
) -> None:
    """LIMIT_SCAN: the first rows by key, or the last ones of a log."""

    def question(twin: Twin) -> Any:
        request = pb.LimitScanRequest(
            table_id=twin.table_id(table.name),
            partition_id=twin.partition_id(table.name, place[0]),
            bucket_id=place[1],
            limit=limit,
        )
        found = twin.call(request)
        if found.HasField("error_code"):
            return found.error_code
        if found.is_log_table:
            return _batches(found.records, table, None, is_projected=False)
        frames = read_value_batch(found.records)
        data = frames.data.tobytes()
        return [
            exact(table.read_value(data[start:end]))
            for start, end in zip(frames.starts.tolist(), frames.ends.tolist(), strict=True)
        ]

    twins.ask(f"{table.name} scan {limit} of {place}", question)


def stats(chance: Random, twins: Twins, table: TwinTable) -> None:
    place = table.some_place(chance)

    def question(twin: Twin) -> Any:
        request = pb.GetTableStatsRequest(table_id=twin.table_id(table.name))
        request.buckets_req.add(
            bucket_id=place[1], partition_id=twin.partition_id(table.name, place[0])
        )
        return [_said(each, "row_count") for each in twin.call(request).buckets_resp]

    twins.ask(f"{table.name} stats of {place}", question)


def snapshots(chance: Random, twins: Twins, table: TwinTable) -> None:
    partition_name, _ = table.some_place(chance)

    def question(twin: Twin) -> Any:
        request = pb.GetLatestKvSnapshotsRequest(table_path=twin.path(table.name))
        if partition_name is not None:
            request.partition_name = partition_name
        found = twin.call(request)
        return [
            (each.bucket_id, each.HasField("snapshot_id"), each.HasField("log_offset"))
            for each in found.latest_snapshots
        ]

    twins.ask(f"{table.name} snapshots", question)


# --- what answers say -----------------------------------------------------------------------------


def _said(bucket: Any, name: str) -> tuple[Any, ...]:
    value = getattr(bucket, name) if bucket.HasField(name) else None
    return bucket.bucket_id, _code(bucket), value


def _code(bucket: Any) -> int | None:
    return bucket.error_code if bucket.HasField("error_code") else None


def _nothing(answer: Any) -> None:
    """What is answered is an empty message."""


_ON_BOTH: dict[Operation, int] = {
    create: 1,
    drop: 1,
    alter: 3,
    describe: 2,
    partition: 3,
    fetch: 12,
    offsets: 4,
    limit_scan: 4,
    lookup: 4,
    stats: 1,
    snapshots: 1,
}
_ON_LOGS: dict[Operation, int] = {**_ON_BOTH, append: 30}
_ON_KEYS: dict[Operation, int] = {**_ON_BOTH, put: 40, lookup: 12, prefix: 4}
