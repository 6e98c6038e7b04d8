"""`fluss sql` without a prompt: formats, sources of statements, exit codes, and what is written."""

import io
import json
import sys

import pyarrow as pa
import pytest

from fluss.cli import main


@pytest.fixture
def ask(cluster, monkeypatch, capfdbinary, tmp_path):
    monkeypatch.delenv("FLUSS_URL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*words, text=""):
        monkeypatch.setattr(
            sys, "argv", ["fluss", "--url", f"fluss://{cluster.bootstrap}", "sql", *words]
        )
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        capfdbinary.readouterr()
        code = main()
        written = capfdbinary.readouterr()
        return code, written.out, written.err.decode()

    return run


def test_rows_come_in_every_format(ask, events):
    sql = f"SELECT id, name, x FROM {events.name} WHERE id IN (5, 6) ORDER BY id"
    assert ask(sql, "-o", "csv")[1] == b"id,name,x\n5,n5,0.625\n6,,0.75\n"
    assert [json.loads(each) for each in ask(sql)[1].splitlines()] == [
        {"id": 5, "name": "n5", "x": 0.625},
        {"id": 6, "name": None, "x": 0.75},
    ]
    assert ask(sql, "-o", "table")[1].decode().splitlines() == [
        "id  name      x",
        " 5  n5    0.625",
        " 6  NULL   0.75",
    ]
    arrow = ask(sql, "-o", "arrow")[1]
    assert pa.ipc.open_stream(io.BytesIO(arrow)).read_all()["id"].to_pylist() == [5, 6]


def test_types_that_only_duckdb_has_are_texts(ask):
    sql = (
        "SELECT sum(i) AS s, INTERVAL 3 DAY AS i, 'a'::ENUM('a') AS e, 2::HUGEINT ** 100 AS d, "
        "170141183460469231731687303715884105727 AS h, MAP {'k': 1} AS m FROM range(3) t(i)"
    )
    (line,) = ask(sql)[1].splitlines()
    found = json.loads(line)
    assert found["s"] == 3
    assert (found["i"], found["e"], found["m"]) == ("3 days", "a", [["k", 1]])
    assert found["h"] == "170141183460469231731687303715884105727"


def test_statements_come_from_arguments_files_and_pipes(ask, events, tmp_path):
    code, out, err = ask(text=f"SELECT count(*) AS n FROM fluss.{events.name};\n-- the end\n")
    assert (code, out, err) == (0, b'{"n": 1000}\n', "")
    file = tmp_path / "two.sql"
    file.write_text("SELECT ';' AS a; /* ; */ SELECT 2 AS b")
    assert ask("-f", str(file))[1] == b'{"a": ";"}\n{"b": 2}\n'
    assert ask("-c", "SELECT 1 AS a", "-c", "SELECT 2 AS a")[1] == b'{"a": 1}\n{"a": 2}\n'
    assert ask("-f", str(tmp_path / "none.sql"))[0] == 1
    code, _, err = ask(text=" -- nothing\n")
    assert code == 2
    assert "there is no statement" in err


def test_a_failed_statement_ends_the_run_with_one_message(ask, events):
    code, out, err = ask(f"SELECT 1 AS a; FROM {events.name}s; SELECT 2 AS a")
    assert (code, out) == (1, b'{"a": 1}\n')
    assert err.startswith("fluss: Table '")
    assert "did you mean" in err
    assert ask("SELEC 1")[2].startswith("fluss: syntax error")
    bare = events.name.partition(".")[2]
    assert f"did you mean '{events.name}'?" in ask(f"FROM {bare}")[2]
    assert f"did you mean '{events.name}'?" in ask(f"FROM {bare}x")[2], "a slip in a plain name"


def test_rows_are_written_by_sql(ask, session, shared, name):
    path = f"{shared}.{name}"
    code, _, err = ask(
        f"CREATE TABLE {path} (id INT8, v VARCHAR COMMENT 'x; y', at TIMESTAMPTZ, n DECIMAL(9, 2), "
        "PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket.num' = '2', 'table.log.ttl' = '7d')",
        f"--command=INSERT INTO {path} VALUES (1, 'a', NULL, 1.5), (2, 'b', NULL, NULL)",
        f"--command=INSERT INTO {path} (v, id) SELECT 'c', 3 UNION ALL SELECT 'd', 1",
        f"--command=INSERT INTO {path} BY NAME SELECT 4 AS id, DATE '2026-01-31' AS at, '7' AS n",
        f"--command=UPDATE {path} AS t SET n = id * 2, v = upper(t.v) WHERE id IN (2, 3)",
        f"--command=DELETE FROM {path} WHERE id = (SELECT max(id) FROM {path})",
    )
    assert code == 0, err
    assert err.splitlines() == [
        f"Created the table {path}.",
        f"2 rows upserted into {path}.",
        f"2 rows upserted into {path}.",
        f"1 row upserted into {path}.",
        f"2 rows updated in {path}.",
        f"1 row deleted from {path}.",
    ]
    table = session.table(name)
    assert table.buckets == 2
    assert table.info.properties["table.log.ttl"] == "7d"
    found = table.to_arrow().sort_by("id").select(["id", "v", "n"])
    assert [tuple(map(str, each.values())) for each in found.to_pylist()] == [
        ("1", "d", "None"),
        ("2", "B", "4.00"),
        ("3", "C", "6.00"),
    ]
    assert ask(f"DROP TABLE {path}")[0] == 0


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM {log} WHERE id = 1", "is a log: rows are appended"),
        ("UPDATE {log} SET id = 1", "is a log: rows are appended"),
        ("UPDATE {keyed} SET id = 1", "a key does not change"),
        ("UPDATE {keyed} SET idd = 1", "did you mean 'id'?"),
        ("INSERT INTO {log} VALUES (1)", "1 columns, and 4 are expected: id, day, name, x"),
        ("INSERT INTO {log} (id, nmae) VALUES (1, 'a')", "did you mean 'name'?"),
        ("INSERT INTO {log} (id) VALUES (1.5)", "1.5 does not fit the column id (BIGINT)"),
        (
            "INSERT INTO {log} (id) VALUES ('x')",
            "Could not convert string 'x' to INT64 when casting from source column id",
        ),
        ("INSERT INTO {log} (id) VALUES (1) RETURNING id", "not written with RETURNING"),
        ("INSERT INTO {keyed} (id) VALUES (1) ON CONFLICT DO NOTHING", "with ON CONFLICT"),
        ("DELETE FROM {keyed} USING x", "not written with USING"),
        ("TRUNCATE {log}", "does not truncate"),
        ("MERGE INTO {keyed} USING x ON 1 = 1", "not written with MERGE"),
        ("ALTER TABLE {log} DROP COLUMN x", "Fluss adds columns"),
        ("USE nowhere", "There is no database 'nowhere'"),
    ],
)
def test_what_cannot_be_done_exactly_is_refused_with_a_way(ask, events, keyed, statement, expected):
    before = events.count(), keyed.count()
    code, out, err = ask(statement.format(log=events.name, keyed=keyed.name))
    assert (code, out) == (1, b"")
    assert err.startswith("fluss: ")
    assert expected in err
    assert (events.count(), keyed.count()) == before


