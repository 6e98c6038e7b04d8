"""The code that hints give for a type is that type."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fluss.model.types.factory import DataTypes
from fluss.model.types.type_code import code_of
from fluss.model.types.type_to_arrow import to_wire_arrow_type

TYPES = [
    DataTypes.boolean(),
    DataTypes.tinyint(),
    DataTypes.smallint(),
    DataTypes.int(),
    DataTypes.bigint().not_null(),
    DataTypes.float(),
    DataTypes.double(),
    DataTypes.char(3),
    DataTypes.string(),
    DataTypes.binary(4),
    DataTypes.bytes(),
    DataTypes.decimal(12, 3),
    DataTypes.date(),
    DataTypes.time(0),
    DataTypes.time(9),
    DataTypes.timestamp(6),
    DataTypes.timestamp_ltz(3),
    DataTypes.array(DataTypes.array(DataTypes.int())),
    DataTypes.map(DataTypes.string(), DataTypes.timestamp(3)),
    DataTypes.row([DataTypes.field("a b", DataTypes.bigint())]),
]


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_the_code_is_the_type(data_type):
    code = code_of(data_type)
    known = {"pa": pa, "pl": pl, "pd": pd}
    arrow = eval(code["arrow"], known)  # noqa: S307 - our own words
    wire = to_wire_arrow_type(data_type)
    if not isinstance(arrow, pa.TimestampType):
        assert arrow.equals(wire)
    pandas = eval(code["pandas"], known)  # noqa: S307 - our own words
    assert pd.Series([None], dtype=pandas).isna().all()
    polars = eval(code["polars"], known)  # noqa: S307 - our own words
    assert pl.Series([None]).cast(polars).dtype == polars
    kind = code["duckdb"]
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT CAST(NULL AS {kind})").fetchall() == [(None,)]
    assert code["type"] == str(data_type.as_nullable())
