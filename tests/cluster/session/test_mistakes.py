"""Usual mistakes of a first day: what happened, why, and what to do, in the words of the caller.

What one adapter or the command line refuses by itself is tested in its own folder.
"""

import asyncio

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss.pandas
import fluss_duckdb
import fluss_polars  # noqa: F401 - gives frames .fluss
from fluss import col
from fluss.errors import (
    AuthenticationError,
    ConnectError,
    DatabaseAlreadyExistsError,
    DatabaseNotEmptyError,
    InvalidValueError,
    PartitionAlreadyExistsError,
    PartitionNotFoundError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)

IGNORE = "ignore_if_exists=True leaves it as it is"


@pytest.fixture
def session(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
        session.append(f"{database}.log", {"id": [1], "name": ["a"]}, create=True, buckets=1)
        session.upsert(
            f"{database}.keyed",
            {"id": [1], "name": ["a"]},
            create=True,
            primary_key=["id"],
            buckets=1,
        )
        yield session


def test_what_exists_says_how_to_leave_it(session, database):
    with pytest.raises(DatabaseAlreadyExistsError) as caught:
        session.create_database(database)
    assert caught.value.hint == IGNORE
    with pytest.raises(TableAlreadyExistsError) as caught:
        session.create_table(f"{database}.log", {"id": "BIGINT"})
    assert caught.value.hint == IGNORE
    days = session.create_table(
        f"{database}.days", {"id": "BIGINT", "day": "STRING"}, partition_by=["day"], buckets=1
    )
    days.create_partition({"day": "2026"})
    with pytest.raises(PartitionAlreadyExistsError) as caught:
        days.create_partition({"day": "2026"})
    assert caught.value.hint == IGNORE


def test_a_database_with_tables_says_how_to_drop_them_too(session, database):
    with pytest.raises(DatabaseNotEmptyError) as caught:
        session.drop_database(database)
    assert caught.value.hint == "cascade=True drops its tables as well"
    assert f"{database}.log".partition(".")[2] in session.tables(database), "nothing was dropped"


def test_a_log_has_no_row_to_delete(session, database):
    for delete in (
        lambda: session.table(f"{database}.log").delete([1]),
        lambda: pl.DataFrame({"id": [1]}).fluss.delete(f"{database}.log"),
    ):
        with pytest.raises(UnsupportedOperationError, match="its rows cannot be deleted") as caught:
            delete()
        assert "only be deleted from tables with a primary key" in caught.value.hint
        assert "append" not in caught.value.hint


def test_an_upsert_into_a_new_table_needs_a_key_and_leaves_nothing(session, database):
    with pytest.raises(UnsupportedOperationError, match="cannot be replaced") as caught:
        session.upsert(f"{database}.new", {"id": [1]}, create=True)
    assert caught.value.hint == "create the table with primary_key=['id'], for example"
    assert "new" not in session.tables(database)


@pytest.mark.one_server
def test_a_column_of_several_kinds_is_named_in_a_sentence(session, database):
    mixed = pd.DataFrame({"id": [1, 2], "name": ["x", 3]})
    with pytest.raises(InvalidValueError) as caught:
        mixed.fluss.append(f"{database}.log")
    assert "The column 'name' holds values of several kinds: int and str" in str(caught.value)
    assert (
        caught.value.hint == "make them one kind, for example texts: df.astype({'name': 'string'})"
    )
    assert mixed.astype({"name": "string"}).fluss.append(f"{database}.log").rows == 2


@pytest.mark.one_server
def test_the_hint_for_a_wrong_type_is_a_line_that_works(session, database):
    ids = pd.DataFrame({"id": [1.0, np.nan], "name": ["a", "b"]})
    with pytest.raises(SchemaMismatchError) as caught:
        ids.fluss.append(f"{database}.log")
    assert caught.value.hint == "cast the column: df.astype({'id': 'Int64'})"
    assert ids.astype({"id": "Int64"}).fluss.append(f"{database}.log").rows == 2
    texts = pl.DataFrame({"id": ["7"], "name": ["a"]})
    with pytest.raises(SchemaMismatchError) as caught:
        texts.fluss.append(f"{database}.log")
    assert caught.value.hint == "cast the column: df.with_columns(pl.col('id').cast(pl.Int64))"
    assert texts.with_columns(pl.col("id").cast(pl.Int64)).fluss.append(f"{database}.log").rows == 1


@pytest.mark.one_server
@pytest.mark.parametrize("append", ["session", "polars", "pandas", "duckdb"])
def test_an_append_to_keyed_rows_names_the_upsert_of_the_door(session, database, append):
    table, rows = f"{database}.keyed", {"id": [1], "name": ["a"]}
    calls = {
        "session": (lambda: session.append(table, rows), f"session.upsert('{table}'"),
        "polars": (lambda: pl.DataFrame(rows).fluss.append(table), "df.fluss.upsert("),
        "pandas": (lambda: pd.DataFrame(rows).fluss.append(table), "df.fluss.upsert("),
        "duckdb": (
            lambda: fluss_duckdb.append(table, pl.DataFrame(rows)),
            f"fluss_duckdb.upsert('{table}'",
        ),
    }
    call, hint = calls[append]
    with pytest.raises(UnsupportedOperationError, match="has a primary key") as caught:
        call()
    assert hint in caught.value.hint


@pytest.mark.one_server
def test_words_of_conditions_are_explained(session, database):
    with pytest.raises(TypeError, match=r"join predicates with & and \|"):
        session.table(f"{database}.log").scan(filter=(col("id") > 1) and (col("id") < 3))
    with pytest.raises(InvalidValueError) as caught:
        session.table(f"{database}.log").scan(filter=pl.col("id") > 1)
    assert "fluss.col()" in caught.value.hint


@pytest.mark.one_server
def test_a_misspelled_argument_names_the_nearest(session, database):
    with pytest.raises(
        TypeError, match=r"create_table\(\) has no argument 'bucket'; did you mean 'buckets'"
    ):
        session.create_table(f"{database}.new", {"id": "BIGINT"}, bucket=3)
    table, rows = f"{database}.new", {"id": [1]}
    calls = [
        lambda: session.append(table, rows, create=True, bucket=3),
        lambda: session.upsert(table, rows, create=True, bucket=3),
        lambda: session.append(table, rows, bucket=3),
        lambda: session.ensure_table(table, {"id": "BIGINT"}, bucket=3),
        lambda: pl.DataFrame(rows).fluss.append(table, create=True, bucket=3),
        lambda: pd.DataFrame(rows).fluss.upsert(table, create=True, bucket=3),
        lambda: fluss_duckdb.append(
            table, pl.DataFrame(rows), session=session, create=True, bucket=3
        ),
    ]
    for call in calls:
        with pytest.raises(
            TypeError, match=r"\w+\(\) has no argument 'bucket'; did you mean 'buckets'"
        ):
            call()
    assert "new" not in session.tables(database)


@pytest.mark.one_server
def test_a_missing_value_of_a_key_says_how_to_fill_it(session, database):
    table = f"{database}.keyed"
    polars = pl.DataFrame({"id": [None], "name": ["a"]}, schema_overrides={"id": pl.Int64})
    pandas = pd.DataFrame({"id": pd.array([None], dtype="Int64"), "name": ["a"]})
    hints = [
        (lambda: session.upsert(table, {"id": [None], "name": ["a"]}), "give it a value"),
        (lambda: polars.fluss.upsert(table), "pl.col('id').fill_null(...)"),
        (lambda: pandas.fluss.upsert(table), "df['id'].fillna(...)"),
    ]
    for call, hint in hints:
        with pytest.raises(InvalidValueError, match=r"In row 0.*'id' cannot take None") as caught:
            call()
        assert hint in caught.value.hint


@pytest.mark.one_server
def test_a_number_beyond_its_column_names_the_limits_at_every_door(session, database):
    table = f"{database}.log"
    for frame in (
        {"id": [2**63], "name": ["a"]},
        pl.DataFrame({"id": [2**63], "name": ["a"]}),
        pd.DataFrame({"id": [2**63], "name": ["a"]}),
    ):
        with pytest.raises(InvalidValueError, match=f"not between {-(2**63)} and {2**63 - 1}") as e:
            session.append(table, frame)
        assert e.value.hint == "choose a wider type for the column"


@pytest.mark.one_server
def test_a_column_that_is_there_twice_is_to_be_renamed(session, database):
    for twice in (
        pa.table([[1], [2]], names=["id", "id"]),
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
    ):
        with pytest.raises((SchemaMismatchError, InvalidValueError), match="'id'") as caught:
            session.append(f"{database}.log", twice)
        assert caught.value.hint == "rename or drop one of them"


@pytest.mark.one_server
def test_what_is_no_frame_is_refused_as_such(session, database):
    table = f"{database}.log"
    with pytest.raises(InvalidValueError, match="expected, not str") as caught:
        session.append(table, "rows.csv")
    assert "Read a file into a frame first" in caught.value.hint
    with pytest.raises(InvalidValueError, match="expected, not int") as caught:
        session.append(table, 7)
    assert "a list of dicts" in caught.value.hint
    with pytest.raises(SchemaMismatchError, match="it has no columns"):
        session.append(table, {})


def test_a_missing_partition_names_those_that_exist(session, database):
    days = session.create_table(
        f"{database}.days", {"id": "BIGINT", "day": "STRING"}, partition_by=["day"], buckets=1
    )
    with pytest.raises(PartitionNotFoundError) as caught:
        days.drop_partition({"day": "2026"})
    assert caught.value.hint == f"There are no partitions of {days.name}."
    days.create_partition({"day": "2025"})
    with pytest.raises(PartitionNotFoundError) as caught:
        days.drop_partition({"day": "monday"})
    assert caught.value.hint == f"The partitions of {days.name}: day=2025."
    with pytest.raises(PartitionNotFoundError, match="no partition day=2026; it has 1: 2025"):
        days.scan(partitions={"day": "2026"}).to_arrow()


@pytest.mark.one_server
def test_a_frame_of_the_documented_writer_gets_hints_for_frames(cluster, session, database):
    async def write():
        config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
        with await fluss.FlussConnection.create(config) as connection:
            table = await connection.get_table(f"{database}.log")
            table.new_append().create_writer().write_pandas(
                pd.DataFrame({"id": ["x"], "name": ["a"]})
            )

    with pytest.raises(SchemaMismatchError) as caught:
        asyncio.run(write())
    assert caught.value.hint == "cast the column: df.astype({'id': 'Int64'})"


def test_a_server_that_requires_a_login_says_how(cluster):
    with pytest.raises(AuthenticationError) as caught:
        fluss.connect(f"fluss://{cluster.sasl_bootstrap}").databases()
    assert "completed authentication" in caught.value.message
    assert "This server requires a login" in caught.value.hint
    assert "FLUSS_SASL_PASSWORD" in caught.value.hint


@pytest.mark.one_server
def test_where_no_server_runs_the_hint_names_the_command_that_starts_one():
    with pytest.raises(ConnectError) as caught:
        fluss.connect("fluss://127.0.0.1:9").databases()
    assert "`fluss server` starts one" in caught.value.hint
