"""A log table: rows are appended one by one and as frames, and read as a whole and as they arrive.

    python examples/log_table.py [127.0.0.1:9123]

Prints:
    Alice, Bob, Carol, Dave
    ids alone: [1, 2, 3, 4]
    offset=0 +A {'id': 1, 'name': 'Alice', 'score': 95.5}
    offset=1 +A {'id': 2, 'name': 'Bob', 'score': 87.0}
    new rows: [5]
"""

import asyncio
import sys

import pyarrow as pa

import fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
COLUMNS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("score", pa.float32())])


async def main() -> None:
    config = fluss.Config({"bootstrap.servers": SERVERS})
    with await fluss.FlussConnection.create(config) as conn:
        admin = await conn.get_admin()
        path = fluss.TablePath("fluss", "example_log")
        await admin.drop_table(path, ignore_if_not_exists=True)
        descriptor = fluss.TableDescriptor(fluss.Schema(COLUMNS), bucket_count=1)
        await admin.create_table(path, descriptor)
        table = await conn.get_table(path)

        writer = table.new_append().create_writer()
        await writer.append({"id": 1, "name": "Alice", "score": 95.5}).wait()  # acknowledged
        writer.append([2, "Bob", 87.0])  # queued until the flush
        writer.write_arrow(pa.table({"id": [3, 4], "name": ["Carol", "Dave"], "score": [9.0, 8.5]}))
        await writer.flush()

        scanner = await table.new_scan().create_record_batch_log_scanner()
        scanner.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
        print(", ".join(scanner.to_arrow().column("name").to_pylist()))
        narrow = await table.new_scan().project_by_name(["id"]).create_record_batch_log_scanner()
        narrow.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
        print("ids alone:", narrow.to_pandas()["id"].tolist())

        records = await table.new_scan().create_log_scanner()
        records.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
        for record in records.poll(timeout_ms=5_000)[:2]:
            print(f"offset={record.offset} {record.change_type.short_string()} {record.row}")

        latest = (await admin.list_offsets(path, [0], fluss.OffsetSpec.latest()))[0]
        scanner.subscribe(bucket_id=0, start_offset=latest)
        await writer.append([5, "Erin", 1.0]).wait()
        print("new rows:", scanner.poll_arrow(timeout_ms=5_000).column("id").to_pylist())
        await admin.drop_table(path)


asyncio.run(main())
