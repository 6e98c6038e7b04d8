"""Which ranges of segments are read, and that the columns in them are those of whole batches."""

import itertools
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError
from fluss.log import plan_remote_ranges as plan
from fluss.log.remote_columns import ColumnReader
from fluss.model.tables.table_options import ArrowCompression
from fluss.model.types.data_type import BigIntType, StringType
from fluss.net.engine_thread import engine
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.projection import Projection, read_projected
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.segment import IndexEntry, read_offset_index

COLUMNS = 12
TYPES = [StringType() if index % 4 == 0 else BigIntType() for index in range(COLUMNS)]
LAYOUT = BatchLayout.of([f"c{index}" for index in range(COLUMNS)], TYPES)


def entries(*pairs):
    return [IndexEntry(last_offset=offset, position=position) for offset, position in pairs]


# --- the index ------------------------------------------------------------------------------------

INDEX = entries((19, 100), (29, 200), (39, 300))


def test_an_index_is_read_up_to_its_first_impossible_entry():
    data = b"".join(each.to_bytes(4, "big") for each in (19, 100, 29, 200, 39, 300, 0, 0, 49, 400))
    assert read_offset_index(data, first_offset=0, file_size=1_000) == INDEX
    assert read_offset_index(data[:-17], first_offset=0, file_size=1_000) == INDEX[:2]
    assert read_offset_index(data, first_offset=5, file_size=250) == entries((24, 100), (34, 200))
    assert read_offset_index(b"", first_offset=0, file_size=1) == []


@pytest.mark.parametrize(
    ("stop", "end"), [(1, 200), (19, 200), (20, 200), (21, 300), (30, 300), (31, 900), (99, 900)]
)
def test_rows_before_an_offset_end_at_the_entry_after_the_one_that_has_it(stop, end):
    assert plan.end_of_rows(INDEX, stop, file_size=900) == end


def test_without_an_index_the_file_is_read_to_its_end():
    assert plan.end_of_rows([], 5, file_size=900) == 900


@given(
    sizes=st.lists(st.integers(1, 600_000), min_size=1, max_size=30),
    piece_bytes=st.sampled_from([1_000, 300_000, 4_000_000]),
)
def test_pieces_follow_each_other_and_large_batches_stand_alone(sizes, piece_bytes):
    positions = [sum(sizes[:index]) for index in range(1, len(sizes))]
    index = entries(*((at, position) for at, position in enumerate(positions)))
    end = sum(sizes)
    pieces = plan.pieces_of_columns(index, 0, end, piece_bytes=piece_bytes)
    assert pieces[0].start == 0
    assert pieces[-1].end == end
    assert all(a.end == b.start for a, b in itertools.pairwise(pieces))
    by_columns = {(each.start, each.end) for each in pieces if each.has_columns}
    starts = [0, *positions, end]
    large = {
        (at, following)
        for at, following in itertools.pairwise(starts)
        if following - at >= plan.BATCH_BYTES_MIN
    }
    assert by_columns == large
    assert all(each.last in {*starts} and each.last >= each.end for each in pieces)
    assert all(each.end - each.start <= piece_bytes for each in pieces if not each.has_columns)


# --- columns --------------------------------------------------------------------------------------


def encoded(rows, *, compression=ArrowCompression.NONE, changes=False, seed=1):
    random = np.random.default_rng(seed)
    columns = [
        pa.array([str(each) for each in random.integers(0, 10**9, rows)])
        if isinstance(kind, StringType)
        else pa.array(random.integers(0, 2**60, rows), mask=random.random(rows) < 0.1)
        for kind in TYPES
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=LAYOUT.wire_schema)
    kinds = random.integers(0, 5, rows).astype(np.uint8) if changes else None
    body = arrow_log_body(batch, BodyCodec(compression), change_types=kinds)
    return b"".join(map(bytes, write_log_batch(body, schema_id=3, base_offset=seed * 1_000_000)))


class Files:
    """Files in memory, which count what is read of them."""

    def __init__(self, data):
        self.data = data
        self.reads = []

    async def read_at(self, _, start, size):
        self.reads.append((start, size))
        return self.data[start : start + size]


