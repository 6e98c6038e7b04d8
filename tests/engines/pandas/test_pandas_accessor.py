"""`df.fluss`: a frame is written exactly, or not at all."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fluss.pandas  # noqa: F401 - gives pandas read_fluss and df.fluss
from fluss.errors import (
    FlussError,
    InvalidValueError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
    UnsupportedTypeError,
)


@pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable", "numpy"])
def test_what_was_read_can_be_written_to_another_table(session, typed, every_type, backend):
    copy = session.create_table("copy", every_type, buckets=1)
    report = pd.read_fluss(typed, dtype_backend=backend).fluss.append(copy)
    assert report.rows == 3
    written, meant = copy.to_arrow(), typed.to_arrow()
    floats = ["short", "long"] if backend != "pyarrow" else []  # where NaN is NULL
    assert repr(written.drop(floats).to_pydict()) == repr(meant.drop(floats).to_pydict())


def test_rows_are_upserted_updated_and_deleted(cluster, keyed):
    settings = {"bootstrap.servers": cluster.bootstrap}
    pd.DataFrame({"id": [1, 200], "name": ["new", "new"], "points": [-1, -2]}).fluss.upsert(
        keyed.name, config=settings
    )
    pd.DataFrame({"id": [2], "name": ["only this"]}).fluss.update(keyed)
    pd.DataFrame({"id": [3], "name": ["left"], "points": [9]}).fluss.update(
        keyed, columns=["points"]
    )
    assert pd.DataFrame({"id": [4, 999]}).fluss.delete(keyed).counts == {"delete": 2}
    rows = pd.read_fluss(keyed, index_col="id")
    assert rows.loc[1].tolist() == ["new", -1]
    assert rows.loc[200].tolist() == ["new", -2]
    assert rows.loc[2].tolist() == ["only this", 2]
    assert rows.loc[3].tolist() == ["old", 9]
    assert 4 not in rows.index
    assert len(rows) == 100


def test_an_index_with_a_name_is_written_or_refused(keyed):
    rows = pd.read_fluss(keyed, index_col="id")
    rows.loc[:10, "name"] = "changed"
    assert rows.fluss.upsert(keyed).rows == 100
    assert (pd.read_fluss(keyed, index_col="id").loc[10, "name"]) == "changed"
    rows.loc[[5]].fluss.delete(keyed)
    other = pd.DataFrame(
        {"id": [5], "name": ["x"], "points": [1]}, index=pd.Index(["?"], name="elsewhere")
    )
    with pytest.raises(SchemaMismatchError, match="named 'elsewhere'") as refused:
        other.fluss.upsert(keyed)
    assert "df.reset_index('elsewhere', drop=True)" in refused.value.hint
    other.reset_index(drop=True).fluss.upsert(keyed)
    assert len(pd.read_fluss(keyed)) == 100
    same = other.set_index("id", drop=False)
    same.fluss.upsert(keyed)
    with pytest.raises(InvalidValueError, match="both named 'id'"):
        other.set_index(pd.Index([6], name="id")).fluss.upsert(keyed)


def test_periods_are_refused(session):
    table = session.create_table("periods", {"month": "BIGINT"}, buckets=1)
    months = pd.DataFrame({"month": pd.period_range("2026-01", periods=3, freq="M")})
    with pytest.raises(UnsupportedTypeError, match="holds periods") as refused:
        months.fluss.append(table)
    assert "to_timestamp()" in refused.value.hint
    for data in (months, {"month": months["month"]}, months.set_index("month").assign(x=1)):
        with pytest.raises(UnsupportedTypeError, match="holds periods"):
            session.append("made", data, create=True)
    with pytest.raises(FlussError):
        table.append(pa.Table.from_pandas(months))
    assert table.count() == 0
    assert "made" not in session.tables()


def test_nan_of_numpy_is_null_and_nan_of_arrow_is_nan(session):
    table = session.create_table("nans", pa.schema([("x", pa.float64())]), buckets=1)
    pd.DataFrame({"x": [1.0, np.nan]}).fluss.append(table)
    arrow = pd.array(pa.array([1.0, float("nan"), None]), dtype=pd.ArrowDtype(pa.float64()))
    pd.DataFrame({"x": arrow}).fluss.append(table)
    assert repr(table.to_arrow().column("x").to_pylist()) == "[1.0, None, 1.0, nan, None]"


def test_a_changelog_is_applied(session, keyed):
    copy = session.create_table("copied", keyed.schema, primary_key=["id"], buckets=1)
    keyed.delete({"id": [7]})
    pd.read_fluss(keyed, mode="changelog").fluss.upsert(copy)
    left, right = (each.to_pandas().sort_values("id", ignore_index=True) for each in (copy, keyed))
    assert left.equals(right)


def test_what_does_not_fit_is_refused_and_nothing_is_written(keyed, events):
    count = events.count()
    with pytest.raises(SchemaMismatchError, match="nam"):
        pd.DataFrame({"id": [1], "nam": ["x"]}).fluss.append(events)
    with pytest.raises((SchemaMismatchError, InvalidValueError), match="id"):
        pd.DataFrame({"id": [1.5], "name": ["x"]}).fluss.append(events)
    twice = pd.DataFrame([[1, 2, "x"]], columns=["id", "id", "name"])
    with pytest.raises(InvalidValueError, match="two columns 'id'"):
        twice.fluss.append(events)
    with pytest.raises(UnsupportedOperationError):
        pd.DataFrame({"id": [1], "name": ["x"]}).fluss.upsert(events)
    with pytest.raises(UnsupportedOperationError):
        pd.DataFrame({"id": [1], "name": ["x"], "points": [1]}).fluss.append(keyed)
    with pytest.raises(TableNotFoundError, match="did you mean"):
        pd.DataFrame({"id": [1]}).fluss.append(f"{events.name}s")
    assert events.count() == count


def test_an_index_whose_levels_have_one_name_is_refused(session):
    index = pd.MultiIndex.from_tuples([(1, 2)], names=["a", "a"])
    with pytest.raises(InvalidValueError, match="Two levels"):
        session.append("twice", pd.DataFrame({"x": [1]}, index=index), create=True)


def test_a_missing_table_is_created(session, cluster):
    frame = pd.DataFrame({"id": [1, 2], "tags": [["a"], []]}).set_index("id")
    url = f"fluss://{cluster.bootstrap}/{session.path_of('made')}"
    with pytest.raises(TableNotFoundError):
        frame.fluss.upsert(url)
    assert frame.fluss.upsert(url, create=True, primary_key="id", buckets=1).rows == 2
    assert frame.fluss.upsert(url, create=True, primary_key="id").rows == 2
    assert session.table("made").lookup([1]).to_pylist() == [
        {"id": 1, "tags": ["a"], "_found": True}
    ]
    with pytest.raises(UnsupportedOperationError):
        frame.fluss.append(f"{url}_log", create=True, primary_key="id")
    assert session.tables() == ["made"]
