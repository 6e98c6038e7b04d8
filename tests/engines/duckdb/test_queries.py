"""SQL over tables of Fluss, on a cluster."""

import threading

import duckdb
import pyarrow as pa
import pytest

import fluss
import fluss_duckdb
from tests.support.servers.fix_tables import DAYS, ROWS


def all_of(con, sql, parameters=None):
    return con.execute(sql, parameters).fetchall()


# --- names ----------------------------------------------------------------------------------------


def test_a_call_a_name_and_a_function_of_python_read_the_same_rows(con, events, rows):
    expected = duckdb.connect().sql("SELECT count(*), sum(id), sum(x) FROM rows").fetchall()
    asked = "SELECT count(*), sum(id), sum(x) FROM "
    assert rows is not None
    assert all_of(con, f"{asked} fluss('{events.name}')") == expected
    assert all_of(con, f"{asked} fluss('events')") == expected  # the session's database
    assert all_of(con, f"{asked} fluss.{events.name}") == expected
    assert con.fluss(events.name).aggregate("count(*), sum(id), sum(x)").fetchall() == expected
    assert con.table(f"fluss.{events.name}").aggregate("count(*), sum(id), sum(x)").fetchall() == (
        expected
    )


def test_columns_are_called_by_the_table_without_an_alias(con, events):
    found = all_of(con, f"SELECT count(events.id) FROM fluss('{events.name}', tail := 1)")
    assert found == [(1,)]


def test_a_url_and_a_table_name_the_same(con, events, cluster):
    url = f"fluss://{cluster.bootstrap}/{events.name}?tail=5"
    assert all_of(con, f"SELECT count(*) FROM fluss('{url}')") == [(5,)]
    assert len(con.fluss(events, tail=5).fetchall()) == 5
    assert all_of(con, f"SELECT count(*) FROM fluss('{events.name}')") == [(ROWS,)]


def test_tables_made_later_are_there(con, session, name):
    session.append(name, {"id": [1]}, create=True, buckets=1)
    assert all_of(con, f"SELECT * FROM fluss('{name}')") == [(1,)]


def test_tables_that_differ_in_capitals_alone_are_two_tables(con, session):
    for name, value in (("Orders", 1), ("orders", 2)):
        session.append(name, {"id": [value]}, create=True, buckets=1)
    for _ in range(2):
        assert all_of(con, "SELECT * FROM fluss('Orders')") == [(1,)]
        assert all_of(con, "SELECT * FROM fluss('orders')") == [(2,)]


def test_the_catalog_may_have_another_name(session, events):
    with fluss_duckdb.connect(session=session, catalog="stream") as con:
        assert all_of(con, f"SELECT count(*) FROM stream.{events.name}") == [(ROWS,)]
        assert all_of(con, f"SELECT count(*) FROM fluss('{events.name}')") == [(ROWS,)]


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("tail := 7", 7),
        ("limit := 7", 7),
        ("start := 'earliest'", ROWS),
        ("start := 'latest'", 0),
        ("start := now() - INTERVAL 1 HOUR", ROWS),
        ("end := now() - INTERVAL 1 HOUR", 0),
        ("start := INTERVAL 1 HOUR", ROWS),
        ("start := 0, end := 5", 20),
        ("start := MAP {0: 0, 1: 9999999, 2: 9999999, 3: 9999999}, on_trimmed := 'earliest'", None),
        ("columns := ['id', 'x']", ROWS),
        ("filter := 'id >= 990'", 10),
        ("filter := $$id IN (1, 2) OR name = 'absent'$$, limit := 1", 1),
        ("\"filter\" => 'id >= 0 AND id < ' || 7, tail := 1000", 7),
        ("with_metadata := true, order := 'timestamp'", ROWS),
        ("max_parallel := 1 + 1", ROWS),
    ],
)
def test_options_are_constants_of_sql(con, events, options, count):
    sql = f"SELECT count(*) FROM fluss('{events.name}', {options})"
    if count is None:
        with pytest.raises(fluss.FlussError, match="9999999"):
            con.execute(sql)
        return
    assert all_of(con, sql) == [(count,)]


