"""DuckDB gets texts of a lake as dictionaries, and its users see the same rows as without them."""

import uuid

import pyarrow as pa
import pytest

import fluss_duckdb
import fluss_lake
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.all_types import TYPES, full_row

TIERED, SINCE, COPIES = 80_000, 3_000, 2
TEXTS = [
    None,
    "",
    "kind 1",
    "kind 2",
    "a kind of more than twelve bytes",
    "äöü €",
    *map(str, range(40)),
]
COLUMNS = {
    "id": "BIGINT",
    "few": "STRING",
    "code": "CHAR(2)",
    "many": "STRING",
    "n": "INT",
    "bytes": "BYTES",
    "list": "ARRAY<STRING>",
    "pair": "ROW<x INT, y STRING>",
}
ALL = "SELECT * FROM {t} ORDER BY id"
FREE = {"table.datalake.freshness": "1h"}


def rows_from(start, count):
    ids = range(start, start + count)
    few = [TEXTS[each % len(TEXTS)] for each in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "few": few,
            "code": [("ab", "cd", None)[each % 3] for each in ids],
            "many": [None if each % 11 == 0 else f"text of the number {each}" for each in ids],
            "n": pa.array([each % 7 for each in ids], pa.int32()),
            "bytes": [None if text is None else text.encode() for text in few],
            "list": [
                None if each % 5 == 0 else [None, text] for each, text in zip(ids, few, strict=True)
            ],
            "pair": [{"x": each % 3, "y": text} for each, text in zip(ids, few, strict=True)],
        }
    )


def tier(table, session):
    fluss_lake.tier(table.name, cluster=session, now=True)


