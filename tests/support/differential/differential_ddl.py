"""Random changes of tables on two servers: made, altered, dropped, described, partitioned."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fluss.model.types.factory import DataTypes
from fluss.model.types.type_json import type_to_json
from fluss.wire import messages as pb
from tests.support.differential.differential_servers import (
    LostTableError,
    ServerUnderComparison,
    Twins,
)
from tests.support.differential.differential_tables import PARTITIONS, TwinTable
from tests.support.differential.differential_writes import await_newest_schema

COLUMNS_MAX = 20
_ATTEMPTS = 5
_PROBE = "probe"
_STRICT = {"ignore_if_not_exists": False}


def create(chance: Random, twins: Twins, table: TwinTable) -> None:
    descriptor = table.descriptor
    ignore = chance.random() < 0.3

    def question(twin: ServerUnderComparison) -> None:
        request = pb.CreateTableRequest(
            table_path=twin.path(table.name),
            table_json=descriptor.to_json().encode(),
            ignore_if_exists=ignore,
        )
        twin.call(request)
        for _ in range(_ATTEMPTS):
            if table.exists or _is_whole(twin, table):
                return
            # Now and then a coordinator of 0.9.1 loses a creation: the table never gets a leader,
            # nor does any partition that it is given.
            twin.call(
                pb.DropTableRequest(table_path=twin.path(table.name), ignore_if_not_exists=True)
            )
            twin.call(request)
        raise LostTableError(f"{table.name} gets no leader")

    twins.ask(f"{table.name} create", question)
    table.exists = table.exists or twins.succeeded


def _is_whole(twin: ServerUnderComparison, table: TwinTable) -> bool:
    buckets = table.descriptor.bucket_count or 1
    if not table.kind.partition_by:
        return twin.settles(table.name, None, buckets)
    path, spec = twin.path(table.name), _spec("place", _PROBE)
    twin.call(pb.CreatePartitionRequest(table_path=path, partition_spec=spec, **_STRICT))
    settled = twin.settles(table.name, _PROBE, buckets)
    twin.call(pb.DropPartitionRequest(table_path=path, partition_spec=spec, **_STRICT))
    return settled


def _spec(key: str, value: str) -> pb.PbPartitionSpec:
    return pb.PbPartitionSpec(partition_key_values=[pb.PbKeyValue(key=key, value=value)])


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

    def question(twin: ServerUnderComparison) -> None:
        request.table_path.CopyFrom(twin.path(table.name))
        twin.call(request)

    twins.ask(f"{table.name} alter {what}", question)
    if what == "add" and twins.succeeded and table.exists:
        table.add_column(name, data_type)
        if table.kind.keys:
            twins.ask(f"{table.name} learns", lambda twin: await_newest_schema(twin, table))


def describe(chance: Random, twins: Twins, table: TwinTable) -> None:
    schema_id = chance.randrange(1, len(table.schemas) + 2)

    def info(twin: ServerUnderComparison) -> Any:
        found = twin.call(pb.GetTableInfoRequest(table_path=twin.path(table.name)))
        return found.schema_id, json.loads(found.table_json)

    def schema(twin: ServerUnderComparison) -> Any:
        request = pb.GetTableSchemaRequest(table_path=twin.path(table.name), schema_id=schema_id)
        found = twin.call(request)
        return found.schema_id, json.loads(found.schema_json)

    def names(twin: ServerUnderComparison) -> Any:
        return sorted(
            twin.call(pb.ListTablesRequest(database_name=twin.database)).table_name
        ), twin.call(pb.TableExistsRequest(table_path=twin.path(table.name))).exists

    twins.ask(f"{table.name} describe", chance.choice([info, schema, names]))


def partition(chance: Random, twins: Twins, table: TwinTable) -> None:
    if not table.kind.partition_by and chance.random() < 0.8:
        return
    name = chance.choice(PARTITIONS)
    key = "place" if chance.random() < 0.9 else "nothing"
    spec = _spec(key, name)
    ignore = chance.random() < 0.3
    makes = chance.random() < 0.7
    buckets = table.descriptor.bucket_count or 1

    def unmake(path: pb.PbTablePath) -> pb.DropPartitionRequest:
        return pb.DropPartitionRequest(
            table_path=path, partition_spec=spec, ignore_if_not_exists=ignore
        )

    def question(twin: ServerUnderComparison) -> None:
        path = twin.path(table.name)
        if makes:
            make = pb.CreatePartitionRequest(
                table_path=path, partition_spec=spec, ignore_if_not_exists=ignore
            )
            twin.call(make)
            for _ in range(_ATTEMPTS):
                if twin.settles(table.name, name, buckets):
                    return
                twin.call(unmake(path))
                twin.call(make)
            raise LostTableError(f"the partition {name} of {table.name} gets no leader")
        twin.call(unmake(path))

    twins.ask(f"{table.name} {'make' if makes else 'drop'} {key}={name}", question)
    if twins.succeeded and table.exists:
        table.partitioned(name, exists=makes)
    twins.ask(f"{table.name} partitions", lambda twin: _partitions(twin, table))


def _partitions(twin: ServerUnderComparison, table: TwinTable) -> Any:
    listed = twin.call(pb.ListPartitionInfosRequest(table_path=twin.path(table.name)))
    return sorted(
        [(pair.key, pair.value) for pair in each.partition_spec.partition_key_values]
        for each in listed.partitions_info
    )


def _nothing(answer: Any) -> None:
    """What is answered is an empty message."""
