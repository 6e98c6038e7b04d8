"""Types and columns as users give them."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Optional

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fluss.errors import InvalidSchemaError, UnsupportedTypeError
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes as D
from fluss.model.types.given_types import columns_if_given, columns_of, data_type_of, is_type

TYPES = [
    ("BIGINT", D.bigint()),
    ("bigint not null", D.bigint().not_null()),
    ("ARRAY<decimal(10,2)>", D.array(D.decimal(10, 2))),
    (D.int(), D.int()),
    (bool, D.boolean()),
    (int, D.bigint()),
    (float, D.double()),
    (str, D.string()),
    (bytes, D.bytes()),
    (date, D.date()),
    (time, D.time(6)),
    (datetime, D.timestamp(6)),
    (list[int], D.array(D.bigint())),
    (Sequence[str], D.array(D.string())),
    (dict[str, list[float]], D.map(D.string().not_null(), D.array(D.double()))),
    (Mapping[str, int], D.map(D.string().not_null(), D.bigint())),
    (int | None, D.bigint()),
    (Optional[str], D.string()),  # noqa: UP045 - the old spelling, too
    (pa.int32(), D.int()),
    (pa.timestamp("ms", "UTC"), D.timestamp_ltz(3)),
    (pa.list_(pa.string()), D.array(D.string())),
    (pl.Int16, D.smallint()),
    (pl.Int16(), D.smallint()),
    (pl.Datetime("us", "UTC"), D.timestamp_ltz(6)),
    (pl.List(pl.Int128), D.array(D.decimal(38, 0))),
    (pl.Categorical, D.string()),
    (np.float32, D.float()),
    (np.dtype("int16"), D.smallint()),
    (np.dtype("datetime64[ms]"), D.timestamp(3)),
    (pd.Int64Dtype(), D.bigint()),
    (pd.StringDtype(), D.string()),
    (pd.DatetimeTZDtype("us", "Europe/Berlin"), D.timestamp_ltz(6)),
    (pd.ArrowDtype(pa.list_(pa.int8())), D.array(D.tinyint())),
]


@pytest.mark.parametrize(("given", "expected"), TYPES, ids=range(len(TYPES)))
def test_a_type_is_taken_as_it_is_given(given, expected):
    assert data_type_of(given, "c") == expected
    assert is_type(given) is not isinstance(given, str)


@pytest.mark.parametrize(
    "given",
    [
        object,
        None,
        3,
        "BIGNT",
        "",
        Decimal,
        dict,
        list,
        int | str,
        [],
        set[int],
        complex,
        pd.PeriodDtype("D"),
    ],
)
def test_what_is_no_type_is_refused_with_its_column(given):
    with pytest.raises(InvalidSchemaError) as refused:
        data_type_of(given, "c")
    assert "'c'" in refused.value.message
    assert refused.value.hint
    assert refused.value.column == "c"


def test_a_type_of_polars_that_nothing_stands_for_is_refused():
    with pytest.raises(UnsupportedTypeError, match="Object"):
        data_type_of(pl.Object, "c")
    with pytest.raises(UnsupportedTypeError):
        data_type_of(pl.Duration, "c")


@pytest.mark.parametrize(
    "given",
    [
        {"a": "INT", "b": "STRING"},
        {"a": "INT", "b": str},
        [("a", "INT"), ("b", str)],
        [("a", pa.int32()), Column("b", D.string())],
        [pa.field("a", pa.int32()), pa.field("b", pa.string())],
        pa.schema([("a", pa.int32()), ("b", pa.string())]),
        pl.Schema({"a": pl.Int32, "b": pl.String}),
        {"a": pl.Int32, "b": pl.Categorical},
    ],
    ids=str,
)
def test_columns_are_taken_as_they_are_given(given):
    expected = [("a", D.int()), ("b", D.string())]
    assert [(each.name, each.data_type) for each in columns_of(given)] == expected
    assert [(each.name, each.data_type) for each in Schema(given).columns] == expected
    if not isinstance(given, pa.Schema):
        assert [(each.name, each.data_type) for each in columns_if_given(given)] == expected


@pytest.mark.parametrize(
    "data",
    [
        {"a": [1, 2]},
        {"a": 1, "b": "Ada"},
        {"a": np.array([1])},
        [{"a": "INT"}],
        [],
        {},
        pa.table({"a": [1]}),
        pl.DataFrame({"a": [1]}),
        {"a": pl.Series([1])},
        {"a": pa.array([1])},
    ],
    ids=lambda each: str(each)[:30],
)
def test_data_is_no_schema(data):
    assert columns_if_given(data) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"a": "BIGINT", "b": 3}, "'b' is none: 3"),
        ({"a": int, "b": [1, 2]}, "'b' is none"),
        ({"name": "Ada", "kind": "int"}, "'Ada'"),
        ({"name": "Ada"}, "'Ada'"),
        ({"a": "BIGINT", "b": "STRNG"}, "STRNG"),
        ([("a", "BIGNT")], "BIGNT"),
    ],
)
def test_what_may_be_types_or_values_is_refused(data, said):
    with pytest.raises(InvalidSchemaError, match=said) as refused:
        columns_if_given(data)
    assert refused.value.hint
    if isinstance(data, dict):
        assert "[{...}]" in refused.value.hint


def test_a_column_and_a_builder_take_texts():
    assert Column("a", "INT").data_type == D.int()
    assert Schema.builder().column("a", "INT").column("b", list[str]).build().column_types == (
        D.int(), D.array(D.string()),
    )  # fmt: skip
    with pytest.raises(InvalidSchemaError, match="'a'"):
        Column("a", 3)