def test_names_are_listed_and_described(ask, events, keyed, shared):
    databases = ask("SHOW DATABASES", "-o", "csv")[1].decode().split()
    assert {"database", shared} <= set(databases)
    tables = ask(f"USE {shared}; SHOW TABLES", "-o", "csv")[1].decode().split()
    assert {"events", "keyed"} <= set(tables)
    assert f"{shared},events" in ask("SHOW TABLES", "-o", "csv")[1].decode().split()
    first = json.loads(ask(f"DESCRIBE {keyed.name}")[1].splitlines()[0])
    assert first == {
        "column": "id", "type": "BIGINT", "nullable": False, "key": "primary key", "comment": None,
    }  # fmt: skip
    assert b"PRIMARY KEY" in ask(f"SHOW CREATE TABLE {keyed.name}")[1]
    assert ask(f"USE {shared}; SELECT count(*) AS n FROM Events")[1] == b'{"n": 1000}\n'


def test_duckdbs_own_tables_stay_its_own(ask, shared):
    code, out, err = ask(
        f"USE {shared}; CREATE TABLE memory.main.own AS SELECT 1 AS a; INSERT INTO own VALUES (2); "
        "UPDATE own SET a = 3 WHERE a = 2; DELETE FROM own WHERE a = 1; FROM own"
    )
    assert (code, out) == (0, b'{"a": 3}\n'), err
    code, out, err = ask(
        "CREATE TABLE t (a INT); INSERT INTO t VALUES (1) RETURNING a; DROP TABLE t"
    )
    assert (code, out) == (0, b'{"a": 1}\n'), err
