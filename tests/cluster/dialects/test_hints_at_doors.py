"""Hints use the words of the dialect and of the frame in use."""

import asyncio

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss.pandas
import fluss_duckdb
from fluss.cli import main
from fluss.errors import ConfigError, FlussError, SchemaMismatchError, UnsupportedOperationError
from fluss.pandas import read_fluss
from fluss_polars import scan_fluss

ROW = [{"id": 1, "day": "a", "x": 0.5}]
TEXTS = {"id": ["x"], "day": ["a"], "x": [0.5]}


def hint_of(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return caught.value.hint


async def append_with_the_client(cluster, table):
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with await fluss.FlussConnection.create(config) as connection:
        found = await connection.get_table(fluss.TablePath(*table.split(".")))
        found.new_append()


def test_a_key_table_that_is_appended_to(session, cluster, keyed):
    name, refused = keyed.name, UnsupportedOperationError
    with fluss_duckdb.connect(session=session) as con:
        relation = con.sql("SELECT 1::BIGINT AS id, 'a' AS day, 0.5::DOUBLE AS x")
        hint = hint_of(refused, lambda: fluss_duckdb.append(name, relation))
    assert f"fluss_duckdb.upsert('{name}', ...)" in hint
    client = lambda: asyncio.run(append_with_the_client(cluster, name))  # noqa: E731
    assert "table.new_upsert()" in hint_of(refused, client)
    hint = hint_of(refused, lambda: session.append(name, ROW))
    assert f"session.upsert('{name}', ...) or table.upsert(...)" in hint
    with session:
        for frame in (pd.DataFrame(ROW), pl.DataFrame(ROW)):
            hint = hint_of(refused, lambda frame=frame: frame.fluss.append(name))
            assert f"df.fluss.upsert('{name}')" in hint


@pytest.mark.parametrize(
    ("made", "hint"),
    [
        (pa.table, "column.cast(pa.int64())"),
        (pd.DataFrame, "df.astype({'id': 'Int64'})"),
        (pl.DataFrame, "df.with_columns(pl.col('id').cast(pl.Int64))"),
    ],
    ids=["arrow", "pandas", "polars"],
)
def test_a_column_of_another_type_is_cast_in_the_words_of_the_frame(session, keyed, made, hint):
    frame = made(TEXTS)
    assert hint in hint_of(SchemaMismatchError, lambda: keyed.upsert(frame))
    if made is not pa.table:
        with session:
            assert hint in hint_of(SchemaMismatchError, lambda: frame.fluss.upsert(keyed.name))


def test_a_missing_column_is_added_in_the_words_of_the_frame(session, keyed):
    short = {"id": [1], "x": [0.5]}
    for frame, hint in (
        (pa.table(short), "batch.append_column('day', pa.nulls(len(batch)))"),
        (pd.DataFrame(short), "df['day'] = None"),
        (pl.DataFrame(short), "df.with_columns(pl.lit(None).alias('day'))"),
    ):
        assert hint in hint_of(SchemaMismatchError, lambda frame=frame: keyed.upsert(frame))


def test_an_option_is_written_as_the_door_takes_it(session, keyed, capsys, monkeypatch):
    name = keyed.name
    assert "use mode='changelog'" in hint_of(
        FlussError, lambda: keyed.scan(start="earliest").count()
    )
    with session:
        frame = scan_fluss(name, start="earliest")
        with pytest.raises(Exception, match="use mode='changelog'"):
            frame.collect()
        assert "mode='changelog'" in hint_of(FlussError, lambda: read_fluss(name, start="earliest"))
    with fluss_duckdb.connect(session=session) as con:
        query = f"FROM fluss('{name}', start := 'earliest')"
        assert "mode := 'changelog'" in hint_of(FlussError, lambda: con.sql(query).fetchall())
    url = f"fluss://{session.config.bootstrap_servers}"
    monkeypatch.setattr("sys.argv", ["fluss", "--url", url, "head", name, "--start", "earliest"])
    assert main() == 1
    assert "use --mode changelog" in capsys.readouterr().err


def test_an_option_for_a_session_is_refused_with_its_table(session, keyed):
    name, config = keyed.name, session.config
    scan = {"session": session}
    assert "session.table(" in hint_of(ConfigError, lambda: keyed.scan(**scan))
    polars = hint_of(ConfigError, lambda: scan_fluss(name, config=config, **scan))
    assert "pl.scan_fluss(session.table(" in polars
    pandas = hint_of(ConfigError, lambda: read_fluss(name, config=config, **scan))
    assert "pd.read_fluss(session.table(" in pandas
    with fluss_duckdb.connect(session=session) as con:
        duckdb = hint_of(ConfigError, lambda: con.fluss(name, **scan))
        assert "fluss_duckdb.connect(session=session)" in duckdb
    frame = pl.DataFrame({"id": [1]})
    with pytest.raises(TypeError, match=r"a session has append\(\) itself"):
        frame.fluss.append(name, **scan)
    assert "session.config" in hint_of(ConfigError, lambda: scan_fluss(name, config=session))
