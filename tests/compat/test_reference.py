"""The tables of the documented reference: names, arguments, defaults, and which calls are awaited.

A line is a signature as the document prints it; `await` in front of it means that it is awaited,
and a name without parentheses is a property.
"""

from __future__ import annotations

import ast
import inspect
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fluss

REFERENCE = """
FlussConnection
    await create(config)
    await connect(config)
    await get_admin()
    await get_table(table_path)
    close()
    __enter__()
FlussAdmin
    await create_database(name, database_descriptor=None, ignore_if_exists=False)
    await drop_database(name, ignore_if_not_exists=False, cascade=True)
    await list_databases()
    await database_exists(name)
    await get_database_info(name)
    await create_table(table_path, table_descriptor, ignore_if_exists=False)
    await drop_table(table_path, ignore_if_not_exists=False)
    await get_table_info(table_path)
    await get_table(table_path)
    await list_tables(database_name)
    await table_exists(table_path)
    await list_offsets(table_path, bucket_ids, offset_spec)
    await list_partition_offsets(table_path, partition_name, bucket_ids, offset_spec)
    await create_partition(table_path, partition_spec, ignore_if_exists=False)
    await drop_partition(table_path, partition_spec, ignore_if_not_exists=False)
    await list_partition_infos(table_path)
    await get_latest_lake_snapshot(table_path)
    await get_server_nodes()
ServerNode
    id
    host
    port
    server_type
    uid
FlussTable
    new_scan()
    new_append()
    await new_append_writer()
    new_upsert(columns=None)
    new_lookup()
    get_table_info()
    get_table_path()
    has_primary_key()
TableScan
    project(indices)
    project_by_name(names)
    await create_log_scanner()
    await create_record_batch_log_scanner()
    await create_batch_scanner()
TableAppend
    create_writer()
TableUpsert
    partial_update_by_name(columns)
    partial_update_by_index(indices)
    create_writer()
    upsert(row)
    delete(pk)
    await flush()
TableLookup
    create_lookuper()
    await lookup(pk)
AppendWriter
    append(row)
    write_arrow(table)
    write_arrow_batch(batch)
    write_pandas(df)
    await flush()
UpsertWriter
    upsert(row)
    delete(pk)
    await flush()
WriteResultHandle
    await wait()
Lookuper
    await lookup(pk)
LogScanner
    subscribe(bucket_id, start_offset)
    subscribe_buckets(bucket_offsets)
    subscribe_partition(partition_id, bucket_id, start_offset)
    subscribe_partition_buckets(partition_bucket_offsets)
    unsubscribe(bucket_id)
    unsubscribe_partition(partition_id, bucket_id)
    poll(timeout_ms)
    poll_arrow(timeout_ms)
    poll_record_batch(timeout_ms)
    poll_batches(timeout_ms)
    to_arrow()
    to_pandas()
ScanRecords
    buckets()
    records(bucket)
    count()
    is_empty()
    keys()
    values()
    items()
    __getitem__(index)
    __len__()
    __contains__(bucket)
    __iter__()
ScanRecord
    offset
    timestamp
    change_type
    row
RecordBatch
    batch
    bucket
    base_offset
    last_offset
Schema
    get_column_names()
    get_column_types()
    get_columns()
    get_primary_keys()
TableDescriptor
    get_schema()
TablePath
    database_name
    table_name
TableInfo
    table_id
    table_path
    num_buckets
    schema_id
    comment
    created_time
    modified_time
    get_primary_keys()
    get_partition_keys()
    get_bucket_keys()
    has_primary_key()
    is_partitioned()
    get_schema()
    get_column_names()
    get_column_count()
    get_properties()
    get_custom_properties()
PartitionInfo
    partition_id
    partition_name
DatabaseDescriptor
    comment
    get_custom_properties()
DatabaseInfo
    database_name
    created_time
    modified_time
    get_database_descriptor()
LakeSnapshot
    snapshot_id
    table_buckets_offset
    get_bucket_offset(bucket)
    get_table_buckets()
TableBucket
    with_partition(table_id, partition_id, bucket)
    table_id
    bucket_id
    partition_id
FlussError
    message
    error_code
OffsetSpec
    earliest()
    latest()
    timestamp(ts)
ChangeType
    short_string()
"""
CONSTRUCTORS = """
Config(properties=None)
Schema(schema, primary_keys=None)
TableDescriptor(schema, partition_keys=None, bucket_count=None, bucket_keys=None, comment=None, \
log_format=None, kv_format=None, properties=None, custom_properties=None)
TablePath(database, table)
DatabaseDescriptor(comment=None, custom_properties=None)
TableBucket(table_id, bucket)
FlussError(message, error_code=-2)
"""
PROPERTIES = {
    "bootstrap_servers": ("bootstrap.servers", "example:1"),
    "writer_request_max_size": ("writer.request-max-size", 1048576),
    "writer_acks": ("writer.acks", "1"),
    "writer_retries": ("writer.retries", 3),
    "writer_batch_size": ("writer.batch-size", 65536),
    "writer_batch_timeout_ms": ("writer.batch-timeout-ms", 7),
    "writer_bucket_no_key_assigner": ("writer.bucket.no-key-assigner", "round_robin"),
    "scanner_remote_log_prefetch_num": ("scanner.remote-log.prefetch-num", 5),
    "remote_file_download_thread_num": ("remote-file.download-thread-num", 6),
    "scanner_remote_log_read_concurrency": ("scanner.remote-log.read-concurrency", 8),
    "scanner_log_max_poll_records": ("scanner.log.max-poll-records", 9),
    "scanner_log_fetch_max_bytes": ("scanner.log.fetch.max-bytes", 1_000_000),
    "scanner_log_fetch_min_bytes": ("scanner.log.fetch.min-bytes", 11),
    "scanner_log_fetch_wait_max_time_ms": ("scanner.log.fetch.wait-max-time-ms", 12),
    "scanner_log_fetch_max_bytes_for_bucket": ("scanner.log.fetch.max-bytes-for-bucket", 13_000),
    "connect_timeout_ms": ("connect-timeout", 14_000),
    "request_timeout_ms": ("request-timeout", 15_000),
    "security_protocol": ("security.protocol", "sasl"),
    "security_sasl_mechanism": ("security.sasl.mechanism", "PLAIN"),
    "security_sasl_username": ("security.sasl.username", "someone"),
    "security_sasl_password": ("security.sasl.password", "made up"),
}
# Arguments that pyfluss itself names differently from the reference; we use pyfluss's name.
RENAMED = {
    ("FlussAdmin", "name"): "database_name",
    ("TableUpsert", "indices"): "column_indices",
    ("TablePath", "database"): "database_name",
    ("TablePath", "table"): "table_name",
}
# The Python values of dict rows, by the type of the column.
VALUES: list[tuple[pa.DataType, str, object]] = [
    (pa.bool_(), "boolean", True),
    (pa.int8(), "tinyint", -128),
    (pa.int16(), "smallint", 32767),
    (pa.int32(), "int", -(2**31)),
    (pa.int64(), "bigint", 2**63 - 1),
    (pa.float32(), "float", 0.5),
    (pa.float64(), "double", 1e300),
    (pa.string(), "string", "grüße"),
    (pa.binary(), "bytes", b"\x00\xff"),
    (pa.date32(), "date", date(1969, 12, 31)),
    (pa.time32("ms"), "time(3)", time(23, 59, 59, 999_000)),
    (pa.timestamp("us"), "timestamp", datetime(2026, 1, 2, 3, 4, 5, 678901)),  # noqa: DTZ001
    (pa.timestamp("us", tz="UTC"), "timestamp_ltz", datetime(2026, 1, 2, 3, tzinfo=UTC)),
    (pa.decimal128(10, 2), "decimal(10,2)", Decimal("-12.50")),
]


