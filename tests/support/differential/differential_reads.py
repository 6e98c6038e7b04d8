"""Random reads on two servers, with responses normalized so that both must agree."""

from __future__ import annotations

from random import Random
from typing import Any

from fluss.model.tables.table_options import KvFormat
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.kv.value_batch import read_value_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_records import read_log_records
from fluss.wire import messages as pb
from tests.support.differential.differential_servers import ServerPair, ServerUnderComparison
from tests.support.differential.differential_tables import DifferentialTable, Row, layout_of
from tests.support.generators.seeded_values import exact

ALL_BYTES = 1 << 26
IN_FAR_FUTURE_MS = 1 << 53


def fetch(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    place = table.some_place(chance)
    offset = chance.choice([0, 0, -2, -1, chance.randrange(40), 10**6])
    positions = _some_positions(chance, table)
    # Batches that the servers write themselves differ in bytes, never in rows. Where a first batch
    # is only the 48 bytes of a header, 0.9.1 does not return it for so few bytes.
    bytes_max = ALL_BYTES if table.kind.keys else chance.choice([60, 500, ALL_BYTES])
    if positions is not None:
        bytes_max = ALL_BYTES
    read_log(servers, table, place, offset=offset, positions=positions, bytes_max=bytes_max)


def read_log(
    servers: ServerPair,
    table: DifferentialTable,
    place: tuple[str | None, int],
    *,
    offset: int = 0,
    positions: list[int] | None = None,
    bytes_max: int = ALL_BYTES,
) -> None:
    """Fetch, and compare every batch: where it is, whose it is, its rows and changes."""

    def question(client: ServerUnderComparison) -> Any:
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=ALL_BYTES)
        asked = request.tables_req.add(
            table_id=client.table_id(table.name),
            projection_pushdown_enabled=positions is not None,
            projected_fields=positions or (),
        )
        asked.buckets_req.add(
            bucket_id=place[1],
            partition_id=client.partition_id(table.name, place[0]),
            fetch_offset=offset,
            max_fetch_bytes=bytes_max,
        )
        ((found,),) = (each.buckets_resp for each in client.call(request).tables_resp)
        return (
            *bucket_outcome(found, "high_watermark"),
            _batches(found.records, table, positions, is_projected=positions is not None),
        )

    servers.ask(f"{table.name} fetch {place} from {offset}, columns {positions}", question)


def _some_positions(chance: Random, table: DifferentialTable) -> list[int] | None:
    """Columns that every batch has, because 0.9.1 fails where one has not."""
    if chance.random() < 0.7:
        return None
    count = len(table.schemas[0].columns)
    chosen = sorted(chance.sample(range(count), chance.randrange(1, count + 1)))
    return chosen if chance.random() < 0.9 else [*chosen, chosen[0]]


def _batches(
    data: bytes, table: DifferentialTable, positions: list[int] | None, *, is_projected: bool
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


def offsets(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    partition_name, _ = table.some_place(chance)
    kind = chance.randrange(3)
    moment = chance.choice([0, IN_FAR_FUTURE_MS])
    buckets = chance.choice([[0], [0, 1], [7]])

    def question(client: ServerUnderComparison) -> Any:
        request = pb.ListOffsetsRequest(
            follower_server_id=-1,
            offset_type=kind,
            table_id=client.table_id(table.name),
            partition_id=client.partition_id(table.name, partition_name),
            bucket_id=buckets,
            startTimestamp=moment if kind == 2 else None,
        )
        found = client.call(request).buckets_resp
        return sorted(bucket_outcome(each, "offset") for each in found)

    servers.ask(f"{table.name} offsets {kind} of {buckets}", question)


def lookup(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    place = table.some_place(chance)
    keys = [table.key(_some_row(chance, table, place)) for _ in range(chance.choice([1, 3, 20]))]
    # Where key columns are not in the key, 0.9.1 reads past its end (see docs/server.md).
    inserts = chance.random() < 0.3 and not table.kind.partition_by

    def question(client: ServerUnderComparison) -> Any:
        request = pb.LookupRequest(table_id=client.table_id(table.name))
        if inserts:
            request.insert_if_not_exists = True
            request.acks, request.timeout_ms = -1, 10_000
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=client.partition_id(table.name, place[0]),
            keys=keys,
        )
        ((found),) = client.call(request).buckets_resp
        return found.bucket_id, _code(found), [_value(each, table) for each in found.values]

    servers.ask(f"{table.name} lookup {len(keys)} keys{' or insert' * inserts}", question)


def _some_row(chance: Random, table: DifferentialTable, place: tuple[str | None, int]) -> Row:
    return table.random_row(chance, table.newest, place[0])


def _value(found: Any, table: DifferentialTable) -> Any:
    return exact(table.read_value(found.values)) if found.HasField("values") else None


def prefix(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    place = table.some_place(chance)
    prefixes = [table.key(_some_row(chance, table, place))[:1] for _ in range(2)]

    def question(client: ServerUnderComparison) -> Any:
        request = pb.PrefixLookupRequest(table_id=client.table_id(table.name))
        request.buckets_req.add(
            bucket_id=place[1],
            partition_id=client.partition_id(table.name, place[0]),
            keys=prefixes,
        )
        (found,) = client.call(request).buckets_resp
        lists = [
            [exact(table.read_value(value)) for value in each.values] for each in found.value_lists
        ]
        return found.bucket_id, _code(found), lists

    servers.ask(f"{table.name} prefix {prefixes}", question)


def limit_scan(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    scan_first(servers, table, table.some_place(chance), limit=chance.choice([1, 3, 1000]))


def scan_first(
    servers: ServerPair, table: DifferentialTable, place: tuple[str | None, int], *, limit: int
) -> None:
    """LIMIT_SCAN: the first rows by key, or the last ones of a log."""

    def question(client: ServerUnderComparison) -> Any:
        request = pb.LimitScanRequest(
            table_id=client.table_id(table.name),
            partition_id=client.partition_id(table.name, place[0]),
            bucket_id=place[1],
            limit=limit,
        )
        found = client.call(request)
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

    servers.ask(f"{table.name} scan {limit} of {place}", question)


def stats(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    place = table.some_place(chance)

    def question(client: ServerUnderComparison) -> Any:
        request = pb.GetTableStatsRequest(table_id=client.table_id(table.name))
        request.buckets_req.add(
            bucket_id=place[1], partition_id=client.partition_id(table.name, place[0])
        )
        return [bucket_outcome(each, "row_count") for each in client.call(request).buckets_resp]

    servers.ask(f"{table.name} stats of {place}", question)


def snapshots(chance: Random, servers: ServerPair, table: DifferentialTable) -> None:
    partition_name, _ = table.some_place(chance)

    def question(client: ServerUnderComparison) -> Any:
        request = pb.GetLatestKvSnapshotsRequest(table_path=client.path(table.name))
        if partition_name is not None:
            request.partition_name = partition_name
        found = client.call(request)
        # Both make the first one within ten minutes.
        return [each.bucket_id for each in found.latest_snapshots]

    servers.ask(f"{table.name} snapshots", question)


def bucket_outcome(bucket: Any, name: str) -> tuple[Any, ...]:
    """Return a bucket, its error code, and one field; None where the field is not set."""
    value = getattr(bucket, name) if bucket.HasField(name) else None
    return bucket.bucket_id, _code(bucket), value


def _code(bucket: Any) -> int | None:
    return bucket.error_code if bucket.HasField("error_code") else None