def test_partitions_are_chosen_by_name_or_by_values(con, parted):
    asked = f"SELECT count(*), min(day), max(day) FROM fluss('{parted.name}', partitions := "
    assert all_of(con, asked + f"'day={DAYS[1]}')") == [(333, DAYS[1], DAYS[1])]
    both = f"{{'day': ['{DAYS[0]}', '{DAYS[2]}']}})"
    assert all_of(con, asked + both) == [(667, DAYS[0], DAYS[2])]


def test_what_a_limit_or_a_tail_leaves_is_decided_before_the_filter(con, parted):
    for cut in ("limit := 10", "tail := 10"):
        first = all_of(con, f"SELECT id FROM fluss('{parted.name}', {cut}) ORDER BY id")
        assert len(first) == 10
        kept = all_of(con, f"SELECT id FROM fluss('{parted.name}', {cut}) WHERE id % 2 + 1 = 1")
        day = all_of(con, f"SELECT id FROM fluss('{parted.name}', {cut}) WHERE day = '{DAYS[0]}'")
        assert {each for (each,) in kept} <= {each for (each,) in first}
        assert {each for (each,) in day} <= {each for (each,) in first}


def test_tails_of_other_rows_in_one_statement_are_cut_by_themselves(con, parted):
    def ids(*options):
        listed = ", ".join([f"'{parted.name}'", *options])
        return f"(SELECT id FROM fluss({listed}))"

    for other in (f"partitions := '{DAYS[0]}'", "start := 100", "tail := 3", "limit := 4"):
        cuts = [["tail := 5"], ["tail := 5", other] if "tail" not in other else [other]]
        expected = [sorted(all_of(con, ids(*each))) for each in cuts]
        both = " UNION ALL ".join(
            f"SELECT {number}, id FROM {ids(*each)}" for number, each in enumerate(cuts)
        )
        found = all_of(con, both)
        for number, rows in enumerate(expected):
            assert sorted((id_,) for which, id_ in found if which == number) == rows, other


def test_a_tail_joined_with_itself_is_one_table(con, parted):
    tail = f"fluss('{parted.name}', tail := 7, with_metadata := ['_bucket'])"
    every = all_of(con, f"SELECT count(*) FROM {tail} a JOIN {tail} b USING (id)")
    assert every == [(7,)]
    few = all_of(
        con,
        f"SELECT count(*) FROM (SELECT * FROM {tail} WHERE _bucket = 1) a JOIN {tail} b USING (id)",
    )
    assert few == all_of(con, f"SELECT count(*) FROM {tail} WHERE _bucket = 1")


def test_states_changelogs_and_binlogs_are_tables(con, keyed):
    name = keyed.name
    state = all_of(con, f"SELECT count(*), count(*) FILTER (x = -1) FROM fluss('{name}')")
    assert state == [(ROWS - 10, 10)]
    kinds = all_of(
        con, f"SELECT _change_type, count(*) FROM fluss('{name}$changelog') GROUP BY 1 ORDER BY 1"
    )
    assert kinds == [
        ("delete", 10), ("insert", ROWS), ("update_after", 10), ("update_before", 10),
    ]  # fmt: skip
    assert all_of(con, f"SELECT count(*) FROM fluss.{name}$changelog") == [(ROWS + 30,)]
    changed = f"SELECT before.x, after.x FROM fluss('{name}$binlog') WHERE before.id = 8"
    assert all_of(con, changed) == [(1.0, -1.0)]
    assert all_of(con, f"SELECT x FROM fluss('{name}') WHERE id = 3") == [(-1.0,)]


# --- parameters -----------------------------------------------------------------------------------


def test_parameters_may_stand_in_and_outside_of_calls(con, events):
    name = events.name
    sql = "SELECT count(*) + ? FROM fluss(?) WHERE id < ?"
    assert all_of(con, sql, [1, name, 10]) == [(11,)]
    sql = "SELECT count(*) + $2 FROM fluss($1, tail := $4) WHERE id >= $3"
    assert all_of(con, sql, [name, 1, 0, 5]) == [(6,)]
    sql = "SELECT count(*) + $one FROM fluss($table, tail := $rows)"
    assert all_of(con, sql, {"one": 1, "table": name, "rows": 5}) == [(6,)]
    relation = con.sql("SELECT id FROM fluss(?) WHERE id < ?", params=[name, 3])
    assert sorted(relation.fetchall()) == [(0,), (1,), (2,)]


