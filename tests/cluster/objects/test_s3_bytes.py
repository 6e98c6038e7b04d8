"""How many bytes are read from S3, counted by a proxy, beside how many are needed.

What is needed is computed from the files: of each batch with rows in the range, its head (header,
change types and Arrow metadata) and the buffers of the requested columns as they are stored; of a
read of all columns, the batches from the position that the server names on.
"""

import random

import fsspec
import numpy as np
import pyarrow as pa
import pytest

import fluss
from fluss import col
from fluss.log.plan_remote_ranges import read_head
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.log.log_batch import iter_log_batches
from tests.cluster.objects.conftest import LOCAL_SEGMENTS, ROWS_AT_ONCE
from tests.support.objects.s3_gate import SERVER_KEY, SERVER_SECRET
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.read_harness import eventually

pytestmark = pytest.mark.slow  # a server and a store are started
COLUMNS = 20
WIDE_ROWS = 3_000
WIDE_BATCHES = 12
SHARE_MAX = 1.2
SCHEMA = pa.schema([(f"c{index}", pa.int64()) for index in range(COLUMNS)])


@pytest.fixture(scope="module")
def wide(filled, gate):
    """A log of large batches with many columns, and its rows."""
    numbers = np.random.default_rng(1)
    rows = [
        pa.RecordBatch.from_arrays(
            [numbers.integers(0, 2**62, WIDE_ROWS) for _ in range(COLUMNS)], schema=SCHEMA
        )
        for _ in range(WIDE_BATCHES)
    ]
    with fluss.connect(filled, **IMPATIENT) as session:
        table = session.create_table("wide", SCHEMA, buckets=1, properties=LOCAL_SEGMENTS)
        for batch in rows:
            table.append(pa.table([*batch.columns], schema=SCHEMA))

        def has_moved():
            gate.gets.clear()
            table.scan().to_arrow()
            return len({get.path for get in gate.gets}) >= WIDE_BATCHES // 3

        eventually(has_moved)
    return pa.Table.from_batches(rows)


def stored(gate, paths):
    store = fsspec.filesystem(
        "s3", key=SERVER_KEY, secret=SERVER_SECRET, endpoint_url=gate.endpoint
    )
    return {path: store.cat_file(path) for path in sorted(set(paths)) if path.endswith(".log")}


def needed(files, columns):
    starts = BatchLayout.of_schema(fluss.Schema(SCHEMA)).buffer_starts
    size = 0
    for data in files.values():
        for batch in iter_log_batches(data):
            head = read_head(memoryview(bytes(batch.data)), "leader_epoch")
            size += head.body_start
            for column in columns:
                buffers = head.metadata.buffers[starts[column] : starts[column + 1]]
                size += sum(length for _, length in buffers)
    return size


@pytest.mark.parametrize("columns", [["c0"], ["c7"], ["c19"], ["c3", "c4"], ["c1", "c10"]])
def test_columns_of_large_batches_are_read_alone(connect, gate, wide, columns):
    found = connect().table("wide").scan(columns=columns).to_arrow()
    assert found.equals(wide.select(columns))
    files = stored(gate, [get.path for get in gate.gets])
    least = needed(files, [int(name[1:]) for name in columns])
    assert len(files) >= WIDE_BATCHES // 3
    assert least <= gate.body_bytes <= SHARE_MAX * least
    assert gate.body_bytes < sum(map(len, files.values())) / 5


@pytest.mark.parametrize("parts", [1, 2])
def test_ranges_of_columns_count_as_reads_in_flight(connect, gate, wide, parts):
    session = connect(**{"scanner.remote-log.read-concurrency": str(parts)})
    gate.delay_s = 0.01
    columns = ["c1", "c10"]
    assert session.table("wide").scan(columns=columns).to_arrow().equals(wide.select(columns))
    assert max(get.in_flight for get in gate.gets) <= parts


def test_a_filter_reads_its_columns_too_and_no_others(connect, gate, wide):
    limit = 2**61
    found = connect().table("wide").scan(columns=["c2"], filter=col("c9") < limit).to_arrow()
    keep = [value < limit for value in wide["c9"].to_pylist()]
    assert found.equals(wide.select(["c2"]).filter(pa.array(keep)))
    files = stored(gate, [get.path for get in gate.gets])
    assert gate.body_bytes <= SHARE_MAX * needed(files, [2, 9])


def test_all_columns_are_read_in_one_request_each(connect, gate, wide):
    assert connect().table("wide").scan().to_arrow().equals(wide)
    files = stored(gate, [get.path for get in gate.gets])
    assert gate.body_bytes == sum(map(len, files.values()))
    assert len(gate.gets) == len(files)


def test_most_columns_are_read_with_all_others(connect, gate, wide):
    """Many small ranges would take longer than the bytes that they spare."""
    names = [f"c{index}" for index in range(0, COLUMNS, 2)]
    assert connect().table("wide").scan(columns=names).to_arrow().equals(wide.select(names))
    assert len({get.path for get in gate.gets}) * 2 >= len(gate.gets)


def test_between_two_offsets_little_else_is_read(connect, gate):
    table = connect().table("log")
    table.scan().to_arrow()
    path = sorted({get.path for get in gate.gets})[1]
    gate.gets.clear()
    ((_, data),) = stored(gate, [path]).items()
    batches = list(iter_log_batches(data))
    start, stop = batches[2].base_offset + 10, batches[6].base_offset + 10
    few = (col("_log_offset") >= start) & (col("_log_offset") < stop)
    assert table.scan(filter=few).to_arrow()["id"].to_pylist() == list(range(start, stop))
    # The server names a position one batch early, as its index has the last offset of each.
    least = sum(len(batch.data) for batch in batches[1:7])
    assert gate.body_bytes <= SHARE_MAX * least
    assert {get.path.rsplit(".", 1)[1] for get in gate.gets} == {"log", "index"}
    assert stop - start == 4 * ROWS_AT_ONCE


def test_rows_of_some_columns_in_a_random_range_are_right(connect, wide):
    table = connect().table("wide")
    numbers = random.Random(2)
    for _ in range(8):
        start, stop = sorted(numbers.sample(range(len(wide)), 2))
        names = numbers.sample(SCHEMA.names, 2)
        part = (col("_log_offset") >= start) & (col("_log_offset") < stop)
        found = table.scan(columns=names, filter=part).to_arrow()
        assert found.equals(wide.select(names).slice(start, stop - start))


def test_a_column_that_came_later_is_null_in_moved_rows(connect, wide):
    session = connect()
    session.alter_table("wide", add_columns=pa.schema([("late", pa.string())]))
    found = session.table("wide").scan(columns=["late", "c5"]).to_arrow()
    assert found["late"].null_count == len(wide)
    assert found["c5"].equals(wide["c5"])
