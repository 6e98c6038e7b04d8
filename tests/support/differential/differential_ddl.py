"""Random DDL on two servers: tables are created, altered, dropped, described, partitioned."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fluss.model.types.factory import DataTypes
from fluss.model.types.type_json import type_to_json
from fluss.wire import messages as pb
from tests.support.differential.differential_servers import (
    LostTableError,
    ServerPair,
    ServerUnderComparison,
)
from tests.support.differential.differential_tables import PARTITIONS, DifferentialTable
from tests.support.differential.differential_writes import await_newest_schema

COLUMNS_MAX = 20
_ATTEMPTS = 5
_PROBE = "probe"
_STRICT = {"ignore_if_not_exists": False}


def create(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    descriptor = table.descriptor
    ignore = chance.random() < 0.3

    def question(client: ServerUnderComparison) -> None:
        request = pb.CreateTableRequest(
            table_path=client.path(table.name),
            table_json=descriptor.to_json().encode(),
            ignore_if_exists=ignore,
        )
        client.call(request)
        for _ in range(_ATTEMPTS):
            if table.exists or _is_whole(client, table):
                return
            # Now and then a coordinator of 0.9.1 loses a creation: the table never gets a leader,
            # nor does any partition that it is given.
            client.call(
                pb.DropTableRequest(table_path=client.path(table.name), ignore_if_not_exists=True)
            )
            client.call(request)
        raise LostTableError(f"{table.name} gets no leader")

    servers.ask(f"{table.name} create", question)
    table.exists = table.exists or servers.succeeded


def _is_whole(client: ServerUnderComparison, table: DifferentialTable) -> bool:
    buckets = table.descriptor.bucket_count or 1
    if not table.kind.partition_by:
        return client.settles(table.name, None, buckets)
    path, spec = client.path(table.name), _spec("place", _PROBE)
    client.call(pb.CreatePartitionRequest(table_path=path, partition_spec=spec, **_STRICT))
    settled = client.settles(table.name, _PROBE, buckets)
    client.call(pb.DropPartitionRequest(table_path=path, partition_spec=spec, **_STRICT))
    return settled


def _spec(key: str, value: str) -> pb.PbPartitionSpec:
    return pb.PbPartitionSpec(partition_key_values=[pb.PbKeyValue(key=key, value=value)])


def drop(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    ignore = chance.random() < 0.5
    name = table.name if chance.random() < 0.5 else f"no_{table.name}"
    servers.ask(
        f"{name} drop",
        lambda client: _nothing(
            client.call(
                pb.DropTableRequest(table_path=client.path(name), ignore_if_not_exists=ignore)
            )
        ),
    )
    if name == table.name:
        table.dropped()


_NEW_TYPES = (DataTypes.int(), DataTypes.string(), DataTypes.timestamp(9), DataTypes.boolean())


def alter(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
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
            # 0.9.1 lets no client change it, main does: the option must be one neither changes.
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

    def question(client: ServerUnderComparison) -> None:
        request.table_path.CopyFrom(client.path(table.name))
        client.call(request)

    servers.ask(f"{table.name} alter {what}", question)
    if what == "add" and servers.succeeded and table.exists:
        table.add_column(name, data_type)
        if table.kind.keys:
            servers.ask(f"{table.name} learns", lambda client: await_newest_schema(client, table))


def describe(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    schema_id = chance.randrange(1, len(table.schemas) + 2)

    def info(client: ServerUnderComparison) -> Any:
        found = client.call(pb.GetTableInfoRequest(table_path=client.path(table.name)))
        return found.schema_id, json.loads(found.table_json)

    def schema(client: ServerUnderComparison) -> Any:
        request = pb.GetTableSchemaRequest(table_path=client.path(table.name), schema_id=schema_id)
        found = client.call(request)
        return found.schema_id, json.loads(found.schema_json)

    def names(client: ServerUnderComparison) -> Any:
        return sorted(
            client.call(pb.ListTablesRequest(database_name=client.database)).table_name
        ), client.call(pb.TableExistsRequest(table_path=client.path(table.name))).exists

    servers.ask(f"{table.name} describe", chance.choice([info, schema, names]))


def partition(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
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

    def question(client: ServerUnderComparison) -> None:
        path = client.path(table.name)
        if makes:
            make = pb.CreatePartitionRequest(
                table_path=path, partition_spec=spec, ignore_if_not_exists=ignore
            )
            client.call(make)
            for _ in range(_ATTEMPTS):
                if client.settles(table.name, name, buckets):
                    return
                client.call(unmake(path))
                client.call(make)
            raise LostTableError(f"the partition {name} of {table.name} gets no leader")
        client.call(unmake(path))

    servers.ask(f"{table.name} {'make' if makes else 'drop'} {key}={name}", question)
    if servers.succeeded and table.exists:
        table.partitioned(name, exists=makes)
    servers.ask(f"{table.name} partitions", lambda client: _partitions(client, table))


def _partitions(client: ServerUnderComparison, table: DifferentialTable) -> Any:
    listed = client.call(pb.ListPartitionInfosRequest(table_path=client.path(table.name)))
    return sorted(
        [(pair.key, pair.value) for pair in each.partition_spec.partition_key_values]
        for each in listed.partitions_info
    )


def _nothing(answer: Any) -> None:
    """What is answered is an empty message."""
