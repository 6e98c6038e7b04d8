"""Polars' decoder, lent to the lake: it returns what pyarrow reads, or pyarrow reads the rows."""

import datetime as dt
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fluss.records.arrow.views import with_views
from fluss_lake import lent_decoder
from fluss_lake.lent_decoder import LENT_TYPES, LentDecoder
from fluss_lake.row_groups import row_groups
from fluss_polars import parquet_decoder
from fluss_polars.parquet_decoder import decode
from fluss_polars.process_end import CallsOfPolars

ROWS, GROUP_ROWS = 50_000, 12_000
LONG = "a text that is longer than the twelve bytes of a view " * 20
INTS = [0, 1, -1, 127, -128, 2**31 - 1, -(2**31)]
TIMES = [0, 1, -1, 999_999, -62_135_596_800_000_000, 253_402_300_799_999_999, 2**62, -(2**62)]
TEXTS = ["", "short", LONG, "äöü €", "exactly 12 b", "\x00", "13 characters", "😀" * 3]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, 5e-324, 1e38]
VALUES = {
    pa.bool_(): [True, False, False],
    pa.int32(): INTS,
    pa.int64(): [*INTS, 2**63 - 1, -(2**63)],
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.date32(): [
        dt.date(1, 1, 1),
        dt.date(1969, 12, 31),
        dt.date(1970, 1, 1),
        dt.date(9999, 12, 31),
    ],
    pa.timestamp("us"): TIMES,
    pa.timestamp("us", "UTC"): TIMES,
    pa.string(): TEXTS,
    pa.binary(): [*(each.encode() for each in TEXTS), b"\xff\xfe", b"\x80"],
}
# Types that a file of a lake may have, and that are left to pyarrow.
NOT_LENT = {
    pa.int8(): [1, -1],
    pa.uint32(): [1, 2**32 - 1],
    pa.uint64(): [2**64 - 1],
    pa.timestamp("ms"): [1, -1],
    pa.timestamp("ns"): [1, -1],
    pa.time64("us"): [1, 86_399_999_999],
    pa.decimal128(9, 2): [Decimal("1.25")],
    pa.decimal128(38, 18): [Decimal("-1.25")],
    pa.binary(4): [b"four"],
    pa.large_string(): ["text"],
    pa.list_(pa.int32()): [[1, None]],
    pa.struct([("a", pa.int32())]): [{"a": 1}],
    pa.map_(pa.string(), pa.int32()): [[("a", 1)]],
    pa.dictionary(pa.int32(), pa.string()): ["text"],
}
PLAIN_INTS = {"use_dictionary": False, "column_encoding": {"int64": "DELTA_BINARY_PACKED"}}
WRITERS = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "zstd": {"compression": "zstd"},
    "gzip": {"compression": "gzip", "version": "1.0", "coerce_timestamps": "us"},
    "lz4": {"compression": "lz4"},
    "pages of version 2": {"data_page_version": "2.0", "compression": "snappy"},
    "a dictionary that was given up": {"dictionary_pagesize_limit": 1_000},
    "small pages": {"data_page_size": 500, "write_page_index": True},
    "without statistics": {"write_statistics": False},
    "with checksums": {"write_page_checksum": True},
}
FILL = {
    "values and NULLs": lambda values, _: [None, *values],
    "no NULL": lambda values, _: values,
    "different values": lambda values, rng: [*values, *_random(values, rng), None],
    "nothing": lambda _, __: [None],
}


def _random(values, rng):
    """Many values of the same type, so that dictionaries grow."""
    kind = type(values[0])
    numbers = rng.integers(-(2**31), 2**31, 5_000)
    if kind is bool:
        return []
    if kind is dt.date:
        return [dt.date(1970, 1, 1) + dt.timedelta(days=int(each) % 20_000) for each in numbers]
    if kind is str:
        return [f"{each} {'long' * (each % 7)}" for each in numbers]
    if kind is bytes:
        return [each.tobytes() for each in numbers]
    return [kind(each) for each in numbers]


def array_of(kind, values, rng):
    given = pa.array(values, kind)
    return given.take(pa.array(rng.integers(0, len(given), ROWS)))


def written(path, columns, **options):
    """A file with columns that may be NULL and the same columns, which may not where none is."""
    fields = [
        pa.field(name, each.type, nullable=bool(each.null_count)) for name, each in columns.items()
    ]
    table = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(table, path, row_group_size=GROUP_ROWS, **options)
    return str(path)


