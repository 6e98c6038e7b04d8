"""A log table: created, written row by row and in bulk, read in one go and polled."""

import asyncio
import importlib
import os

import pandas as pd
import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)

    fields = [
        pa.field("id", pa.int32()),
        pa.field("name", pa.string()),
        pa.field("score", pa.float32()),
    ]
    schema = fluss.Schema(pa.schema(fields))
    table_path = fluss.TablePath(database, "events")
    await admin.create_table(table_path, fluss.TableDescriptor(schema), ignore_if_exists=True)

    table = await conn.get_table(table_path)
    print("primary key:", table.has_primary_key(), "columns:", schema.get_columns())
    writer = table.new_append().create_writer()

    # Fire-and-forget, then one row that is waited for.
    writer.append({"id": 1, "name": "Alice", "score": 95.5})
    writer.append([2, "Bob", 87.0])
    writer.append((3, None, None))
    writer.append({"id": 4})
    await writer.flush()
    handle = writer.append({"id": 5, "name": "Zoë 🦆", "score": 91.25})
    print("acknowledged:", await handle.wait())

    # Bulk writes.
    arrow = pa.table({"id": [6, 7], "name": ["six", None], "score": [0.5, -1.5]}, pa.schema(fields))
    print("write_arrow:", writer.write_arrow(arrow))
    handle = writer.write_arrow_batch(arrow.to_batches()[0])
    await handle.wait()
    frame = pd.DataFrame({"id": [8, 9], "name": ["acht", "neun"], "score": [8.0, 9.0]})
    frame = frame.astype({"id": "int32", "score": "float32"})
    print("write_pandas:", writer.write_pandas(frame))
    await writer.flush()

    # One-shot reads.
    num_buckets = (await admin.get_table_info(table_path)).num_buckets
    print("buckets:", num_buckets)
    offsets = {bucket: fluss.EARLIEST_OFFSET for bucket in range(num_buckets)}
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe_buckets(offsets)
    found = await scanner.to_arrow()
    print(found.schema.names, [str(kind) for kind in found.schema.types])
    for row in found.sort_by("id").to_pylist():
        print(row)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
    frame = await scanner.to_pandas()
    print(frame.sort_values("id").to_string(index=False), [str(kind) for kind in frame.dtypes])

    # A projection, by index and by name; from an offset; without any row.
    for scan in (
        table.new_scan().project([0, 2]),
        table.new_scan().project_by_name(["id", "score"]),
    ):
        scanner = await scan.create_record_batch_log_scanner()
        scanner.subscribe(0, 7)
        print((await scanner.to_arrow()).to_pydict())
    latest = await admin.list_offsets(table_path, [0], fluss.OffsetSpec.latest())
    earliest = await admin.list_offsets(table_path, [0], fluss.OffsetSpec.earliest())
    print("offsets:", earliest, latest)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=latest[0])
    print("nothing new:", (await scanner.to_arrow()).num_rows)

    await admin.drop_table(table_path, ignore_if_not_exists=True)
    await conn.close()


asyncio.run(main())
