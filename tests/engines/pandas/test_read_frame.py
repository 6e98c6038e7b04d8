"""`pd.read_fluss`: dtypes without loss, an index, chunks, and refused arguments."""

import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fluss.pandas
from fluss import col
from fluss.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    SchemaMismatchError,
    TableNotFoundError,
)


def test_importing_it_gives_pandas_its_reader():
    assert pd.read_fluss is fluss.pandas.read_fluss
    assert pd.DataFrame.fluss is fluss.pandas.FlussAccessor


def test_every_type_comes_as_arrow_has_it_and_is_not_copied(typed, every_type):
    read = typed.scan().to_arrow()
    frame = pd.read_fluss(typed)
    for name in frame.columns:
        assert frame[name].dtype == pd.ArrowDtype(read.schema.field(name).type)
    back = pa.Table.from_pandas(frame, preserve_index=False)
    assert list(map(repr, back.to_pydict().values())) == list(
        map(repr, read.select(back.schema.names).to_pydict().values())
    )
    assert back.schema.types == every_type.schema.types
    numbers = pa.array(frame["big"].array)
    assert numbers.to_pylist() == [2**60 + 1, -(2**63), None]


def test_no_buffer_is_copied_into_arrows_dtypes(events):
    rows = events.scan().to_arrow()
    frame = fluss.pandas.read_frame.to_frame(rows, "pyarrow")
    for name in rows.schema.names:
        mine = [chunk.buffers()[-1].address for chunk in rows.column(name).chunks]
        theirs = frame[name].array.__arrow_array__()
        assert [chunk.buffers()[-1].address for chunk in theirs.chunks] == mine


def test_null_and_nan_are_two_things_in_arrows_dtypes(typed):
    values = pa.array(pd.read_fluss(typed)["long"].array).to_pylist()
    assert np.signbit(values[0])
    assert np.isnan(values[1])
    assert values[2] is None


def test_nullable_dtypes_are_there_on_request(typed):
    frame = pd.read_fluss(typed, dtype_backend="numpy_nullable")
    expected = {
        "truth": "boolean", "tiny": "Int8", "small": "Int16", "middle": "Int32", "big": "Int64",
        "short": "Float32", "long": "Float64", "price": "object", "at_ns": "datetime64[ns]",
        "zoned": "datetime64[ms, UTC]", "clock_ns": "time64[ns][pyarrow]", "list": "object",
    }  # fmt: skip
    assert {name: str(frame[name].dtype) for name in expected} == expected
    assert frame["text"].dtype == pd.StringDtype()
    assert list(frame["big"]) == [2**60 + 1, -(2**63), pd.NA]
    assert frame["price"][0] == Decimal("12345678901234567890.123456789")


def test_numpy_dtypes_are_there_on_request_and_change_no_integer(typed):
    frame = pd.read_fluss(typed, dtype_backend="numpy")
    assert frame["id"].dtype == np.int64
    assert list(frame["big"]) == [2**60 + 1, -(2**63), None]
    assert list(frame["truth"]) == [True, False, None]
    assert frame["long"].dtype == np.float64
    assert frame["at_ns"][0].value == 1_767_225_600_123_456_789
    assert frame["row"][0] == {"x": 2**60 + 1, "y": "z"}


@pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable", "numpy"])
def test_an_empty_table_has_its_dtypes(session, every_type, backend):
    empty = session.create_table("empty", every_type, buckets=1)
    frame = pd.read_fluss(empty, dtype_backend=backend)
    assert frame.shape == (0, every_type.num_columns)
    assert list(frame.columns) == every_type.schema.names


def test_the_options_of_a_scan_have_their_names(cluster, events):
    settings = {"bootstrap.servers": cluster.bootstrap}
    name = events.name
    assert len(pd.read_fluss(name, config=settings)) == 10_000
    assert len(pd.read_fluss(f"fluss://{cluster.bootstrap}/{name}?tail=7")) == 7
    assert list(pd.read_fluss(name, config=settings, columns=["name"], limit=3).columns) == ["name"]
    assert len(pd.read_fluss(events, filter=col("id") < 5)) == 5
    assert "_bucket" in pd.read_fluss(events, with_metadata=True, tail=1).columns
    assert pd.read_fluss(events, columns=[], limit=4).shape == (4, 0)


