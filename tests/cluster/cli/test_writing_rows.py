"""Single rows and rows of a pipe are written, and rows are deleted, from a terminal."""

from __future__ import annotations

import json
import subprocess

import pytest

TYPES = """
    id BIGINT, f BOOLEAN, d DECIMAL(9, 2), day DATE, at TIMESTAMP(3), z TIMESTAMP_LTZ(3), t TIME,
    b BYTES, s STRING, x DOUBLE, tags ARRAY<STRING>, m MAP<STRING, INT>, r ROW<a INT, b STRING>
"""


def rows(done):
    assert done.returncode == 0, done.said
    return [json.loads(each) for each in done.stdout.splitlines()]


@pytest.fixture
def log(session, database):
    session.create_table("log", {"id": "BIGINT", "name": "STRING"}, buckets=1)
    return f"{database}.log"


def test_a_row_of_every_type_is_typed(run, database):
    name = f"{database}.wide"
    assert run("create", name, TYPES, "--primary-key", "id", "--buckets", "1").returncode == 0
    words = [
        "id=7", "f=true", "d=1.5", "day=2026-01-31", "at=2026-01-31T12:00", "z=2026-01-31T13:00+01:00",
        "t=12:00:01", "b=YWI=", "s=a=b c", "x=1e3", 'tags=["a", null]', 'm={"k": 1}',
        'r={"a": 1, "b": "x"}',
    ]  # fmt: skip
    done = run("upsert", name, *words)
    assert (done.returncode, done.said) == (0, f"1 row written to {name}\n")
    (found,) = rows(run("lookup", name, "7"))
    assert (found["d"], found["day"], found["s"]) == ("1.50", "2026-01-31", "a=b c")
    assert (found["z"], found["b"], found["tags"]) == ("2026-01-31T12:00:00Z", "YWI=", ["a", None])
    assert (found["m"], found["r"]) == ([["k", 1]], {"a": 1, "b": "x"})
    assert run("delete", name, "id=7").said == f"1 row deleted from {name}\n"
    assert run("count", name).stdout == b"0\n"


def test_rows_are_appended_to_a_log(run, log):
    assert run("insert", log, "id=1", "name=Ann").returncode == 0
    assert run("insert", log, '{"id": 2}', '{"id": 3, "name": "Bob"}').said.startswith("2 rows")
    assert run("-q", "insert", log, "id=4").said == ""
    found = {each["id"]: each["name"] for each in rows(run("head", log))}
    assert found == {1: "Ann", 2: None, 3: "Bob", 4: None}