def read(data, positions, at=0):
    projection = Projection.of(LAYOUT, positions)

    async def projection_of(schema_id):
        return projection if schema_id == 3 else None

    files = Files(data)
    reader = ColumnReader(files, "statistics", projection_of)
    return engine().run(reader.read("file", at, len(data), None)), files, projection


@pytest.mark.parametrize("compression", list(ArrowCompression))
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("positions", [[1], [0], [COLUMNS - 1], [0, 5], [2, 3, 4], [1, 8, 11]])
def test_columns_of_ranges_are_those_of_whole_batches(compression, changes, positions):
    whole = b"".join(
        encoded(rows, compression=compression, changes=changes, seed=seed)
        for seed, rows in enumerate([20_000, 30_000, 10])
    )
    found, files, projection = read(whole, positions)
    assert sum(size for _, size in files.reads) < len(whole) / 1.2
    assert [each.projected for each in found] == [True, True, False]
    expected = list(iter_log_batches(whole))
    for records, batch in zip(found, expected, strict=True):
        (own,) = iter_log_batches(records.data, verify_crc=not records.projected)
        assert own.header.crc == batch.header.crc
        assert own.base_offset == batch.base_offset
        same = read_projected(batch, projection)
        rows = own.record_batch(projection.target) if records.projected else same
        assert rows.equals(same)
        if changes:
            assert own.change_types().tolist() == batch.change_types().tolist()


def test_what_is_read_is_what_is_needed():
    whole = b"".join(encoded(20_000, seed=seed) for seed in range(6))
    _, files, projection = read(whole, [1, 6])
    needed = 0
    for batch in iter_log_batches(whole):
        head = plan.read_head(memoryview(bytes(batch.data)), "statistics")
        needed += head.body_start
        needed += sum(head.metadata.buffers[each][1] for each in projection.buffers)
    assert sum(size for _, size in files.reads) < 1.05 * needed
    assert len(files.reads) == 6 * 3, "a head, and two ranges"


def test_all_columns_and_small_batches_are_read_whole():
    for data, positions in ((encoded(20_000), range(COLUMNS)), (encoded(100), [1])):
        found, _, _ = read(data, list(positions))
        assert [each.projected for each in found] == [False]
        assert bytes(found[0].data) == data


def test_a_head_that_is_longer_than_expected_is_read_on():
    data = encoded(200_000, changes=True)
    (found,), files, projection = read(data, [3])
    assert found.projected
    assert files.reads[0] == (0, plan.HEAD_BYTES)
    (own,) = iter_log_batches(found.data, verify_crc=False)
    assert len(own.change_types()) == 200_000
    assert own.record_batch(projection.target).num_rows == 200_000


@pytest.mark.parametrize("cut", [1, 11, 40, 60, 200, 5_000, 700_000])
def test_a_file_that_ends_within_a_batch_is_corrupt(cut):
    whole = encoded(20_000)
    with pytest.raises(CorruptBatchError):
        read(whole[: min(cut, len(whole) - 1)], [1])


@given(seed=st.integers(0, 2**32))
def test_damaged_heads_are_refused_or_read_and_never_crash(seed):
    data = bytearray(encoded(30_000))
    random = Random(seed)
    for _ in range(random.randint(1, 4)):
        data[random.randrange(0, 1_500)] ^= 1 << random.randrange(8)
    try:
        found, _, projection = read(bytes(data), [1])
        for records in found:
            for own in iter_log_batches(records.data, verify_crc=not records.projected):
                own.record_batch(projection.target if records.projected else LAYOUT)
    except CorruptBatchError:
        pass


def test_a_batch_without_rows_is_read_whole():
    empty = pa.RecordBatch.from_pylist([], LAYOUT.wire_schema)
    body = arrow_log_body(empty, BodyCodec(ArrowCompression.NONE))
    data = b"".join(map(bytes, write_log_batch(body, schema_id=3)))
    (found,), _, _ = read(data, [1])
    assert (bytes(found.data), found.projected) == (data, False)