def test_statements_are_prepared_and_see_what_is_there_when_they_run(con, session, name):
    session.append(name, {"id": [1, 2, 3]}, create=True, buckets=1)
    con.execute(f"PREPARE few AS SELECT count(*) FROM fluss('{name}') WHERE id < $1")
    assert all_of(con, "EXECUTE few(3)") == [(2,)]
    session.append(name, {"id": [1]})
    assert all_of(con, "EXECUTE few(3)") == [(3,)]


def test_a_call_whose_table_is_not_known_yet_is_refused(con):
    with pytest.raises(fluss.FlussError, match="must be known before"):
        con.execute("PREPARE few AS SELECT * FROM fluss($1)")
    with pytest.raises(fluss.FlussError, match="executemany"):
        con.executemany("SELECT * FROM fluss(?)", [["a.b"], ["a.c"]])


# --- what engines do with tables ------------------------------------------------------------------


def test_views_tables_copies_and_joins(con, events, rows, tmp_path):
    name = events.name
    con.execute(f"CREATE VIEW v AS SELECT * FROM fluss('{name}') WHERE id < 100")
    assert all_of(con, "SELECT count(*) FROM v") == [(100,)]
    con.execute(f"CREATE TABLE t AS FROM fluss('{name}')")
    assert all_of(con, "SELECT count(*) FROM t") == [(ROWS,)]
    con.execute(f"COPY (FROM fluss('{name}')) TO '{tmp_path}/events.parquet'")
    joined = f"SELECT count(*) FROM fluss('{name}') JOIN '{tmp_path}/events.parquet' USING (id)"
    assert all_of(con, joined) == [(ROWS,)]
    twice = f"SELECT count(*) FROM fluss('{name}') a JOIN fluss('{name}') b ON a.id = b.id + 1"
    assert all_of(con, twice) == [(ROWS - 1,)]
    assert all_of(con, f"DESCRIBE fluss.{name}")[0][:2] == ("id", "BIGINT")


def test_frames_are_found_among_the_variables_of_the_caller(con, events):
    def ask():
        expected = pa.table({"id": [1, 2, 5_000]})
        assert expected is not None
        sql = f"SELECT count(*) FROM fluss('{events.name}') JOIN expected USING (id)"
        return all_of_here(sql), con.sql(sql).fetchall()

    def all_of_here(sql):
        expected = pa.table({"id": [1]})
        assert expected is not None
        return con.execute(sql).fetchall()

    assert ask() == ([(1,)], [(2,)])


def test_relations_are_tables_and_can_be_joined(con, events):
    few = con.sql(f"SELECT id FROM fluss('{events.name}') WHERE id < 5")
    assert isinstance(few, duckdb.DuckDBPyRelation)
    assert con.sql("SELECT count(*) FROM few").fetchall() == [(5,)]
    assert con.sql("SELECT 7 AS id").union(few).aggregate("count(*)").fetchall() == [(6,)]
    assert len(few.join(few.set_alias("other"), "id")) == 5
    assert few.columns == ["id"]
    assert "int64" in repr(few)
    assert pa.table(few).num_rows == 5
    assert few.pl().height == len(few.df()) == 5


def test_streams_are_read_batch_by_batch(con, events):
    reader = con.sql(f"SELECT id FROM fluss('{events.name}')").to_arrow_reader(100)
    assert sum(each.num_rows for each in reader) == ROWS


def test_two_cursors_ask_at_the_same_time(con, events):
    found = []

    def ask(cursor):
        for _ in range(5):
            sql = f"SELECT count(*), sum(id) FROM fluss('{events.name}') a"
            found.append(cursor.execute(sql).fetchone())

    threads = [threading.Thread(target=ask, args=(con.cursor(),)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [(ROWS, sum(range(ROWS)))] * 10


def test_whatever_else_duckdb_offers_passes_through(con):
    assert con.execute("SELECT 42 AS a").description[0][0] == "a"
    assert con.execute("SELECT 42 AS a").fetchone() == (42,)
    con.execute("CREATE TABLE t (a INTEGER)")
    con.executemany("INSERT INTO t VALUES (?)", [[1], [2]])
    con.begin()
    con.execute("DELETE FROM t")
    con.rollback()
    assert con.table("t").fetchall() == [(1,), (2,)]
    con.register("frame", pa.table({"b": [1]}))
    assert con.view("frame").fetchall() == [(1,)]
    with pytest.raises(duckdb.ParserException):
        con.execute("SELEC 1")