def lent(path, names=None, decoder=decode):
    """The rows by the lent decoder, as far as it goes, and pyarrow's."""
    parquet = pq.ParquetFile(path)
    names = names or parquet.schema_arrow.names
    reader = LentDecoder(decoder, path, parquet, names)
    (run,) = row_groups(parquet.metadata, {}, None, None).runs
    found = list(reader.read(run))
    return found, parquet.read(columns=names)


def check_equal(found, expected):
    """The same bits, also of NaN and of -0.0, and the same NULLs."""
    table = pa.Table.from_batches(found)
    table.validate(full=True)
    plain = table.cast(expected.schema).combine_chunks()
    expected = expected.combine_chunks()
    for name in expected.schema.names:
        ours, theirs = plain[name].combine_chunks(), expected[name].combine_chunks()
        assert ours.is_null().equals(theirs.is_null())
        if pa.types.is_floating(ours.type):
            bits = np.int32 if ours.type == pa.float32() else np.int64
            ours, theirs = (
                each.drop_null().to_numpy().view(bits).tolist() for each in (ours, theirs)
            )
            assert ours == theirs
        else:
            assert ours.equals(theirs)


@pytest.fixture(autouse=True)
def _small_files(monkeypatch):
    monkeypatch.setattr(lent_decoder, "RUN_BYTES_MIN", 0)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("fill", FILL)
def test_both_decoders_read_the_same_bits(tmp_path, writer, fill):
    rng = np.random.default_rng(7)
    columns = {
        str(kind): array_of(kind, FILL[fill](values, rng), rng) for kind, values in VALUES.items()
    }
    path = written(tmp_path / "rows.parquet", columns, **WRITERS[writer])
    found, expected = lent(path)
    assert sum(each.num_rows for each in found) == ROWS
    check_equal(found, expected)


