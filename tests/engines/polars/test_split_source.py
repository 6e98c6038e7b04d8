"""Batches for Polars: text is laid out as Polars holds it, and several batches become a frame."""

import subprocess
import sys
import threading
import time

import polars as pl
import pyarrow as pa
import pytest

from fluss.records.arrow.views import with_views
from fluss.scan import Order
from fluss_polars import split_source
from fluss_polars.split_source import BATCHES_AHEAD, SplitSource, schema_of, to_frame

LONG = "a text that is longer than the twelve bytes of a view " * 20
TEXTS = pa.array(["", "short", None, LONG, "äöü €", "exactly 12 b", None, LONG], pa.string())
BLOBS = pa.array([b"", b"\x00\xff", None, LONG.encode(), b"4", b"5", None, b"7"], pa.binary())
NUMBERS = pa.array([1, None, 3, 4, 5, 6, 7, 8], pa.int64())
NESTED = pa.array([["a", None], None, [], ["b"], [LONG], ["c"], [None], ["d"]])
STRUCTS = pa.array([{"t": LONG, "n": 1}, None, *({"t": "x", "n": each} for each in range(6))])

BATCHES = {
    "mixed": pa.RecordBatch.from_arrays(
        [NUMBERS, TEXTS, BLOBS, NESTED, STRUCTS], ["n", "text", "blob", "nested", "struct"]
    ),
    "only text": pa.RecordBatch.from_arrays([TEXTS], ["text"]),
    "no text": pa.RecordBatch.from_arrays([NUMBERS, NESTED], ["n", "nested"]),
    "thirty columns": pa.RecordBatch.from_arrays(
        [TEXTS if each % 3 else NUMBERS for each in range(30)], [f"c{each}" for each in range(30)]
    ),
    "no columns": pa.RecordBatch.from_arrays([], []),
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("cut", [slice(0, 8), slice(2, 5), slice(3, 3)])
def test_rows_are_those_that_polars_makes_of_the_plain_batch(name, cut):
    batch = BATCHES[name].slice(cut.start, cut.stop - cut.start)
    given = pl.DataFrame(with_views(batch))
    plain = pl.DataFrame(batch)
    assert given.schema == plain.schema
    assert given.equals(plain)


def test_a_batch_without_text_is_passed_on_as_it_is():
    batch = BATCHES["no text"]
    assert with_views(batch) is batch


TYPES = pa.schema(
    [
        ("number", pa.int64()),
        ("text", pa.string()),
        ("view", pa.string_view()),
        ("fixed", pa.binary(4)),
        ("price", pa.decimal128(10, 2)),
        ("clock", pa.time32("ms")),
        ("at", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.int32())),
        ("row", pa.struct([("label", pa.string()), ("weight", pa.float64())])),
        ("map", pa.map_(pa.string(), pa.int64())),
    ]
)


def test_a_schema_is_that_of_a_frame_without_rows():
    assert list(schema_of(TYPES).items()) == list(pl.DataFrame(TYPES.empty_table()).schema.items())


WITHOUT_PANDAS = """
import sys, pyarrow as pa, fluss_polars
from fluss_polars.split_source import schema_of
schema_of(pa.schema([("id", pa.int64()), ("name", pa.string())]))
assert "pandas" not in sys.modules
"""


@pytest.mark.slow  # starts a process
def test_a_schema_needs_no_pandas():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_columns_that_are_no_text_keep_their_memory():
    batch = BATCHES["mixed"]
    assert with_views(batch)["n"].buffers()[1].address == batch["n"].buffers()[1].address


@pytest.mark.parametrize("name", BATCHES)
def test_batches_become_one_frame_with_the_same_rows(name):
    whole = BATCHES[name]
    batches = [with_views(whole.slice(start, 3)) for start in (0, 3, 6)]
    plain = pl.DataFrame(whole)
    assert to_frame(batches).equals(plain)
    assert to_frame(batches).schema == plain.schema
    if "n" in whole.schema.names:
        kept, columns = pl.col("n") > 3, ["n", whole.schema.names[-1]]
        assert to_frame(batches, kept, columns).equals(plain.filter(kept).select(columns))


NUMBERED = pa.schema([("n", pa.int64())])


def numbered(count):
    return (pa.RecordBatch.from_pydict({"n": [each, -each]}, NUMBERED) for each in range(count))


@pytest.fixture
def source(monkeypatch):
    """Makes a source of batches that a test has, instead of a table's."""

    def make(batches):
        monkeypatch.setattr(split_source, "open_split", lambda *_, **__: batches)
        schema = pl.Schema({"n": pl.Int64})
        return SplitSource(
            splits=(), config=None, order=Order.NONE, max_parallel=None, columns=schema
        )

    return make


@pytest.mark.parametrize("count", [0, 1, BATCHES_AHEAD, BATCHES_AHEAD + 1, 5 * BATCHES_AHEAD])
@pytest.mark.parametrize("pause_s", [0, 0.02])
def test_all_batches_come_once_in_their_order(source, count, pause_s):
    found = []
    for frame in source(numbered(count))(None, None, None, None):
        found += frame["n"].to_list()
        time.sleep(pause_s)
    assert found == [number for each in range(count) for number in (each, -each)]


@pytest.mark.parametrize("limit", [1, 2, 3, 9, 100])
def test_a_limit_cuts_frames_of_many_batches(source, limit):
    frames = source(numbered(40))(None, pl.col("n") >= 0, limit, None)
    found = [number for frame in frames for number in frame["n"].to_list()]
    numbers = [number for each in range(40) for number in (each, -each)]
    assert found == [number for number in numbers if number >= 0][:limit]


def test_rows_that_come_before_an_error_are_given_first(source):
    ended = threading.Event()

    def batches():
        yield from numbered(5)
        ended.set()
        raise ValueError("no more")

    frames = source(batches())(None, None, None, None)
    found = [next(frames)]
    assert ended.wait(5)
    with pytest.raises(ValueError, match="no more"):
        found.extend(frames)
    assert sum(frame.height for frame in found) == 10


def test_a_fast_reader_does_not_make_frames_without_end(source):
    batch = next(numbered(1))
    frames = source(batch for _ in iter(int, 1))(None, None, None, None)
    assert max(next(frames).height for _ in range(50)) <= 2 * BATCHES_AHEAD
    frames.close()


def test_an_empty_frame_comes_while_no_batch_does(source):
    released = threading.Event()

    def batches():
        released.wait(5)
        yield from numbered(1)

    frames = source(batches())(None, None, None, None)
    assert next(frames).is_empty()
    released.set()
    assert sum(frame.height for frame in frames) == 2


def test_no_more_batches_are_read_ahead_than_allowed(source):
    made = []

    def batches():
        for batch in numbered(100):
            made.append(batch)
            yield batch

    frames = source(batches())(None, None, None, None)
    taken = next(frames).height // 2
    time.sleep(0.2)  # for as long as a reader without a bound would need
    # One more is made while the reader waits for room.
    assert len(made) <= taken + BATCHES_AHEAD + 1
    frames.close()
