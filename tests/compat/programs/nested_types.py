"""Arrays, maps and rows, also in each other."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))

POINT = pa.struct([pa.field("x", pa.int32()), pa.field("label", pa.string())])
FIELDS = [
    pa.field("id", pa.int32()),
    pa.field("numbers", pa.list_(pa.int32())),
    pa.field("words", pa.list_(pa.string())),
    pa.field("point", POINT),
    pa.field("tags", pa.map_(pa.string(), pa.int64())),
    pa.field("deep", pa.list_(pa.list_(pa.int64()))),
    pa.field("points", pa.list_(POINT)),
]
ROWS = [
    {
        "id": 1,
        "numbers": [1, None, 3],
        "words": ["a", "", None, "ünï"],
        "point": {"x": 7, "label": "seven"},
        "tags": {"one": 1, "two": None},
        "deep": [[1, 2], [], [3]],
        "points": [{"x": 1, "label": None}, {"x": None, "label": "none"}],
    },
    {"id": 2, "numbers": [], "words": [], "point": None, "tags": {}, "deep": [], "points": []},
    {"id": 3},
]


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    schema = fluss.Schema(pa.schema(FIELDS))
    print(schema.get_columns())
    path = fluss.TablePath(database, "nested")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_append().create_writer()
    for row in ROWS:
        writer.append(row)
    await writer.flush()
    batch = pa.RecordBatch.from_pylist(
        [{**ROWS[0], "id": 4, "tags": [("k", 9)]}], schema=pa.schema(FIELDS)
    )
    writer.write_arrow_batch(batch)
    await writer.flush()

    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    rows = []
    while len(rows) < 4:
        rows += [record.row for record in await scanner.poll(5000)]
    for row in rows:
        print(row)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    for row in (await scanner.to_arrow()).to_pylist():
        print(row)
    await admin.drop_table(path)

    schema = fluss.Schema(pa.schema(FIELDS), primary_keys=["id"])
    path = fluss.TablePath(database, "nested_by_key")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_upsert().create_writer()
    for row in ROWS:
        writer.upsert(row)
    await writer.flush()
    lookuper = table.new_lookup().create_lookuper()
    for each in (1, 2, 3):
        print(await lookuper.lookup({"id": each}))
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
