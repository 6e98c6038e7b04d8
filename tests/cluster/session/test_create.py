"""`create=True`: a table that exists is what was asked for, and a refused call makes none."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fluss_duckdb
from fluss.errors import FlussError, InvalidValueError, SchemaMismatchError

ROWS = {"id": [1, 2], "day": ["mon", "tue"], "x": [0.5, 1.5]}


@pytest.fixture
def made(session):
    session.append("log", ROWS, create=True, partition_by=["day"], buckets=2, bucket_key=["id"])
    session.upsert("keyed", ROWS, create=True, primary_key=["id"], buckets=2)
    return session


@pytest.mark.parametrize(
    ("name", "how", "text"),
    [
        ("log", {"primary_key": ["id"]}, "primary_key is none, not (id)"),
        ("log", {"partition_by": ["id"]}, "partition_by is (day), not (id)"),
        ("log", {"partition_by": []}, "partition_by is (day), not none"),
        ("log", {"buckets": 7}, "buckets is 2, not 7"),
        ("log", {"bucket_key": "x"}, "bucket_key is (id), not (x)"),
        ("keyed", {"primary_key": ["id", "day"]}, "primary_key is (id), not (id, day)"),
        ("keyed", {"primary_key": "id", "auto_increment": "x"}, "auto_increment is none, not (x)"),
    ],
)
def test_a_table_that_differs_is_refused_before_anything_is_written(made, name, how, text):
    write = made.upsert if name == "keyed" else made.append
    for call in (
        lambda: write(name, ROWS, create=True, **how),
        lambda: made.ensure_table(name, ROWS, **how),
    ):
        with pytest.raises(SchemaMismatchError) as refused:
            call()
        assert text in refused.value.message
        assert "Leave" in refused.value.hint
    assert made.table(name).count() == 2


def test_a_table_that_is_as_it_was_asked_for_is_written_to(made):
    made.append("log", ROWS, create=True)
    made.append(
        "log", ROWS, create=True, partition_by="day", buckets=2, bucket_key="id", comment="x"
    )
    made.upsert("keyed", ROWS, create=True, primary_key="id")
    assert made.table("log").count() == 6
    assert made.ensure_table("keyed", ROWS, primary_key=["id"]).count() == 2
    with pytest.raises(TypeError, match="bucket"):
        made.append("log", ROWS, create=True, bucket=2)


REFUSED = {
    "a key for a log": ("append", ROWS, {"primary_key": ["id"]}),
    "no key": ("upsert", ROWS, {}),
    "a NULL in the key": ("upsert", {"id": [1, None]}, {"primary_key": ["id"]}),
    "a NULL partition": ("append", {"id": [1, None]}, {"partition_by": ["id"]}),
    "a partition that cannot be": ("append", {"p": ["x" * 300]}, {"partition_by": ["p"]}),
    "another argument": ("append", ROWS, {"bucket": 3}),
    "an unknown key": ("upsert", ROWS, {"primary_key": ["nothing"]}),
    "columns of a scan": ("append", {**ROWS, "_log_offset": [0, 1]}, {}),
    "changes for a log": ("append", {**ROWS, "_change_type": ["insert", "delete"]}, {}),
    "no kind of change": (
        "upsert",
        {**ROWS, "_change_type": ["insert", "x"]},
        {"primary_key": ["id"]},
    ),
    "objects": ("append", pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), {}),
    "a stream": ("upsert", pa.table({"id": [1, None]}).to_reader, {"primary_key": ["id"]}),
    "periods": ("append", pd.DataFrame({"a": pd.period_range("2026", periods=2, freq="D")}), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_is_refused_has_made_no_table(session, case):
    verb, data, how = REFUSED[case]
    data = data() if callable(data) else data
    with pytest.raises((FlussError, TypeError)):
        getattr(session, verb)("refused", data, create=True, **how)
    assert "refused" not in session.tables()
    if not isinstance(data, pa.RecordBatchReader):
        with pytest.raises((FlussError, TypeError)):
            getattr(fluss_duckdb, verb)(
                str(session.path_of("refused")), data, session=session, create=True, **how
            )
        assert "refused" not in session.tables()


def test_a_stream_is_written_whole_after_its_first_batch_was_checked(session):
    rows = pa.table({"id": range(1_000)})
    report = session.append("streamed", rows.to_reader(100), create=True, buckets=1)
    assert report.rows == 1_000
    assert session.table("streamed").to_arrow().equals(rows)
    empty = session.append("empty", rows.slice(0, 0).to_reader(), create=True, buckets=1)
    assert empty.rows == 0
    assert session.table("empty").schema == rows.schema


def test_a_named_index_of_pandas_becomes_columns(session):
    index = pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["id", None])
    session.upsert(
        "indexed", pd.DataFrame({"x": [0.5, 1.5]}, index=index), create=True, primary_key="id"
    )
    assert session.table("indexed").to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 2],
        "x": [0.5, 1.5],
    }
    plain = pd.DataFrame({"x": [1.0]}, index=[7])
    session.append("plain", plain, create=True)
    assert session.table("plain").schema.names == ["x"]


def test_a_copy_of_a_changelog_has_the_columns_of_its_table(made):
    changes = made.table("keyed$changelog").scan().to_arrow()
    assert "_log_offset" in changes.column_names
    made.upsert("copy", changes, create=True, primary_key=["id"])
    assert (
        made.table("copy")
        .to_arrow()
        .sort_by("id")
        .equals(made.table("keyed").to_arrow().sort_by("id"))
    )
    with pytest.raises(FlussError, match="which a scan adds"):
        made.append("audit", changes, create=True)
    audit = changes.rename_columns([name.lstrip("_") for name in changes.column_names])
    made.append("audit", audit, create=True)
    assert made.table("audit").count() == 2
    with pytest.raises(InvalidValueError, match="create=True"):
        made.append("audit", audit, buckets=2)
