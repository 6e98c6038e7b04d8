"""Batches of a log that Arrow's threads compress: the same bytes as on one thread."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.model.paths import TablePath
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.factory import DataTypes
from fluss.write import write_encoding, write_targets
from fluss.write.placement import Placement
from fluss.write.wire_rows import WireRows
from fluss.write.write_batch import WriterSettings

ROWS = 6_000
NESTED = DataTypes.row(
    [DataTypes.field("a", DataTypes.int()), DataTypes.field("b", DataTypes.string())]
)
WIDE = {f"c{number}": DataTypes.double() for number in range(27)}
COLUMNS = {
    "id": DataTypes.bigint(),
    "text": DataTypes.string(),
    "tags": DataTypes.array(DataTypes.string()),
    "nested": NESTED,
    **WIDE,
}


def row(number):
    """Every second value NULL, some long texts."""
    some = number % 2 == 0
    return {
        "id": number,
        "text": "long text " * (number % 40) if some else None,
        "tags": [f"tag {number % 7}", None] if some else None,
        "nested": {"a": number, "b": None} if some else None,
        **{name: number / 7 if (number + at) % 2 else None for at, name in enumerate(WIDE)},
    }


@pytest.fixture(scope="module")
def layout():
    return write_targets.whole_layout(info())


def info(codec="ZSTD"):
    schema = Schema([Column(name, each) for name, each in COLUMNS.items()])
    properties = {"table.log.arrow.compression.type": codec}
    descriptor = TableDescriptor(schema, bucket_count=1, properties=properties)
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=1, schema_id=1)


def encoded(batch, layout, codec="ZSTD"):
    placement = Placement(
        info(codec), layout, has_leader=lambda *_: True, is_round_robin=False, choose=lambda _: 0
    )
    target = write_encoding.LogTarget(placement, WriterSettings(), has_statistics=False)
    made = target.encode(WireRows(batch=batch), None, is_frame=True).batches
    return [b"".join(bytes(each) for each in one.body.buffers) for one in made]


@pytest.fixture(scope="module")
def batch(layout):
    return pa.RecordBatch.from_pylist(list(map(row, range(ROWS))), schema=layout.wire_schema)


@pytest.mark.parametrize("codec", ["ZSTD", "LZ4_FRAME", "NONE"])
def test_a_large_batch_has_the_bytes_that_one_thread_makes(batch, layout, codec, monkeypatch):
    assert batch.nbytes >= write_encoding.COMPRESSED_ON_THREADS_MIN
    on_threads = encoded(batch, layout, codec)
    monkeypatch.setattr(write_encoding, "COMPRESSED_ON_THREADS_MIN", batch.nbytes + 1)
    assert on_threads == encoded(batch, layout, codec)


def test_only_large_batches_are_compressed_on_threads(batch, layout, monkeypatch):
    asked = []
    plain = write_encoding.arrow_log_body

    def noted(rows, *arguments, use_threads, **options):
        asked.append((rows.nbytes, use_threads))
        return plain(rows, *arguments, use_threads=use_threads, **options)

    monkeypatch.setattr(write_encoding, "arrow_log_body", noted)
    for rows in (1, 10, 100, 1_000, ROWS):
        encoded(batch.slice(0, rows), layout)
    least = write_encoding.COMPRESSED_ON_THREADS_MIN
    assert [use_threads for _, use_threads in asked] == [size >= least for size, _ in asked]
    assert {use_threads for _, use_threads in asked} == {True, False}