def lines() -> list[tuple[str, str]]:
    """Yield each class and signature."""
    found, owner = [], ""
    for line in REFERENCE.strip().splitlines():
        if line.startswith(" "):
            found.append((owner, line.strip()))
        else:
            owner = line
    return found


def call_of(text: str) -> tuple[str, list[str], dict[str, object]]:
    """Return name, arguments and defaults of a printed signature."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    given = [each.id for each in call.args if isinstance(each, ast.Name)]
    defaults = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    return call.func.id, given, defaults


def named(owner: str, given: list[str]) -> dict[str, None]:
    """Make a value for every required argument."""
    return {RENAMED.get((owner, each), each): None for each in given}


@pytest.mark.parametrize(("owner", "line"), lines(), ids=lambda text: text.split("(")[0])
def test_a_member_is_as_in_the_reference(owner, line):
    is_awaited, text = line.startswith("await "), line.removeprefix("await ")
    found = getattr(fluss, owner)
    if "(" not in text:
        annotated = any(text in vars(each).get("__annotations__", {}) for each in found.__mro__)
        made = fluss.FlussError("why") if owner == "FlussError" else found
        member = getattr(made, text, None)
        assert annotated or (member is not None and not inspect.isfunction(member))
        return
    name, given, defaults = call_of(text)
    member = inspect.getattr_static(found, name)
    function = getattr(found, name)
    itself = [] if isinstance(member, staticmethod | classmethod) else [None]
    signature = inspect.signature(function)
    bound = signature.bind(*itself, **named(owner, given), **defaults)
    assert bound
    for parameter, default in defaults.items():
        assert signature.parameters[parameter].default == default
    assert str(signature.return_annotation).startswith("Awaitable[") is is_awaited


@pytest.mark.parametrize(
    "line", CONSTRUCTORS.strip().splitlines(), ids=lambda text: text.split("(")[0]
)
def test_a_constructor_has_the_arguments_of_the_reference(line):
    name, given, defaults = call_of(line)
    signature = inspect.signature(getattr(fluss, name))
    assert signature.bind(**named(name, given), **defaults)


@pytest.mark.parametrize("name", PROPERTIES)
def test_an_option_is_a_key_and_a_property_that_can_be_set(name):
    key, value = PROPERTIES[name]
    assert getattr(fluss.Config({key: str(value)}), name) == value
    config = fluss.Config()
    setattr(config, name, value)
    assert getattr(config, name) == value


async def test_python_values_of_every_documented_type_come_back(cluster, database):
    names = [f"c{number}" for number in range(len(VALUES))]
    fields = [pa.field(name, kind) for name, (kind, _, _) in zip(names, VALUES, strict=True)]
    row = {name: value for name, (_, _, value) in zip(names, VALUES, strict=True)}
    schema = fluss.Schema(pa.schema(fields))
    assert schema.get_column_types() == [text for _, text, _ in VALUES]
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with await fluss.FlussConnection.connect(config) as conn:
        path = fluss.TablePath(database, "values")
        await (await conn.get_admin()).create_table(path, fluss.TableDescriptor(schema))
        table = await conn.get_table(path)
        writer = await table.new_append_writer()
        for each in (row, dict.fromkeys(names), list(row.values()), tuple(row.values())):
            writer.append(each)
        await writer.flush()
        scanner = await table.new_scan().create_log_scanner()
        scanner.subscribe(0, fluss.EARLIEST_OFFSET)
        found: list[Any] = []
        while len(found) < 4:
            found += [record.row for record in scanner.poll(timeout_ms=5000)]
    assert found == [row, dict.fromkeys(names), row, row]
    assert [type(value) for value in found[0].values()] == [type(value) for _, _, value in VALUES]
