"""Random writes on two servers: whole and partial rows, in order, repeated, and with gaps."""

from __future__ import annotations

import time
from random import Random
from typing import Any

from fluss.error_codes import ErrorCode
from fluss.model.schema.schema import Schema
from fluss.wire import messages as pb
from tests.support.differential.differential_reads import bucket_outcome
from tests.support.differential.differential_servers import (
    SETTLED_WITHIN_S,
    LostTableError,
    ServerPair,
    ServerUnderComparison,
)
from tests.support.differential.differential_tables import DifferentialTable

WRITERS = 3


def append(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    place = table.some_place(chance)
    schema_id = _some_schema(chance, table)
    rows = [
        table.random_row(chance, table.schemas[schema_id - 1], place[0])
        for _ in range(chance.choice([0, 1, 1, 2, 5, 40]))
    ]
    writer = _next_of_writer(chance, table, place)
    batch = table.log_batch(rows, schema_id=schema_id, writer=writer)
    acks = chance.choice([-1, -1, -1, 1, 7])

    def question(client: ServerUnderComparison) -> Any:
        request = pb.ProduceLogRequest(
            acks=acks, table_id=client.table_id(table.name), timeout_ms=10_000
        )
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=client.partition_id(table.name, place[0]),
            records=batch,
        )
        return [bucket_outcome(each, "base_offset") for each in client.call(request).buckets_resp]

    answer = servers.ask(f"{table.name} append {len(rows)} rows as {writer}", question)
    _note_writer(table, place, writer, answer)


def put(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
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

    def question(client: ServerUnderComparison) -> Any:
        request = pb.PutKvRequest(
            acks=-1,
            table_id=client.table_id(table.name),
            timeout_ms=10_000,
            target_columns=targets,
            agg_mode=mode,
        )
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=client.partition_id(table.name, place[0]),
            records=batch,
        )
        return [
            bucket_outcome(each, "log_end_offset") for each in client.call(request).buckets_resp
        ]

    what = f"{table.name} put {records} of schema {schema_id} in {targets} as {writer}, mode {mode}"
    answer = servers.ask(what, question)
    _note_writer(table, place, writer, answer)


def await_newest_schema(client: ServerUnderComparison, table: DifferentialTable) -> None:
    """Wait until the buckets know the newest schema; a tablet server of 0.9.1 learns it late.

    A write that is refused for its columns tells, because the server checks the schema first.
    """
    schema = table.newest
    row = table.random_row(Random(0), schema, None)
    batch = table.kv_batch([(row, False)], schema_id=len(table.schemas))
    request = pb.PutKvRequest(
        acks=-1, table_id=client.table_id(table.name), timeout_ms=10_000, target_columns=[1]
    )
    for partition in table.partitions or [None]:
        for bucket in range(table.descriptor.bucket_count or 1):
            request.buckets_req.add(
                bucket_id=bucket,
                partition_id=client.partition_id(table.name, partition),
                records=batch,
            )
    until = time.monotonic() + SETTLED_WITHIN_S
    while any(
        each.error_code == ErrorCode.SCHEMA_NOT_EXIST for each in client.call(request).buckets_resp
    ):
        if time.monotonic() > until:
            raise LostTableError(f"{table.name} does not learn its schema")
        time.sleep(0.005)


def _some_schema(chance: Random, table: DifferentialTable) -> int:
    newest = len(table.schemas)
    return newest if chance.random() < 0.7 else chance.randrange(1, newest + 1)


def _some_targets(chance: Random, table: DifferentialTable, schema: Schema) -> list[int]:
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
    chance: Random, table: DifferentialTable, place: tuple[str | None, int]
) -> tuple[int, int]:
    """Choose a writer and its sequence: usually the next one, sometimes a known one or a gap."""
    if chance.random() < 0.4:
        return -1, -1
    writer = chance.randrange(WRITERS)
    last = table.sequences.get((*place, writer), -1)
    step = chance.choice([1, 1, 1, 1, 1, 0, -1, -3, -5, -6, 2])
    return writer, max(last + step, 0)


def _note_writer(
    table: DifferentialTable, place: tuple[str | None, int], writer: tuple[int, int], answer: Any
) -> None:
    number, sequence = writer
    is_taken = answer is not None and answer[0][1] is None
    key = (*place, number)
    if number >= 0 and is_taken and sequence == table.sequences.get(key, -1) + 1:
        table.sequences[key] = sequence