def made(session, name, *, since=SINCE, **how):
    table = session.create_table(name, COLUMNS, buckets=2, properties=LAKE | FREE, **how)
    for start in range(0, TIERED, TIERED // COPIES):
        table.append(rows_from(start, TIERED // COPIES))
        tier(table, session)
    table.append(rows_from(TIERED, since))
    return table


@pytest.fixture(scope="module")
def log(lake_cluster, session):
    return made(session, "texts")


@pytest.fixture
def con(session):
    with fluss_duckdb.connect(session=session) as opened:
        yield opened


@pytest.fixture
def name():
    return f"t_{uuid.uuid4().hex[:12]}"


def call(table, **options):
    given = "".join(f", {key} := {value!r}" for key, value in options.items())
    return f"fluss('{table.name}'{given})"


def answer(con, sql, table, **options):
    """The rows of a query over a table, which it names `{t}`."""
    return con.sql(sql.format(t=call(table, **options))).to_arrow_table()


def test_files_have_dictionaries_and_the_stream_has_them(log):
    schema = log.scan().dictionary_schema
    kinds = {each.name for each in schema if pa.types.is_dictionary(each.type)}
    assert kinds == {"few", "code", "many"}
    reader = log.scan().read(dictionaries=kinds)
    assert reader.schema == schema
    batches = list(reader)
    for each in batches:
        each.validate(full=True)
    sizes = [len(each["few"].dictionary) for each in batches if each.num_rows > SINCE]
    assert sizes == [len(TEXTS) - 1] * len(sizes)
    assert sizes
    assert sum(len(each["many"].dictionary) for each in batches) == TIERED + SINCE


@pytest.mark.parametrize("options", [{"lake": "off"}, {"order": "bucket"}, {"limit": 5}], ids=str)
def test_other_scans_have_no_dictionaries(log, options):
    scan = log.scan(**options)
    assert scan.dictionary_schema == scan.schema


@pytest.mark.parametrize("condition", ["few = 'kind 1'", "many LIKE '%77'", "id > 80000", "n < 0"])
def test_streams_of_dictionaries_are_filtered(log, condition):
    plain = log.scan().narrowed(predicate=condition, columns=["id", "few"])
    limited = log.scan(limit=5_000).narrowed(predicate=condition, columns=["id", "few"])
    for each in (plain, limited):
        found = each.read(dictionaries=["few", "many"]).read_all()
        assert found.schema.field("few").type == pa.dictionary(pa.int32(), pa.string())
        expected = each.read().read_all()
        assert found.cast(expected.schema).sort_by("id") == expected.sort_by("id")


# Each is run over the union and over the log alone, which still has all rows.
QUERIES = {
    "all": ALL,
    "few columns": "SELECT few, id FROM {t} ORDER BY id",
    "types": "SELECT typeof(few), typeof(code), typeof(many), count(*) FROM {t} GROUP BY ALL",
    "described": "DESCRIBE SELECT * FROM {t}",
    "equal": "SELECT * FROM {t} WHERE few = 'kind 2' ORDER BY id",
    "not equal": "SELECT id FROM {t} WHERE few <> 'kind 2' ORDER BY id",
    "null": "SELECT id, few FROM {t} WHERE few IS NULL ORDER BY id",
    "not null": "SELECT id, few FROM {t} WHERE few IS NOT NULL ORDER BY id",
    "in": "SELECT * FROM {t} WHERE few IN ('', '7', 'none') ORDER BY id",
    "not in": "SELECT id FROM {t} WHERE few NOT IN ('', '7') ORDER BY id",
    "range": "SELECT id, many FROM {t} WHERE many >= 'text of the number 5' ORDER BY id",
    "one text": "SELECT * FROM {t} WHERE many = 'text of the number 81000'",
    "or": "SELECT id FROM {t} WHERE few = 'kind 1' OR n = 3 ORDER BY id",
    "two": "SELECT few, code FROM {t} WHERE code = 'ab' AND few > 'k' AND id < 50000 ORDER BY id",
    "like": "SELECT id FROM {t} WHERE few LIKE 'kind%' OR few ILIKE '%ÄÖÜ%' ORDER BY id",
    "function": "SELECT id, upper(few) || many FROM {t} WHERE length(few) > 5 ORDER BY id",
    "nothing": "SELECT * FROM {t} WHERE few = 'none'",
    "group": "SELECT few, code, count(*), min(many), sum(n) FROM {t} GROUP BY ALL ORDER BY ALL",
    "distinct": "SELECT DISTINCT few FROM {t} ORDER BY few",
    "count": "SELECT count(*), count(few), count(DISTINCT few), count(many) FROM {t}",
    "top": "SELECT few, many, id FROM {t} ORDER BY few DESC NULLS FIRST, many, id LIMIT 20",
    "window": "SELECT id, lag(few) OVER (PARTITION BY code ORDER BY id) FROM {t} ORDER BY id",
    "nested": "SELECT id, list, pair.y, struct_pack(a := few), [few, code] FROM {t} ORDER BY id",
    "unnested": "SELECT id, unnest(list) FROM {t} WHERE n = 2 ORDER BY ALL",
    "joined": "SELECT a.id, b.id, a.few FROM {t} a JOIN {t} b ON a.few = b.few AND a.id = b.id + 46 "
    "ORDER BY ALL",
    "joined by text": "SELECT a.id, b.many FROM {t} a LEFT JOIN {t} b USING (many) ORDER BY ALL",
    "union": "SELECT few FROM {t} UNION ALL SELECT many FROM {t} ORDER BY ALL",
    "cast": "SELECT id, encode(few), try_cast(few AS INT) FROM {t} ORDER BY id",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_queries_give_what_they_give_without_a_lake(log, con, query):
    found, expected = answer(con, query, log), answer(con, query, log, lake="off")
    assert found.schema == expected.schema
    assert found.equals(expected)


def test_the_rows_are_those_that_were_written(log, con):
    found = answer(con, ALL, log)
    expected = pa.concat_tables(
        [
            *(rows_from(start, TIERED // COPIES) for start in range(0, TIERED, TIERED // COPIES)),
            rows_from(TIERED, SINCE),
        ]
    )
    assert found.to_pylist() == expected.to_pylist()


OPTIONS = {
    "tail": {"tail": 20_000},
    "short tail": {"tail": 50},
    "limit": {"limit": 700, "order": "bucket"},
    "start": {"start": 8_000},
    "end": {"end": 9_000},
    "metadata": {"with_metadata": True},
    "order": {"order": "timestamp"},
    "filter": {"filter": "few = 'kind 1' AND many IS NOT NULL"},
    "filter of a number": {"filter": "n = 3"},
    "columns": {"columns": ["few", "id"]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_mean_the_same(log, con, options):
    found, expected = (
        con.fluss(log, **options, **more).order("id").to_arrow_table()
        for more in ({}, {"lake": "off"})
    )
    assert found.schema == expected.schema
    assert found.num_rows
    assert found.equals(expected)


def test_only_the_lake(log, con):
    found = con.fluss(log, lake="only").order("id").to_arrow_table()
    assert found.equals(
        con.fluss(log, lake="off").filter(f"id < {TIERED}").order("id").to_arrow_table()
    )


def test_texts_are_varchar_in_all_results(log, con):
    relation = con.fluss(log)
    assert [str(each) for each in relation.types[1:4]] == ["VARCHAR"] * 3
    assert relation.to_arrow_table().schema.field("few").type == pa.string()
    assert str(relation.pl().schema["few"]) == "String"
    assert sorted(relation.df()["id"]) == list(range(TIERED + SINCE))
    assert {type(each) for each in relation.df()["few"].dropna()} == {str}
    copy = "CREATE TABLE copied AS SELECT * FROM {t}"
    con.execute(copy.format(t=call(log)))
    view = "CREATE VIEW seen AS SELECT few, count(*) AS n FROM {t} GROUP BY few"
    con.execute(view.format(t=call(log)))
    kinds = dict(con.sql("SELECT column_name, column_type FROM (DESCRIBE copied)").fetchall())
    assert (kinds["few"], kinds["many"], kinds["code"]) == ("VARCHAR",) * 3
    grouped = "SELECT few, count(*) FROM copied GROUP BY few ORDER BY few"
    assert con.sql("FROM seen ORDER BY few").fetchall() == con.sql(grouped).fetchall()


def test_a_statement_that_was_bound_before_sees_the_lake_as_it_is(session, con, name):
    table = session.create_table(name, COLUMNS, buckets=1, properties=LAKE | FREE)
    relation = con.fluss(table).order("id")

    def check(rows):
        assert relation.to_arrow_table().to_pylist() == rows_from(0, rows).to_pylist()

    check(0)
    table.append(rows_from(0, 4_000))
    check(4_000)
    tier(table, session)
    check(4_000)
    table.append(rows_from(4_000, 10))
    check(4_010)
    session.alter_table(table.name, set_properties={"table.datalake.enabled": "false"})
    check(4_010)


def test_a_statement_that_was_bound_without_a_lake_reads_it_later(session, con, name):
    table = session.create_table(name, COLUMNS, buckets=1)
    table.append(rows_from(0, 4_000))
    relation = con.fluss(table).order("id")
    assert relation.to_arrow_table().num_rows == 4_000
    session.alter_table(table.name, set_properties=LAKE | FREE)
    tier(session.table(name), session)
    table.append(rows_from(4_000, 10))
    assert relation.to_arrow_table().to_pylist() == rows_from(0, 4_010).to_pylist()


def test_states_with_deletes_are_read_as_before(session, con, name):
    table = session.create_table(
        name, COLUMNS, primary_key=["id"], buckets=2, properties=LAKE | FREE
    )
    table.upsert(rows_from(0, 3_000))
    tier(table, session)
    table.delete(rows_from(100, 500).select(["id"]))
    tier(table, session)
    table.upsert(rows_from(200, 50))
    table.delete(rows_from(2_000, 10).select(["id"]))
    gone = {*range(100, 200), *range(250, 600), *range(2_000, 2_010)}
    expected = [each for each in rows_from(0, 3_000).to_pylist() if each["id"] not in gone]
    found = answer(con, ALL, table)
    assert found.to_pylist() == expected


def test_partitions_are_read_with_their_texts(session, con, name):
    table = session.create_table(
        name, COLUMNS, partition_by=["code"], buckets=1, properties=LAKE | FREE
    )
    rows = rows_from(0, 6_000).set_column(2, "code", pa.array(["ab", "cd"] * 3_000))
    table.append(rows.slice(0, 5_000))
    tier(table, session)
    table.append(rows.slice(5_000))
    for where in ("TRUE", "code = 'ab'", "code = 'cd' AND few = 'kind 1'", "code = 'none'"):
        query = ALL.replace("ORDER", f"WHERE {where} ORDER")
        found, expected = answer(con, query, table), answer(con, query, table, lake="off")
        assert found.equals(expected)
    assert answer(con, ALL, table).to_pylist() == rows.to_pylist()


def test_all_types_are_read(session, con, name):
    table = session.create_table(name, {"id": "BIGINT", **TYPES}, buckets=1, properties=LAKE | FREE)
    table.append([full_row(each) for each in range(300)])
    tier(table, session)
    table.append([full_row(each) for each in range(300, 340)])
    found, expected = (answer(con, ALL, table, **more) for more in ({}, {"lake": "off"}))
    assert found.schema == expected.schema
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def test_a_table_without_rows_is_empty(session, con, name):
    table = session.create_table(name, COLUMNS, buckets=1, properties=LAKE | FREE)
    assert not answer(con, "SELECT few FROM {t} WHERE few = 'x'", table).num_rows
    tier(table, session)
    assert not answer(con, ALL, table).num_rows