def test_some_columns_are_replaced(run, people):
    assert run("upsert", people, "id=1", "price=9", "--partial").returncode == 0
    assert rows(run("lookup", people, "1")) == [{"id": 1, "name": "Ann", "price": "9.00"}]
    given = b'{"id": 1, "name": null}\n{"id": 2, "name": "B"}\n'
    assert run("upsert", people, "-", "--partial", given=given).returncode == 0
    found = rows(run("lookup", people, "1", "2"))
    assert [each["name"] for each in found] == [None, "B"]
    assert [each["price"] for each in found] == ["9.00", "2.20"]
    assert run("upsert", people, "id=1").returncode == 0  # without --partial the rest is NULL
    assert rows(run("lookup", people, "1")) == [{"id": 1, "name": None, "price": None}]


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["insert", "{people}", "id=1"], b"", "`fluss upsert {people} ...` writes to it"),
        (["upsert", "{log}", "id=1"], b"", "`fluss insert {log} ...` appends to it"),
        (["upsert", "{people}", "id=x"], b"", "id: 'x' is not BIGINT"),
        (["upsert", "{people}", "nme=x"], b"", "did you mean 'name'"),
        (["upsert", "{people}", "name"], b"", "is not name=value"),
        (["upsert", "{people}", "id=1,name=a"], b"", "write a blank between columns"),
        (["upsert", "{people}", "id=1", "id=2"], b"", "given twice"),
        (["upsert", "{people}", '{{"id": 1'], b"", "is not JSON"),
        (["upsert", "{people}", "name=x"], b"", "'id' may not be NULL, and is not given"),
        (["upsert", "{people}", "name=x", "--partial"], b"", "hint: add id=..."),
        (["lookup", "{people}", "id=1,name=x"], b"", "'1,name=x' is not BIGINT"),
        (["insert", "{log}", "-"], b'{"id": 1}\n{"id": "x"}\n', "row 2, column 'id': 'x' is not BIGINT"),
        (["insert", "{log}", "-"], b"{\n", "row 1"),
        (["insert", "{log}", "--csv"], b"id,name\n1,a\nx,b\n", "'x' is not BIGINT"),
        (["delete", "{log}", "1"], b"", "has no primary key"),
        (["delete", "{log}", "-"], b"", "has no primary key"),
        (["delete", "{log}", "--where", "id > 1"], b"", "has no primary key"),
        (["delete", "{people}", "--where", "id >"], b"", "a literal was expected"),
        (["delete", "{people}", "--where", "idd > 1"], b"", "did you mean 'id'"),
        (["head", "{people}", "--where", "nme = 'x'"], b"", "did you mean 'name'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_message(run, people, log, words, given, said):
    names = {"people": people, "log": log}
    done = run(*(each.format(**names) for each in words), given=given)
    assert (done.returncode, done.stdout) == (1, b"")
    assert said.format(**names) in done.said
    assert done.said.startswith("fluss: ")
    assert run("count", people).stdout == b"3\n"


def test_rows_before_a_wrong_one_are_counted(run, log, monkeypatch):
    monkeypatch.setattr("fluss.cli.standard_rows._BLOCK_BYTES", 10)
    given = b'{"id": 1}\n' * 3 + b" " * (1 << 20) + b'\n{"id": "x"}\n'
    done = run("insert", log, "-", given=given)
    assert done.returncode == 1
    count = int(run("count", log).stdout)
    assert count in {0, 3}
    assert ("3 rows before this one were written to" in done.said) == (count == 3)


def test_a_pipe_is_written_as_it_comes(session, log, program):
    line, environment = program
    writer = subprocess.Popen(
        [*line, "insert", log, "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert writer.stdin is not None
    with session.table("log").follow(start="earliest") as follower, writer:
        writer.stdin.write(b'{"id": 1, "name": "first"}\n')
        writer.stdin.flush()
        assert next(iter(follower)).to_pylist() == [{"id": 1, "name": "first"}]
        writer.stdin.write(b'{"id": 2}')
        writer.stdin.close()
        assert next(iter(follower)).to_pylist() == [{"id": 2, "name": None}]
        assert writer.wait(timeout=30) == 0
        assert writer.stderr.read().decode().startswith("2 rows written to")


def test_csv_of_a_pipe_is_written(run, log):
    assert run("insert", log, "--csv", given=b'id,name\n1,"a, b"\n2,\n').said.startswith("2 rows")
    assert {each["name"] for each in rows(run("head", log))} == {"a, b", None}


def test_rows_are_deleted_by_condition(run, people):
    condition = ["delete", people, "--where", "id >= 2 AND id < 10"]
    done = run(*condition, "--dry-run")
    assert (done.returncode, done.stdout) == (0, b"2\n")
    done = run(*condition)
    assert done.returncode == 2
    assert f"Delete 2 rows of {people}?" in done.said
    assert run("count", people).stdout == b"3\n"
    assert run(*condition, "--yes").said == f"2 rows deleted from {people}\n"
    assert [each["id"] for each in rows(run("head", people))] == [1]
    assert run(*condition).said == f"0 rows deleted from {people}\n"  # nothing to ask about
    assert run("delete", people, "1", "--where", "id = 1").returncode == 2
    assert run("delete", people, "1", "--dry-run").returncode == 2


def test_keys_of_a_pipe_are_deleted(run, people):
    assert run("delete", people, "-", given=b'{"id": 1}\n{"id": 9}\n').returncode == 0
    assert run("delete", people, "-", "--csv", given=b"id\n2\n").returncode == 0
    assert [each["id"] for each in rows(run("head", people))] == [3]


def test_conditions_choose_rows_everywhere(run, people):
    where = ["--where", "name IS NOT NULL AND price > 2"]
    assert run("count", people, *where).stdout == b"1\n"
    assert [each["id"] for each in rows(run("head", people, *where))] == [2]
    assert [each["id"] for each in rows(run("tail", people, *where))] == [2]
    assert [each["id"] for each in rows(run("export", people, "-", *where))] == [2]


def test_metadata_columns_are_added(run, people, log):
    found = rows(run("head", people, "--mode", "changelog", "--metadata"))
    assert {"_change_type", "_log_offset", "_commit_timestamp", "_bucket"} <= set(found[0])
    run("insert", log, "id=1")
    assert "_log_offset" in rows(run("tail", log, "--metadata"))[0]
    assert "_log_offset" in rows(run("export", log, "-", "--metadata"))[0]
    done = run("head", people, "--metadata")
    assert (done.returncode, "--mode changelog" in done.said) == (1, True)


def test_the_last_rows_of_several_tables_name_their_table(run, people, log):
    run("insert", log, "id=1")
    found = rows(run("tail", people, log, people, "-n", "3"))
    assert [each["_table"] for each in found] == [people] * 3 + [log]
    assert sorted(each["id"] for each in found[:3]) == [1, 2, 3]
    assert [each.get("_change_type") for each in found] == ["insert"] * 3 + [None]
    assert len(rows(run("tail", people, log, "-n", "2"))) == 3
    done = run("-o", "csv", "tail", people, log)
    assert (done.returncode, "JSON lines, not as csv" in done.said) == (1, True)
    done = run("tail", people, "fluss://127.0.0.1:1/a.b")
    assert (done.returncode, "each is named by database.table" in done.said) == (1, True)