def test_a_changelog_is_a_frame_too(keyed):
    keyed.delete({"id": [5]})
    changes = pd.read_fluss(keyed, mode="changelog")
    assert changes["_change_type"].value_counts().to_dict() == {"insert": 100, "delete": 1}


def test_a_scan_is_read_as_it_was_pinned(events):
    scan = events.scan(filter=col("id") < 10)
    before = pd.read_fluss(scan)
    events.append({"id": [3], "name": ["late"]})
    assert pd.read_fluss(scan).equals(before)
    with pytest.raises(InvalidValueError, match="cannot be added"):
        pd.read_fluss(scan, limit=5)


def test_columns_become_the_index(events):
    frame = pd.read_fluss(events, index_col="id")
    assert frame.index.name == "id"
    assert list(frame.columns) == ["name"]
    assert str(frame.index.dtype) == "int64[pyarrow]"
    both = pd.read_fluss(events, index_col=["name", "id"], limit=5)
    assert both.index.names == ["name", "id"]
    with pytest.raises(SchemaMismatchError, match="did you mean 'name'"):
        pd.read_fluss(events, index_col="nam")
    with pytest.raises(SchemaMismatchError, match="its columns are name"):
        pd.read_fluss(events, columns=["name"], index_col=0)


@pytest.mark.parametrize("chunksize", [1, 999, 5_000, 10_000, 50_000])
def test_chunks_have_the_size_that_was_asked_for(events, chunksize):
    limit = min(10_000, chunksize * 50)
    sizes, ids = [], []
    with pd.read_fluss(events, chunksize=chunksize, limit=limit, index_col="id") as chunks:
        for each in chunks:
            sizes.append(len(each))
            ids += list(each.index)
    assert sizes[:-1] == [chunksize] * (len(sizes) - 1)
    assert len(set(ids)) == len(ids) == limit


def test_chunks_that_are_left_read_no_more(events):
    chunks = pd.read_fluss(events, chunksize=100, max_parallel=4)
    assert len(next(chunks)) == 100
    chunks.close()
    chunks.close()
    with pytest.raises(ClosedError):
        next(chunks)
    assert not [each for each in threading.enumerate() if each.name.startswith("fluss-scan")]


def test_no_rows_are_no_chunks(events):
    assert list(pd.read_fluss(events, chunksize=10, limit=0)) == []


def test_a_function_gets_the_progress_of_a_read(events):
    told = []
    pd.read_fluss(events, progress=lambda rows, of: told.append((rows, of)))
    assert told[-1] == (10_000, 10_000)
    told.clear()
    for _ in pd.read_fluss(events, chunksize=4_000, progress=lambda *each: told.append(each)):
        pass
    assert told[-1] == (10_000, 10_000)


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"dtype_backend": "numpy_nulable"}, InvalidValueError, "did you mean 'numpy_nullable'"),
        ({"chunksize": 0}, InvalidValueError, "chunksize=0"),
        ({"chunksize": True}, InvalidValueError, "chunksize=True"),
        ({"colums": ["id"]}, ConfigError, "did you mean 'columns'"),
        ({"tail": "many"}, InvalidValueError, "tail='many'"),
        ({"start": 10, "end": 5}, InvalidValueError, "begins at"),
    ],
)
def test_what_makes_no_sense_is_refused(events, wrong, error, said):
    with pytest.raises(error, match=said):
        pd.read_fluss(events, **wrong)


def test_an_unknown_table_is_reported_with_the_nearest(cluster, events):
    with pytest.raises(TableNotFoundError, match="did you mean 'events'"):
        pd.read_fluss(f"fluss://{cluster.bootstrap}/{events.name[:-1]}")
