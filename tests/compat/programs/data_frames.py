"""DataFrames in, DataFrames out; Arrow types that are near enough to be taken."""

import asyncio
import importlib
import os
from datetime import datetime

import pandas as pd
import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    schema = fluss.Schema(
        pa.schema(
            [
                pa.field("id", pa.int64()),
                pa.field("name", pa.string()),
                pa.field("score", pa.float64()),
                pa.field("at", pa.timestamp("us")),
                pa.field("ok", pa.bool_()),
            ]
        )
    )
    path = fluss.TablePath(database, "frames")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3],
            "name": ["a", None, "c"],
            "score": [0.25, 0.5, 0.75],
            "at": pd.to_datetime([datetime(2026, 1, day) for day in (1, 2, 3)]).as_unit("us"),
            "ok": [True, False, True],
        }
    )
    writer = table.new_append().create_writer()
    writer.write_pandas(frame)
    writer.write_pandas(frame.iloc[1:])
    await writer.flush()
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    found = await scanner.to_pandas()
    print(type(found).__name__, found.shape, [str(kind) for kind in found.dtypes])
    print(found.to_string())
    scanner = (
        await table.new_scan().project_by_name(["score", "id"]).create_record_batch_log_scanner()
    )
    scanner.subscribe(0, 2)
    print((await scanner.to_pandas()).to_string())
    await admin.drop_table(path)

    # Text may come as a dictionary, as large strings or as views; slices are what they show.
    schema = fluss.Schema(pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string())]))
    path = fluss.TablePath(database, "near")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_append().create_writer()
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        names = pa.array(["x", "y", None, "z"], kind)
        numbers = pa.array([1, 2, 3, 4], pa.int32())
        writer.write_arrow(pa.table({"id": numbers, "name": names}).slice(1, 2))
    names = pa.array(["x", "y", "x"]).dictionary_encode()
    writer.write_arrow(pa.table({"id": pa.array([5, 6, 7], pa.int32()), "name": names}))
    writer.write_arrow(
        pa.table({"id": pa.array([], pa.int32()), "name": pa.array([], pa.string())})
    )
    await writer.flush()
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    print((await scanner.to_arrow()).to_pydict())
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
