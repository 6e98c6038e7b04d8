"""What was fetched is decoded in pieces, in several threads, and comes out in its order."""

import asyncio
import threading
import time
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from fluss.errors import CorruptBatchError
from fluss.log import decode_pool
from fluss.log.decode import PIECE_BYTES, PIECE_BYTES_PLAIN, DecodedBatch
from fluss.log.decode_pool import decode_ahead, decode_while_fetching, pieces_of
from fluss.log.fetch_messages import Fetched, read_headers
from fluss.log.plan_fetch import Position
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from fluss.records.log.log_batch import iter_log_batches, iter_log_headers
from fluss.records.log.log_header import stamp_log_batch
from fluss.records.log.log_writer import LogBody, write_log_batch

BUCKET = TableBucket(1, 0)
POSITION = Position(bucket=BUCKET, path=PhysicalTablePath(TablePath("db", "t")), offset=0)


def batch_of(offset, size):
    body = LogBody(record_count=1, buffers=(b"x" * size,), is_append_only=True)
    written = bytearray(b"".join(memoryview(each) for each in write_log_batch(body, schema_id=1)))
    stamp_log_batch(written, base_offset=offset, commit_timestamp=0)
    return bytes(written)


def fetched(*sizes, first=0, knows_headers=False):
    data = b"".join(batch_of(first + index, size) for index, size in enumerate(sizes))
    placed = read_headers(memoryview(data), magic_1="statistics").placed
    return Fetched(
        position=POSITION,
        data=memoryview(data),
        start=0,
        stop=None,
        projected=False,
        headers=tuple(placed) if knows_headers else None,
    )


def offsets(piece):
    return [each.base_offset for each in iter_log_batches(piece.data)]


@dataclass
class Decoder:
    """Decodes nothing but offsets; fails at some of them."""

    damaged: frozenset = frozenset()
    piece_bytes: int = PIECE_BYTES

    def decode(self, piece):
        self.threads = getattr(self, "threads", set()) | {threading.get_ident()}
        time.sleep(0.001)
        for offset in offsets(piece):
            if offset in self.damaged:
                raise CorruptBatchError("damaged", what="log batch", at=0, why="it is")
            rows = pa.RecordBatch.from_pydict({"offset": [offset]})
            yield DecodedBatch(
                batch=rows, bucket=BUCKET, base_offset=offset, timestamp=0, change_types=None
            )


def decoded_offsets(decoded):
    return [each.base_offset for one in decoded for each in one.batches]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([100] * 5, [[0, 1, 2, 3, 4]]),
        ([300_000] * 5, [[0, 1], [2, 3], [4]]),
        ([500_000] * 3, [[0], [1], [2]]),
        ([100, 2_000_000, 100, 100], [[0, 1], [2, 3]]),
        ([2_000_000], [[0]]),
    ],
)
@pytest.mark.parametrize("knows_headers", [False, True])
def test_pieces_are_whole_batches_worth_a_thread(sizes, expected, knows_headers):
    pieces = pieces_of(fetched(*sizes, knows_headers=knows_headers))
    assert [offsets(each) for each in pieces] == expected
    assert sum(len(each.data) for each in pieces) == len(fetched(*sizes).data)
    again = [offsets(part) for each in pieces for part in pieces_of(each)]
    assert again == expected, "a piece stays one"
    for piece in pieces:
        read = list(iter_log_headers(piece.data))
        assert list(piece.placed_headers("statistics")) == read
        assert (piece.headers is not None) is knows_headers


@pytest.mark.parametrize(
    ("sizes", "are_kept"),
    [([10] * 16, True), ([10] * 17, False), ([5_000] * 40, True), ([1_000] * 40, False)],
)
def test_headers_are_kept_where_they_take_little_memory(sizes, are_kept):
    data = fetched(*sizes).data
    found = read_headers(data, magic_1="statistics")
    assert (found.placed is not None) is are_kept
    assert found.batches == len(sizes)
    if are_kept:
        assert found.placed == list(iter_log_headers(data))


def test_pieces_of_plain_bytes_are_larger():
    pieces = pieces_of(fetched(*[500_000] * 5), PIECE_BYTES_PLAIN)
    assert [offsets(each) for each in pieces] == [[0, 1, 2], [3, 4]]


def test_fetches_come_out_in_their_order():
    parts = [fetched(*[200_000] * 5, first=number * 5) for number in range(6)]
    parts.insert(3, fetched(10, 10, first=1_000))
    expected = [offset for part in parts for offset in offsets(part)]
    assert decoded_offsets(decode_ahead(Decoder(), parts)) == expected

    async def while_fetching():
        async def source():
            for part in parts:
                await asyncio.sleep(0)
                yield [part]

        return [each async for each in decode_while_fetching(Decoder(), source())]

    assert decoded_offsets(asyncio.run(while_fetching())) == expected


@pytest.mark.parametrize(
    ("sizes", "is_shared"),
    [([40_000] * 8, True), ([30_000] * 40, False), ([70_000], False), ([200_000], True)],
)
def test_threads_share_large_batches(sizes, is_shared):
    decoder = Decoder()
    list(decode_ahead(decoder, [fetched(*sizes, first=100 * each) for each in range(8)]))
    others = decoder.threads - {threading.get_ident()}
    assert bool(others) is is_shared


def test_damage_in_the_first_batch_is_raised_in_its_order():
    broken = fetched(300_000, first=1)
    data = bytearray(broken.data)
    data[8:12] = (-1).to_bytes(4, "little", signed=True)  # its length
    decoding = decode_ahead(Decoder(), [fetched(10), replace(broken, data=memoryview(data))])
    assert decoded_offsets([next(decoding)]) == [0]
    assert next(decoding).error is not None


def test_an_event_loop_never_decodes_by_itself():
    decoder = Decoder()

    async def while_fetching():
        async def source():
            yield [fetched(10), fetched(10)]

        return [each async for each in decode_while_fetching(decoder, source())]

    asyncio.run(while_fetching())
    assert threading.get_ident() not in decoder.threads


def test_damage_comes_after_the_rows_before_it_and_is_raised_again():
    decoder = Decoder(damaged=frozenset({3}))
    found = list(decode_ahead(decoder, [fetched(*[300_000] * 6)]))
    assert [[each.base_offset for each in one.batches] for one in found] == [[0, 1], [2], [4, 5]]
    assert [one.error is not None for one in found] == [False, True, False]
    again = decode_pool.decode_one(decoder, found[1].rest)
    assert again.error is not None


def test_a_caller_that_stops_leaves_nothing_waiting():
    async def while_fetching():
        async def source():
            for number in range(100):
                yield [fetched(10, first=number)]

        found = decode_while_fetching(Decoder(), source())
        first = await anext(found)
        await found.aclose()
        return first

    assert decoded_offsets([asyncio.run(while_fetching())]) == [0]
