"""Everything the reference of the Rust client lists can be done from Python: see rust_client.md.

The expressions in its tables are run unchanged, section by section, on one set of tables; each
section uses the connection from an event loop of its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fluss
from fluss.wire import messages as pb
from tests.support.servers.raw_client import COORDINATOR, RawClient
from tests.support.snippets import run_code

PAGE = Path(__file__).parent / "rust_client.md"
ROW = re.compile(r"^\| (?P<rust>.+?) \| (?P<python>.+) \| (?P<holds>.+?) \|$")
EVENTS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("score", pa.float32())])
USERS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("age", pa.int64())])
REGIONS = pa.schema([("id", pa.int32()), ("region", pa.string())])
ORDERS = pa.schema([("customer", pa.int32()), ("order", pa.int32())])
ROWS = pa.table({"id": [1, 2], "name": ["Alice", "Bob"], "score": [95.5, 87.0]}, EVENTS)

of = fluss.DataTypes
KINDS: dict[str, tuple[Any, object]] = {
    "v_boolean": (of.boolean(), True),
    "v_tinyint": (of.tinyint(), -128),
    "v_smallint": (of.smallint(), 32767),
    "v_int": (of.int(), -(2**31)),
    "v_bigint": (of.bigint(), 2**63 - 1),
    "v_float": (of.float(), 0.5),
    "v_double": (of.double(), 1e300),
    "v_string": (of.string(), "text"),
    "v_decimal": (of.decimal(10, 2), Decimal("-12.50")),
    "v_date": (of.date(), date(2026, 1, 2)),
    "v_time": (of.time(), time(3, 4, 5)),
    "v_timestamp": (of.timestamp(), datetime(2026, 1, 2, 3, 4, 5, 678901)),  # noqa: DTZ001 - without a zone
    "v_timestamp_ltz": (of.timestamp_ltz(), datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)),
    "v_bytes": (of.bytes(), b"\x00\xff"),
    "v_binary": (of.binary(4), b"four"),
    "v_char": (of.char(3), "abc"),
    "v_array": (of.array(of.int()), [1, None]),
}

Names = dict[str, Any]


def sections() -> dict[str, list[re.Match[str]]]:
    """Return the rows of each table, by its heading."""
    found: dict[str, list[re.Match[str]]] = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        heading, *lines = part.splitlines()
        rows = [row for line in lines if line.startswith("| ") and (row := ROW.match(line))]
        found[heading] = rows[1:]  # the first row is the header
    return found


@pytest.mark.parametrize("section", sections())
async def test_what_the_rust_client_does_can_be_done(section, scene):
    for row in sections()[section]:
        names = dict(scene)
        try:
            await run_code(f"it = {row['python']}\nholds = {row['holds']}", names)
        except Exception as error:
            error.add_note(f"{row['rust']}: {row['python']}")
            raise
        assert names["holds"], f"{row['rust']}: {row['python']} is {names['it']!r}"


@pytest.fixture(scope="module")
def scene(cluster, tmp_path_factory) -> Iterator[Names]:
    """Provide the names that the expressions use."""
    database = f"test_{tmp_path_factory.mktemp('rust').name}_{id(cluster):x}"
    names = asyncio.run(set_scene(cluster.bootstrap, database))
    try:
        yield names
    finally:
        names["conn"].close()
        with RawClient(cluster.bootstrap) as client:
            drop = pb.DropDatabaseRequest(
                database_name=database, ignore_if_not_exists=True, cascade=True
            )
            client.call(drop, to=COORDINATOR)


async def set_scene(bootstrap: str, database: str) -> Names:
    """Create the tables and some rows."""
    config = fluss.Config({"bootstrap.servers": bootstrap})
    conn = await fluss.FlussConnection.create(config)
    admin = await conn.get_admin()
    await admin.create_database(database)
    plain, keyed = fluss.Schema(EVENTS), fluss.Schema(USERS, primary_keys=["id"])
    builder = fluss.Schema.builder()
    for name, (kind, _) in KINDS.items():
        builder = builder.column(name, kind)

    async def made(name: str, schema: fluss.Schema, **descriptor: Any) -> fluss.FlussTable:
        path = fluss.TablePath(database, name)
        await admin.create_table(path, fluss.TableDescriptor(schema, **descriptor))
        return await conn.get_table(path)

    events = await made("events", plain, bucket_count=1)
    await events.new_append().create_writer().write_arrow_batch(ROWS.to_batches()[0]).wait()
    spare = await made("appended", plain, bucket_count=1)
    users = await made(
        "users", keyed, bucket_count=3, comment="who is there", custom_properties={"mine": "yes"}
    )
    upserts = users.new_upsert().create_writer()
    await upserts.upsert({"id": 1, "name": "Alice", "age": 25}).wait()
    regions = await made(
        "regions", fluss.Schema(REGIONS), partition_keys=["region"], bucket_count=1
    )
    for region in ("US", "EU"):
        await admin.create_partition(regions.table_path, {"region": region})
    await regions.new_append().create_writer().append({"id": 1, "region": "US"}).wait()
    (us,) = await admin.list_partition_infos(regions.table_path, {"region": "US"})
    orders = await made(
        "orders",
        fluss.Schema(ORDERS, primary_keys=["customer", "order"]),
        bucket_count=2,
        bucket_keys=["customer"],
    )
    writer = orders.new_upsert().create_writer()
    for each in ([1, 1], [1, 2], [2, 1]):
        writer.upsert(each)
    await writer.flush()
    nodes = await admin.get_server_nodes()
    return {
        "fluss": fluss, "pa": pa, "UTC": UTC, "Decimal": Decimal,
        "date": date, "datetime": datetime, "time": time,
        "config": config, "conn": conn, "admin": admin,
        "database": database, "other": f"{database}_other",
        "path": events.table_path, "regions_path": regions.table_path,
        "descriptor": fluss.TableDescriptor(plain), "plain": plain, "keyed": keyed,
        "table": events, "users": users, "orders": orders, "spare": spare, "rows": ROWS,
        "kinds": await made("kinds", builder.build(), bucket_count=1),
        "kind_rows": [[value for _, value in KINDS.values()]],
        "info": users.get_table_info(), "us": us,
        "coordinator": next(each for each in nodes if each.uid.startswith("cs-")),
        "writer": spare.new_append().create_writer(), "upserts": upserts,
        "scanner": await events.new_scan().create_log_scanner(),
        "batches_of": await events.new_scan().create_record_batch_log_scanner(),
        "records_of_regions": await regions.new_scan().create_log_scanner(),
        "batches_of_regions": await regions.new_scan().create_record_batch_log_scanner(),
        "records": await records_of(events), "batch": await batch_of(events),
        "all_of": all_of, "row_of": row_of, "from_start": from_start,
        "caught": caught, "failure": failure,
    }  # fmt: skip


# --- functions for the expressions ----------------------------------------------------------------


async def records_of(table: fluss.FlussTable) -> fluss.ScanRecords:
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    return scanner.poll(5000)


async def batch_of(table: fluss.FlussTable) -> fluss.RecordBatch:
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    return scanner.poll_record_batch(5000)[0]


async def all_of(table: fluss.FlussTable) -> pa.Table:
    return from_start(await table.new_scan().create_record_batch_log_scanner())


async def row_of(table: fluss.FlussTable, offset: int) -> dict[str, Any]:
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, offset)
    row: dict[str, Any] = scanner.poll(5000)[0].row
    return row


def from_start(scanner: fluss.LogScanner) -> pa.Table:
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    return scanner.to_arrow()


async def caught(work: Awaitable[Any]) -> fluss.FlussError | None:
    try:
        await work
    except fluss.FlussError as error:
        return error
    return None


def failure(work: Callable[[], Any]) -> fluss.FlussError | None:
    try:
        work()
    except fluss.FlussError as error:
        return error
    return None