@pytest.mark.parametrize("encoding", ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"])
def test_numbers_of_other_encodings_are_the_same(tmp_path, encoding):
    rng = np.random.default_rng(7)
    kinds = [pa.int32(), pa.int64()]
    if encoding != "DELTA_BINARY_PACKED":
        kinds += [pa.float32(), pa.float64()]
    columns = {
        str(kind): array_of(kind, [None, *VALUES[kind], *_random(VALUES[kind], rng)], rng)
        for kind in kinds
    }
    encodings = dict.fromkeys(columns, encoding)
    path = written(
        tmp_path / "rows.parquet", columns, use_dictionary=False, column_encoding=encodings
    )
    check_equal(*lent(path))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_texts_of_other_encodings_are_the_same(tmp_path, encoding):
    rng = np.random.default_rng(7)
    columns = {
        str(kind): array_of(kind, [None, *VALUES[kind], *_random(VALUES[kind], rng)], rng)
        for kind in (pa.string(), pa.binary())
    }
    encodings = dict.fromkeys(columns, encoding)
    path = written(
        tmp_path / "rows.parquet", columns, use_dictionary=False, column_encoding=encodings
    )
    check_equal(*lent(path))


def test_every_lent_type_is_compared():
    assert set(VALUES) == set(LENT_TYPES)


@pytest.mark.parametrize("kind", NOT_LENT, ids=str)
def test_other_types_are_left_to_pyarrow(tmp_path, kind):
    values = (
        pa.array([NOT_LENT[kind][0]] * ROWS, kind)
        if not pa.types.is_dictionary(kind)
        else (pa.array([NOT_LENT[kind][0]] * ROWS).dictionary_encode())
    )
    path = written(tmp_path / "rows.parquet", {"a": pa.array(range(ROWS)), "b": values})
    assert lent(path, ["a", "b"])[0] == []
    if not pa.types.is_nested(kind):
        check_equal(*lent(path, ["a"]))


def test_a_file_with_columns_that_polars_does_not_know_is_read_whole(tmp_path):
    keys = pa.array([[(1, 2)]] * ROWS, pa.map_(pa.int32(), pa.int32()))
    path = written(tmp_path / "rows.parquet", {"a": pa.array(range(ROWS)), "m": keys})
    found, expected = lent(path, ["a"])
    check_equal(found, expected)


@pytest.mark.parametrize("name", ["^a.*$", "*", "a b", "ä", "", "a.b", "a[0]", "id"])
def test_names_are_no_patterns(tmp_path, name):
    columns = {"ab": pa.array(range(ROWS)), name: pa.array(range(ROWS, 2 * ROWS))}
    path = written(tmp_path / "rows.parquet", columns)
    batches = decode(path, [name], first_row=0, rows=ROWS)
    assert pa.Table.from_batches(batches)[name].to_pylist() == list(range(ROWS, 2 * ROWS))


@pytest.mark.parametrize("folder", ["a=1", "[ab]*", "a b%20c", "ä#?", "file:"])
def test_paths_are_no_patterns(tmp_path, folder):
    (tmp_path / folder).mkdir()
    path = written(tmp_path / folder / "rows.parquet", {"a": pa.array(range(ROWS))})
    check_equal(*lent(path))
    assert lent(path)[0][0].schema.names == ["a"]


def test_any_run_of_rows_is_that_of_the_file(tmp_path):
    rng = np.random.default_rng(3)
    columns = {"n": pa.array(range(ROWS)), "t": array_of(pa.string(), [None, *TEXTS], rng)}
    path = written(tmp_path / "rows.parquet", columns, data_page_size=2_000)
    expected = with_views(pq.read_table(path).combine_chunks().to_batches()[0])
    for _ in range(40):
        first = int(rng.integers(0, ROWS))
        rows = int(rng.integers(1, ROWS - first + 1))
        found = pa.Table.from_batches(decode(path, ["t", "n"], first_row=first, rows=rows))
        assert found.combine_chunks().select(["n", "t"]).to_pydict() == (
            expected.slice(first, rows).to_pydict()
        )


def test_texts_that_are_no_utf8_are_left_to_pyarrow(tmp_path):
    offsets = pa.py_buffer(np.arange(ROWS + 1, dtype=np.int32).tobytes())
    texts = pa.Array.from_buffers(pa.string(), ROWS, [None, offsets, pa.py_buffer(b"\xff" * ROWS)])
    path = written(tmp_path / "rows.parquet", {"t": texts}, use_dictionary=False)
    found, expected = lent(path)
    assert found == []
    assert expected["t"].cast(pa.binary())[0].as_py() == b"\xff"


def test_a_missing_or_damaged_file_is_left_to_pyarrow(tmp_path):
    path = written(tmp_path / "rows.parquet", {"a": pa.array(range(ROWS))}, use_dictionary=False)
    parquet = pq.ParquetFile(path)
    (run,) = row_groups(parquet.metadata, {}, None, None).runs
    with Path(path).open("r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 4_000)
    assert list(LentDecoder(decode, path, parquet, ["a"]).read(run)) == []
    Path(path).unlink()
    assert list(LentDecoder(decode, path, parquet, ["a"]).read(run)) == []


def test_a_process_that_ends_decodes_no_more(tmp_path, monkeypatch):
    path = written(tmp_path / "rows.parquet", {"a": pa.array(range(ROWS))})
    assert decode(path, ["a"], first_row=0, rows=5)[0].num_rows == 5
    calls = CallsOfPolars()
    calls.close()
    monkeypatch.setattr(parquet_decoder, "calls_of_polars", calls)
    with pytest.raises(RuntimeError, match="the process ends"):
        decode(path, ["a"], first_row=0, rows=5)


NESTED = """
import sys, threading, polars as pl
from polars.io.plugins import register_io_source
from fluss_polars.parquet_decoder import decode
from concurrent.futures import ThreadPoolExecutor

path, rows, engine = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def source():
    def frames(with_columns, predicate, n_rows, batch_size):
        with ThreadPoolExecutor(4) as readers:
            reads = [
                readers.submit(decode, path, ["a", "t"], first_row=0, rows=rows) for _ in range(4)
            ]
            for each in reads:
                for batch in each.result():
                    frame = pl.DataFrame(batch)
                    if predicate is not None:
                        frame = frame.filter(predicate)
                    yield frame.select(with_columns or frame.columns)
    return register_io_source(frames, schema={"a": pl.Int64, "t": pl.String})
frames = [source() for _ in range(4)]
both = frames[0].unique().join(frames[1].unique(), on="a")
one = pl.concat([*frames[2:], frames[0].filter(pl.col("a") % 2 == 0)])
print(both.select(pl.len()).collect(engine=engine).item())
print(one.group_by("t").len().select(pl.col("len").sum()).collect(engine=engine).item())
"""


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_decoding_inside_a_query_waits_for_no_thread_of_it(tmp_path, engine, threads):
    texts = pa.array([f"t{each % 10}" for each in range(ROWS)])
    path = written(tmp_path / "rows.parquet", {"a": pa.array(range(ROWS)), "t": texts})
    ended = subprocess.run(
        [sys.executable, "-c", NESTED, path, str(ROWS), engine],
        env={**os.environ, "POLARS_MAX_THREADS": threads},
        timeout=60,
        capture_output=True,
        text=True,
        check=True,
    )
    # Frame 0 has a half of its rows in the second query, four times each.
    assert ended.stdout.split() == [str(ROWS), str(4 * ROWS * 2 + 2 * ROWS)]
