"""Views that are refreshed, and joins of streams with tables that change meanwhile."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fluss_spark
from fluss.errors import InvalidNameError, InvalidValueError, UnsupportedOperationError

# They speak of Spark's views, and not of the server.
pytestmark = pytest.mark.one_server

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def log(session):
    table = session.create_table("log", SCHEMA, buckets=2)
    table.append({"id": [1], "v": ["a"]})
    return table


@pytest.fixture
def view(spark, cluster, database, log):
    """A view of the log, in one of Spark's own ways to make one."""
    options = f"(path '{database}.log', `bootstrap.servers` '{cluster.bootstrap}')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING fluss OPTIONS {options}")
    yield "seen"
    for each in ("seen", "derived", "made", "`weird name`"):
        spark.catalog.dropTempView(each)


def ids(spark, name):
    return sorted(each.id for each in spark.table(name).collect())


def test_a_view_has_what_was_inserted_into_it_and_frames_stay_pinned(spark, view, log):
    before = spark.table(view)
    assert before.count() == 1
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW derived AS SELECT id FROM seen WHERE id > 1")
    assert ids(spark, "derived") == []
    spark.sql("INSERT INTO seen VALUES (2, 'b')")
    assert ids(spark, view) == [1, 2]
    assert ids(spark, "derived") == [2]
    spark.sql("WITH more AS (SELECT 3L id, 'c' v) INSERT INTO seen (v, id) SELECT v, id FROM more")
    spark.range(4, 5).selectExpr("id", "'d' v").write.insertInto(view)
    assert ids(spark, view) == [1, 2, 3, 4]
    assert before.count() == 1


def test_refresh_table_and_refresh_read_a_view_again(spark, cluster, database, view, log):
    frame = fluss_spark.table(spark, f"{database}.log", **{"bootstrap.servers": cluster.bootstrap})
    frame.select("id", "v").createOrReplaceTempView("made")
    frame.createOrReplaceTempView("`weird name`")
    options = f"(path '{database}.log', columns 'id', `bootstrap.servers` '{cluster.bootstrap}')"
    spark.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW seen_all USING fluss OPTIONS {options}")
    names = [view, "`weird name`", "global_temp.seen_all", "made"]
    try:
        assert [spark.table(each).count() for each in names] == [1, 1, 1, 1]
        log.append({"id": [2], "v": ["b"]})
        assert [spark.table(each).count() for each in names] == [1, 1, 1, 1]
        spark.sql(f"REFRESH TABLE {view}")
        spark.catalog.refreshTable("`weird name`")
        fluss_spark.refresh(spark, "global_temp.seen_all")
        assert [spark.table(each).count() for each in names] == [2, 2, 2, 1]
        assert spark.table("global_temp.seen_all").columns == ["id"]
        with pytest.raises(InvalidValueError, match="made is no view of a Fluss table"):
            fluss_spark.refresh(spark, "made")
        with pytest.raises(InvalidNameError, match="no view 'nothing'"):
            fluss_spark.refresh(spark, "nothing")
    finally:
        spark.catalog.dropGlobalTempView("seen_all")


def test_a_view_that_is_cached_is_cached_again(spark, view, log):
    spark.sql(f"CACHE TABLE {view}")
    log.append({"id": [2], "v": ["b"]})
    assert ids(spark, view) == [1]
    spark.sql(f"REFRESH TABLE {view}")
    assert ids(spark, view) == [1, 2]
    assert spark.catalog.isCached(view)
    spark.sql(f"UNCACHE TABLE {view}")


def test_a_session_of_spark_connect_gets_a_remedy():
    with pytest.raises(UnsupportedOperationError, match="Spark Connect") as refused:
        fluss_spark.refresh(object(), "seen")
    assert "register_views" in refused.value.hint
