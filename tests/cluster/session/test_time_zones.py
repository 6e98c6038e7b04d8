"""Times with and without a zone mean the same at every dialect (decision 0008)."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fluss.pandas  # noqa: F401 - `df.fluss`
import fluss_duckdb
import fluss_polars  # noqa: F401 - `df.fluss`
from fluss import DataTypes, Schema, col
from fluss.errors import FlussError, InvalidValueError, SchemaMismatchError

PLAIN = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - this is what it is about
MOMENT = PLAIN.replace(tzinfo=UTC)
BERLIN = MOMENT.astimezone(ZoneInfo("Europe/Berlin"))
ZONED = [MOMENT, BERLIN, MOMENT.astimezone(timezone(timedelta(hours=-5)))]

# What users write, by the name of the column.
DOORS = {
    "dicts": lambda name, value: [{name: value}],
    "tuples": lambda _name, value: [(value,)],
    "columns": lambda name, value: {name: [value]},
    "timestamps": lambda name, value: [{name: pd.Timestamp(value)}],
    "arrow": lambda name, value: pa.table({name: pa.array([value])}),
    "reader": lambda name, value: pa.table({name: pa.array([value])}).to_reader(),
    "pandas": lambda name, value: pd.DataFrame({name: [value]}),
    "polars": lambda name, value: pl.DataFrame({name: [value]}),
    "lazy": lambda name, value: pl.DataFrame({name: [value]}).lazy(),
}


@pytest.fixture
def wall(session):
    return session.create_table("wall", pa.schema([("t", pa.timestamp("us"))]), buckets=1)


@pytest.fixture
def moments(session):
    return session.create_table("moments", pa.schema([("t", pa.timestamp("us", "UTC"))]), buckets=1)


def test_a_time_without_a_zone_is_in_utc_where_moments_are_kept(moments):
    for make in DOORS.values():
        moments.append(make("t", PLAIN))
    moments.append({"t": np.array([PLAIN], "datetime64[ms]")})
    pd.DataFrame({"t": [PLAIN]}).fluss.append(moments)
    pl.DataFrame({"t": [PLAIN]}).fluss.append(moments)
    pl.DataFrame({"t": [PLAIN]}).lazy().fluss.append(moments)
    for value in ZONED:
        for make in DOORS.values():
            moments.append(make("t", value))
    assert moments.to_arrow().column("t").unique().to_pylist() == [MOMENT]
    assert moments.scan(filter=col("t") == PLAIN).count() == moments.count()
    assert moments.scan(filter=col("t") == BERLIN).count() == moments.count()


@pytest.mark.parametrize("dialect", DOORS)
@pytest.mark.parametrize("value", ZONED, ids=str)
def test_a_time_with_a_zone_is_refused_where_wall_clock_times_are_kept(dialect, value, wall):
    with pytest.raises(
        (InvalidValueError, SchemaMismatchError), match="zone would be lost"
    ) as refused:
        wall.append(DOORS[dialect]("t", value))
    assert refused.value.column == "t"
    assert "TIMESTAMP_LTZ" in refused.value.hint
    assert "wall clock" in refused.value.hint


def test_it_is_refused_by_the_accessors_and_by_a_filter(wall):
    for frame in (pd.DataFrame({"t": [MOMENT]}), pl.DataFrame({"t": [MOMENT]})):
        with pytest.raises(SchemaMismatchError, match="zone would be lost"):
            frame.fluss.append(wall)
    with pytest.raises(InvalidValueError, match="zone would be lost"):
        wall.scan(filter=col("t") == MOMENT).count()
    assert wall.count() == 0


def test_nested_times_and_keys_follow_the_same_rule(session):
    ltz, plain = DataTypes.timestamp_ltz(6), DataTypes.timestamp(6)
    schema = (
        Schema.builder()
        .column("t", ltz)
        .column("walls", DataTypes.array(plain))
        .column("moments", DataTypes.array(ltz))
        .primary_key(["t"])
        .build()
    )
    table = session.create_table("nested", schema, buckets=1)
    table.upsert([{"t": PLAIN, "walls": [PLAIN], "moments": [PLAIN, BERLIN]}])
    assert table.to_arrow().to_pylist() == [
        {"t": MOMENT, "walls": [PLAIN], "moments": [MOMENT, MOMENT]}
    ]
    for keys in ([PLAIN], [BERLIN], pl.Series([PLAIN]), pa.array([PLAIN]), pd.Series([BERLIN])):
        assert table.lookup(keys)["_found"].to_pylist() == [True]
    for nested in (
        [{"t": PLAIN, "walls": [MOMENT]}],
        pa.table({"t": [PLAIN], "walls": [[MOMENT]]}),
    ):
        with pytest.raises(FlussError, match="zone would be lost"):
            table.update(nested)


def test_duckdb_answers_itself_what_a_time_without_a_zone_is(session, wall, moments):
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'Europe/Berlin'")
    plain = "SELECT TIMESTAMP '2026-01-01 12:00:00' AS t"
    with pytest.raises(SchemaMismatchError, match="without a zone") as refused:
        fluss_duckdb.append(moments.name, engine.sql(plain), session=session)
    assert 'CAST("t" AS TIMESTAMPTZ)' in refused.value.hint
    zoned = plain.replace("TIMESTAMP '2026-01-01 12:00:00'", "TIMESTAMPTZ '2026-01-01 12:00:00'")
    with pytest.raises(SchemaMismatchError, match="zone would be lost"):
        fluss_duckdb.append(wall.name, engine.sql(zoned), session=session)
    fluss_duckdb.append(moments.name, engine.sql(zoned), session=session)
    fluss_duckdb.append(wall.name, engine.sql(plain), session=session)
    assert moments.to_arrow().to_pylist() == [{"t": MOMENT - timedelta(hours=1)}]
    assert wall.to_arrow().to_pylist() == [{"t": PLAIN}]
