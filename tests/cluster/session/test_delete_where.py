"""Rows that are deleted by a condition, and the writing methods of sessions by table name."""

import sys

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fluss.session.deleting
from fluss import col
from fluss.errors import (
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    MissingExtraError,
    TableNotFoundError,
    UnsupportedOperationError,
)


def ids(table):
    return sorted(table.to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(
    "condition",
    ["id > 20 OR (x < 0 AND id <> 3)", (col("id") > 20) | ((col("x") < 0) & (col("id") != 3)),
     (pc.field("id") > 20) | ((pc.field("x") < 0) & (pc.field("id") != 3))],
    ids=["sql", "predicate", "expression"],
)  # fmt: skip
def test_rows_that_fulfil_a_condition_are_deleted(keyed, condition):
    report = keyed.delete(where=condition)
    assert report.counts == {"delete": 979 + 9}  # ten of the rows had gone before
    assert ids(keyed) == [3, 20]
    assert keyed.delete(where=condition).rows == 0


def test_a_predicate_in_the_place_of_keys_is_a_condition(session, keyed):
    assert keyed.delete(col("id") >= 500).rows == 500
    assert session.delete("keyed", pc.field("id") >= 400).rows == 100
    assert session.delete("keyed", where="id IN (300, 15, 2000)").rows == 1
    assert session.delete("keyed", [301, 302]).rows == 2
    assert keyed.count() == 400 - 10 - 3


def test_options_of_a_url_do_not_narrow_what_is_deleted(session, keyed):
    with_options = type(keyed)(session.table("keyed")._core, {"limit": 1, "columns": ["x"]})
    assert with_options.delete(where="id < 10").rows == 10


def test_a_partition_is_deleted_from_by_its_key(session, rows):
    table = session.create_table(
        "parts", rows, primary_key=["id", "day"], partition_by=["day"], buckets=1
    )
    table.upsert(rows)
    assert table.delete(where="day = '2026-01-02' AND x < 50").rows == 133
    assert table.count() == 1_000 - 133


def test_nothing_is_deleted_where_the_condition_fails_while_it_is_read(keyed, monkeypatch):
    def broken(scan, **_):
        raise FlussError("the server has gone")

    monkeypatch.setattr(fluss.session.deleting.Scan, "to_arrow", broken)
    with pytest.raises(FlussError, match="gone"):
        keyed.delete(where="id > 0")
    monkeypatch.undo()
    assert keyed.count() == 990


def test_what_cannot_be_meant_is_refused_before_anything_is_read(session, keyed, events):
    with pytest.raises(UnsupportedOperationError, match="primary key"):
        events.delete(where="id > 0")
    with pytest.raises(InvalidValueError, match="not given"):
        keyed.delete()
    with pytest.raises(InvalidValueError, match="both given"):
        keyed.delete([1], where="id > 0")
    with pytest.raises(InvalidValueError) as refused:
        keyed.delete("id > 0")
    assert "where='id > 0'" in refused.value.hint
    with pytest.raises(InvalidSchemaError, match="'id'"):
        keyed.delete(where="idd > 0")
    with pytest.raises(InvalidValueError, match="no '_log_offset'"):
        keyed.delete(where="_log_offset > 0")
    with pytest.raises(TableNotFoundError, match="did you mean"):
        session.delete("keyd", [1])
    assert keyed.count() == 990


def test_a_session_updates_some_columns_by_key(session, keyed):
    assert session.update("keyed", {"id": [1, 2], "x": [8.0, 9.0]}).counts == {"update": 2}
    found = session.table("keyed").lookup([1, 2]).to_pylist()
    assert [(row["day"], row["x"]) for row in found] == [("2026-01-02", 8.0), ("2026-01-03", 9.0)]
    rows = {"id": [3], "day": ["d"], "x": [1.0]}
    assert session.update("keyed", rows, columns=["x"]).rows == 1
    assert session.table("keyed").lookup([3]).to_pylist()[0]["day"] == "2026-01-01"


def test_rows_are_given_to_polars(events, keyed, monkeypatch):
    assert keyed.to_polars().equals(pl.DataFrame(keyed.to_arrow()))
    scan = events.scan(filter="id < 5", columns=["id"])
    assert scan.to_polars().equals(pl.DataFrame(pa.table(scan)))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match="Polars is not installed") as missing:
        events.to_polars()
    assert missing.value.hint == "pip install polars"
