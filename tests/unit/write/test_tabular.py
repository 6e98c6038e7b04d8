"""Anything tabular becomes the same batches; what is not tabular is refused by name."""

from __future__ import annotations

import uuid
from array import array
from collections import deque
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from fluss.errors import InvalidValueError, UnsupportedTypeError
from fluss.model.types.factory import DataTypes
from fluss.write.python_to_arrow import is_one_row
from fluss.write.tabular import frame_of, frame_of_keys

ROWS = pa.table({"id": pa.array([1, 2, 3]), "name": ["a", None, "c"]})
TYPES = {"id": DataTypes.bigint(), "name": DataTypes.string()}


class Stream:
    """What another library exports."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class OneBatch:
    def __init__(self, batch):
        self._batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self._batch.__arrow_c_array__(requested_schema)


WHOLE = {
    "table": ROWS,
    "batch": ROWS.to_batches()[0],
    "batches": ROWS.to_batches(max_chunksize=2),
    "tables": [ROWS.slice(0, 1), ROWS.slice(1)],
    "pandas": ROWS.to_pandas(),
    "polars": pl.from_arrow(ROWS),
    "lazy": pl.from_arrow(ROWS).lazy(),
    "exported batch": OneBatch(ROWS.to_batches()[0]),
    "dicts": ROWS.to_pylist(),
    "columns": ROWS.to_pydict(),
    "arrays": {"id": np.array([1, 2, 3]), "name": pd.Series(["a", None, "c"])},
    "chunks": {"id": ROWS["id"], "name": pl.Series(["a", None, "c"])},
}
STREAMS = {
    "reader": ROWS.to_reader,
    "dataset": lambda: ds.dataset(ROWS),
    "scanner": lambda: ds.dataset(ROWS).scanner(),
    "iterator": lambda: iter(ROWS.to_batches(max_chunksize=1)),
    "exported stream": lambda: Stream(ROWS),
}


def rows_of(frame, types=TYPES):
    return [row for batch in frame.batches(types) for row in batch.to_pylist()]


@pytest.mark.parametrize("form", WHOLE)
def test_what_is_in_memory_is_whole(form):
    frame = frame_of(WHOLE[form])
    assert frame.is_whole
    assert frame.names == ["id", "name"]
    assert frame.schema.names == ["id", "name"]
    assert rows_of(frame) == ROWS.to_pylist()
    assert rows_of(frame) == ROWS.to_pylist(), "and can be looked at twice"
    assert frame_of(frame) is frame


@pytest.mark.parametrize("form", STREAMS)
def test_what_is_lazy_stays_a_stream(form):
    frame = frame_of(STREAMS[form]())
    assert not frame.is_whole
    assert frame.names == ["id", "name"]
    assert frame.schema.names == ["id", "name"]
    assert rows_of(frame) == ROWS.to_pylist()


def test_an_endless_stream_is_read_batch_by_batch():
    def endless():
        while True:
            yield ROWS.to_batches()[0]

    batches = frame_of(endless()).batches({})
    assert [next(batches).num_rows for _ in range(5)] == [3] * 5


@pytest.mark.parametrize(
    "values",
    [range(3), deque([0, 1, 2]), array("q", [0, 1, 2]), {0: "", 1: "", 2: ""}.keys(), (0, 1, 2)],
    ids=lambda each: type(each).__name__,
)
def test_a_column_may_be_any_sequence(values):
    frame = frame_of({"id": values})
    assert frame.schema == pa.schema([("id", pa.int64())])
    (batch,) = frame.batches({"id": DataTypes.bigint()})
    assert batch.column("id").to_pylist() == [0, 1, 2]
    rows = frame_of([{"id": each} for each in values])
    assert rows.schema == frame.schema
    keys = frame_of_keys(values, ["id"])
    assert next(iter(keys.batches({"id": DataTypes.bigint()}))).num_rows == 3


def test_what_is_one_value_is_no_column():
    for value in ("abc", b"abc", bytearray(b"abc"), memoryview(b"abc"), {1, 2}):
        assert is_one_row({"v": value})
    assert not is_one_row({"v": range(0)})


def test_a_range_beyond_64_bits_is_refused():
    frame = frame_of({"id": range(2**63, 2**63 + 2)})
    with pytest.raises(InvalidValueError):
        list(frame.batches({"id": DataTypes.bigint()}))


def test_a_dict_is_one_row_or_columns():
    assert rows_of(frame_of({"id": 1, "name": "a"})) == [{"id": 1, "name": "a"}]
    tags = {"tags": DataTypes.array(DataTypes.string())}
    assert rows_of(frame_of({"id": 1, "tags": ["a", "b"]}), TYPES | tags) == [
        {"id": 1, "name": None, "tags": ["a", "b"]}
    ]
    assert rows_of(frame_of({"id": (1, 2), "name": ["a", "b"]})) == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": "b"},
    ]
    with pytest.raises(InvalidValueError, match="'id' 2, 'name' 1"):
        frame_of({"id": [1, 2], "name": ["a"]})


def test_values_of_python_become_what_their_column_is():
    types = {
        "price": DataTypes.decimal(10, 2),
        "at": DataTypes.timestamp_ltz(3),
        "labels": DataTypes.map(DataTypes.string(), DataTypes.int()),
        "byte": DataTypes.tinyint(),
    }
    row = {
        "price": 7,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "labels": {"a": 1},
        "byte": np.int64(5),
    }
    (batch,) = frame_of([row, {}]).batches(types)
    assert batch.schema.field("price").type == pa.decimal128(10, 2)
    assert batch.schema.field("byte").type == pa.int8()
    first, second = batch.to_pylist()
    assert first["price"] == Decimal("7.00")
    assert first["labels"] == [("a", 1)]
    assert second == dict.fromkeys(types)


def test_many_rows_become_several_batches_and_errors_count_all(monkeypatch):
    monkeypatch.setattr("fluss.write.python_to_arrow.ROWS_PER_BATCH", 2)
    rows = [{"id": each} for each in range(4)] + [{"id": "five"}]
    batches = frame_of(rows).batches(TYPES)
    assert [next(batches).num_rows for _ in range(2)] == [2, 2]
    with pytest.raises(InvalidValueError, match="In row 4: ") as error:
        next(batches)
    assert error.value.facts["row"] == 4


def test_rows_by_position_need_to_know_their_columns():
    frame = frame_of([(1, "a"), [2, "b"]])
    assert frame.names == []
    assert rows_of(frame) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    with pytest.raises(InvalidValueError, match="without names"):
        _ = frame.schema
    with pytest.raises(InvalidValueError, match="Row 1 has 1 values for 2 columns"):
        rows_of(frame_of([(1, "a"), (2,)]))
    with pytest.raises(InvalidValueError, match="Row 1 is 7, not a dict"):
        rows_of(frame_of([(1, "a"), 7]))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pd.Series([1, 2**70], dtype=object), "'v' has a whole number of more than 64 bits"),
        (pd.Series(["x", "\ud800"], dtype=object), "'v' holds a text with half a surrogate pair"),
        (
            pd.Series([Decimal(1), Decimal("Infinity")], dtype=object),
            "'v' holds values of the type",
        ),
        (pd.arrays.SparseArray([1.0, 0.0]), r"'v' is sparse \(Sparse\[float64, nan\]\)"),
    ],
)
def test_a_column_of_pandas_that_arrow_does_not_read_is_named(values, text):
    with pytest.raises((InvalidValueError, UnsupportedTypeError), match=text) as refused:
        frame_of(pd.DataFrame({"k": [1, 2], "v": values}))
    assert refused.value.column == "v"
    assert refused.value.hint


NAIVE, AWARE = datetime(2020, 1, 1, 8), datetime(2020, 1, 1, 8, tzinfo=UTC)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([NAIVE, None, AWARE], "In row 2: .* times with and without a time zone"),
        ([AWARE, float("nan"), pd.Timestamp(NAIVE)], "In row 2: .* with and without a time zone"),
        ([NAIVE, 5], "In row 1: .* several kinds: datetime and int"),
        ([date(2020, 1, 1), pd.NaT, NAIVE], "In row 2: .* several kinds: date and datetime"),
        ([date(2020, 1, 1), 1.5], "several kinds: date and float"),
        ([time(1), Decimal(2)], "several kinds: Decimal and time"),
        ([b"x", b"y", "z"], "In row 2: .* several kinds: bytes and str"),
        (["x", None, b"y"], "In row 2: .* several kinds: bytes and str"),
        ([1.5, True], "several kinds: bool and float"),
        ([1, uuid.UUID(int=1)], "several kinds: UUID and int"),
        (
            [np.datetime64("2020-01-01"), np.int64(1)],
            "kinds: datetime64 and int64",
        ),  # Arrow crashes
        ([[date(2020, 1, 1)], None, [None, NAIVE]], "In row 2: .* kinds: date and datetime"),
        ([{"a": [b"x"]}, {"a": [b"y", "z"]}], "In row 1: .* several kinds: bytes and str"),
        ([{"a": NAIVE}, {}, {"a": AWARE}], "In row 2: .* with and without a time zone"),
    ],
)
def test_objects_of_pandas_that_arrow_would_read_as_others_are_refused(values, text):
    series = pd.Series(values, dtype=object)
    for data in (pd.DataFrame({"k": range(len(values)), "v": series}), {"v": series}):
        with pytest.raises(InvalidValueError, match=text) as refused:
            list(frame_of(data).batches({}))
        assert refused.value.column == "v"
        assert refused.value.hint


@pytest.mark.parametrize(
    "values",
    [
        [AWARE, None, pd.NaT, pd.Timestamp(AWARE), float("nan")],
        [NAIVE, pd.Timestamp(NAIVE)],
        ["x", None, float("nan"), pd.NA],
        [float("nan"), b"x", bytearray(b"y")],
        [1, 2.5, np.int64(4)],
        [1, Decimal(3), Decimal("NaN")],
        [True, None, float("nan")],
        [[date(2020, 1, 1), None], None, []],
        [{"a": b"x"}, {}, None],
        [None, None],
        [],
    ],
)
def test_objects_of_pandas_of_one_kind_are_read(values):
    series = pd.Series(values, dtype=object)
    frame = frame_of(pd.DataFrame({"v": series}))
    found = pa.Table.from_batches(frame.batches({}), frame.schema)
    assert found["v"].to_pylist() == pa.array(series, from_pandas=True).to_pylist()


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (pd.Series([1], name="id"), "series.to_frame(name='name')"),
        (pd.Index([1]), "index.to_frame(name='name')"),
        (pl.Series([1]), "series.to_frame('name')"),
        (pa.array([1]), "pa.table({'name': array})"),
        (pa.chunked_array([[1]]), "pa.table({'name': array})"),
        (np.array([1]), "{'name': array}"),
        (np.array([(1, 2)], dtype=[("a", "i8"), ("b", "i8")]), "array[name] for name in"),
        (pl.col("id"), "a DataFrame of Polars or pandas"),
        (np.zeros((2, 2)), "a DataFrame of Polars or pandas"),
    ],
)
def test_what_is_one_column_is_refused_with_the_way_to_a_frame(data, hint):
    with pytest.raises(InvalidValueError, match="Rows and columns were expected") as refused:
        frame_of(data)
    assert hint in refused.value.hint


@pytest.mark.parametrize("key", [5, "k", b"bytes", date(2020, 1, 1)])
def test_a_key_that_is_no_list_is_refused_with_the_list(key):
    with pytest.raises(InvalidValueError, match="Keys are a list or a frame") as refused:
        frame_of_keys(key, ["id"])
    assert refused.value.hint == f"write [{key!r}]"


@pytest.mark.parametrize("data", [[{"id": 1, "v\ud800": 2}], {"id": [1], "v\ud800": [2]}])
def test_a_name_with_half_a_surrogate_pair_is_refused(data):
    with pytest.raises(InvalidValueError, match="half a surrogate pair") as refused:
        _ = frame_of(data).names
    assert refused.value.column == "v\ud800"


def test_values_that_contain_themselves_are_refused():
    within: dict = {}
    within["x"] = [within]
    for data in ([{"id": 1, "v": within}], {"v": [within]}, pd.DataFrame({"v": [within]})):
        with pytest.raises(InvalidValueError, match="nested in more than") as refused:
            _ = frame_of(data).schema
        assert refused.value.column == "v"


AT, ONE = np.datetime64("2020-01-01", "us"), np.int64(1)
HANDED_OVER = {
    "list": lambda values: {"v": values},
    "tuple": lambda values: {"v": tuple(values)},
    "series": lambda values: {"v": pd.Series(values, dtype=object)},
    "pandas": lambda values: pd.DataFrame({"v": pd.Series(values, dtype=object)}),
    "rows": lambda values: [{"v": each} for each in values],
}


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([AT, None, ONE], 2),
        ([AT, np.bool_(1)], 1),
        ([[AT], [AT, ONE]], 1),
        ([None, [[AT], [None, np.float32(1)]]], 1),
        ([{"a": {"b": AT}}, {"a": {"b": ONE}}], 1),
        ([{"a": [AT]}, {}, {"a": [ONE]}], 2),
        ([np.array([AT, ONE], object)], 0),
        (["text", AT, ONE], None),
        ([ONE, AT], None),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", HANDED_OVER.values(), ids=HANDED_OVER)
def test_times_of_numpy_among_its_numbers_are_refused(values, row, make):
    """Arrow crashes on them."""
    with pytest.raises(InvalidValueError, match=r"several kinds|type") as refused:
        _ = frame_of(make(values)).schema
    assert refused.value.column == "v"
    if row is not None:
        assert refused.value.row == row


def test_times_and_numbers_of_numpy_in_different_fields_are_read():
    (field,) = frame_of([{"v": {"at": AT, "n": np.int32(1)}}] * 2).schema
    assert field.type == pa.struct([("at", pa.timestamp("us")), ("n", pa.int32())])


def test_the_columns_of_rows_are_those_of_any_row():
    frame = frame_of([{"b": 1}, {"a": 1.5, "b": 2}])
    assert frame.schema == pa.schema([("b", pa.int64()), ("a", pa.float64())])
    with pytest.raises(InvalidValueError, match="'b' holds values of several kinds: int and str"):
        _ = frame_of([{"b": 1}, {"b": "x"}]).schema


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        [1, None, -(2**63), 2**63 - 1],
        [1.5, float("nan"), None],
        ["", None, "x"],
        (b"x", b""),
        [date(2026, 11, 18)],
        [datetime(2026, 11, 18, 1, 2, 3, 4)],  # noqa: DTZ001 - a time without a zone
        [datetime(2026, 11, 18, tzinfo=UTC)],
        [1, 1.5],
        ["x", b"x"],
        [time(1)],
        [Decimal("1.25"), Decimal(3)],
        [[1], None, []],
        [{"a": 1}],
        [np.int32(1)],
        [None],
        [],
        np.array([1, 2], dtype="i2"),
        np.array([1.5, np.nan], dtype="f2"),
        np.array([True]),
        np.arange(6)[::2],
        np.array(["x"]),
        np.array(["2026-11-18"], dtype="M8[s]"),
        np.ma.masked_array([1, 2], [False, True]),
    ],
    ids=repr,
)
def test_what_a_column_without_a_type_holds_is_what_arrow_says(values):
    expected = pa.record_batch({"a": pa.array(values)})
    frame = frame_of({"a": values})
    assert frame.schema == expected.schema
    (batch,) = frame.batches({})
    assert batch.schema == expected.schema
    assert repr(batch.to_pylist()) == repr(expected.to_pylist())
    if isinstance(values, list) and values:
        assert frame_of([{"a": each} for each in values]).schema == expected.schema


def test_numbers_beyond_64_bits_are_refused_with_their_column():
    with pytest.raises(InvalidValueError, match="'a' has a whole number of more than 64 bits"):
        frame_of({"a": [1, 2**63]}).schema  # noqa: B018 - it is made when it is asked for


def test_nan_is_null_in_pandas_and_a_number_elsewhere():
    nan = float("nan")
    types = {"v": DataTypes.double()}
    (of_pandas,) = rows_of(frame_of(pd.DataFrame({"v": [nan]})), types)
    assert of_pandas == {"v": None}
    for data in (pa.table({"v": [nan]}), pl.DataFrame({"v": [nan]}), [{"v": nan}], {"v": [nan]}):
        (row,) = rows_of(frame_of(data), types)
        assert np.isnan(row["v"])


@pytest.mark.parametrize("data", [7, "text", b"bytes", None, object(), iter([1, 2]), iter([])])
def test_what_is_not_tabular_is_refused(data):
    with pytest.raises(InvalidValueError) as error:
        frame_of(data)
    assert error.value.hint


def test_a_pandas_frame_of_mixed_objects_is_refused_with_a_reason():
    with pytest.raises(
        InvalidValueError, match=r"In row 1: .*'v' holds.*kinds: int and str"
    ) as error:
        frame_of(pd.DataFrame({"id": [1, 2, 3], "v": [1, "x", object()]}))
    assert "one kind" not in str(error.value.hint)
    for strange in ([1j, 2j], [object(), None]):
        kind = type(strange[0]).__name__
        with pytest.raises(InvalidValueError, match=f"values of the type {kind}"):
            frame_of(pd.DataFrame({"v": strange}))
        with pytest.raises(InvalidValueError, match=f"values of the type {kind}"):
            _ = frame_of({"v": strange}).schema
