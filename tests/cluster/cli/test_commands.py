"""`fluss` in a terminal and in scripts: rows, messages and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet as pq

from tests.cluster.cli.conftest import ROWS, Done


def _lines(done: Done) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(each) for each in done.stdout.splitlines()]


def test_names_are_listed_one_per_line(run, people, database):
    assert database in run("ls").stdout.decode().split()
    assert run("ls", database).stdout.decode().split() == ["people"]


def test_rows_in_a_pipe_are_json_lines_without_loss(run, people):
    assert sorted(_lines(run("head", people)), key=lambda each: each["id"]) == ROWS
    assert [each["name"] for each in _lines(run("head", people, "-n", "1"))]


def test_csv_quotes_and_arrow_is_a_stream(run, people):
    text = run("head", people, "-o", "csv", "--columns", "id,name").stdout.decode()
    assert text.splitlines()[0] == "id,name"
    assert '2,"Böb, Jr."' in text
    stream = run("head", people, "-o", "arrow").stdout
    assert ipc.open_stream(stream).read_all().num_rows == 3


def test_a_table_is_described(run, people):
    text = run("describe", people).stdout.decode()
    assert "BIGINT NOT NULL" in text
    columns = _lines(run("describe", people, "-o", "json"))
    assert (columns[0]["name"], columns[0]["primary_key"]) == ("id", True)


def test_count_and_lookup_answer_and_a_missing_key_shows_in_the_exit_code(run, people):
    assert run("count", people).stdout == b"3\n"
    assert _lines(run("lookup", people, "2")) == [ROWS[1]]
    done = run("lookup", people, "id=1", '{"id": 9}')
    assert done.returncode == 1
    assert json.loads(done.stdout) == ROWS[0]
    assert "not found" in done.stderr.decode()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.date32(), date(2026, 1, 31), "2026-01-31"),
        (pa.timestamp("us"), 1_769_860_800_000_000, "2026-01-31T12:00:00"),
        (pa.timestamp("ms", "UTC"), datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T13:00+01:00"),
        (pa.time32("ms"), time(12), "12:00"),
        (pa.decimal128(9, 2), Decimal("1.50"), "1.5"),
        (pa.binary(), b"ab", "YWI="),
        (pa.binary(2), b"ab", "YWI="),
        (pa.float64(), 0.5, "0.5"),
        (pa.bool_(), True, "true"),
        (pa.string(), "007", "007"),
    ],
)  # fmt: skip
def test_keys_of_every_type_are_looked_up_as_text(run, session, kind, value, text):
    rows = pa.table({"k": pa.array([value], kind), "v": [1]})
    session.create_table("keyed", rows, primary_key=["k"], buckets=1).upsert(rows)
    name = session.table("keyed").name
    for key in (text, f"k={text}", f" k={text}", json.dumps({"k": text})):
        assert [each["v"] for each in _lines(run("lookup", name, key))] == [1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["head", "{db}.peoples"], 1, "did you mean 'people'"),
        (["head", "{db}.people", "--columns", "nam"], 1, "name"),
        (["lookup", "{db}.people", "x"], 1, "not BIGINT"),
        (["lookup", "{db}.people", "nme=3"], 1, "write a key as id=..."),
        (["count"], 2, "Missing argument"),
        (["head", "{db}.people", "-o", "xml"], 2, "xml"),
        (["import", "{db}.people", "nosuch.parquet"], 1, "no file nosuch.parquet"),
        (["import", "{db}.people", "rows.xyz"], 1, "There is no file rows.xyz"),
        (["import", "{db}.people", "a.csv", "--buckets", "3"], 2, "--create"),
        (
            ["export", "{db}.people", "/nonexist/x.csv"],
            1,
            "/nonexist/x.csv cannot be written: No such file or directory",
        ),
        (["--url", "fluss://127.0.0.1:1", "ls"], 1, "127.0.0.1:1"),
    ],
)
def test_errors_go_to_the_error_output(run, people, database, words, code, said):
    done = run(*(each.format(db=database) for each in words))
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert done.stdout == b""


def test_files_go_in_and_come_out_again(run, database, tmp_path):
    table = f"{database}.moved"
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in ROWS))
    made = run("import", table, str(source), "--create", "--primary-key", "id", "--buckets", "1")
    assert made.returncode == 0, made.stderr.decode()
    assert "3 rows" in made.stderr.decode()
    for name in ("out.parquet", "out.csv", "out.arrow", "out.jsonl"):
        file = tmp_path / name
        assert run("export", table, str(file)).returncode == 0
        copy = f"{database}.from_{name.partition('.')[2]}"
        assert run("import", copy, str(file), "--create", "--primary-key", "id").returncode == 0
        assert sorted(_lines(run("head", copy)), key=lambda each: each["id"]) == [
            # CSV has no types; a price without a type is a number.
            {**each, "price": each["price"] and float(each["price"])} if name == "out.csv" else each
            for each in ROWS
        ]
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 3
    assert not list(tmp_path.glob(".*unfinished"))


def test_the_output_format_is_that_of_every_command(run, people, tmp_path):
    for words in (["head", people], ["export", people, "-"]):
        done = run(*words, "-o", "csv")
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, b"id,name,price")
    for words in (["-", "-o", "table"], [str(tmp_path / "x.csv"), "-o", "json"]):
        done = run("export", people, *words)
        assert (done.returncode, done.stdout, "--file-format" in done.said) == (2, b"", True)


def test_a_device_is_written_to_and_not_replaced(session, people, program):
    line, environment = program
    done = subprocess.run(
        [*line, "export", people, "/dev/stdout", "--file-format", "json"],
        capture_output=True, timeout=60, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_a_pipe_is_read_to_its_end(run, database):
    given = b"".join(b'{"n":%d,"t":"some text"}\n' % each for each in range(50_000))
    table = f"{database}.piped"
    assert run("import", table, "-", "--create", given=given).returncode == 0
    assert run("count", table).stdout == b"50000\n"


def test_tail_shows_the_last_changes_and_then_new_ones(cluster, session, people, database):
    line = [sys.executable, "-c", "import sys; from fluss.cli import main; sys.exit(main())"]
    follower = subprocess.Popen(
        [*line, "tail", people, "-f", "-n", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "FLUSS_BOOTSTRAP_SERVERS": cluster.bootstrap},
    )
    assert follower.stdout is not None
    try:
        first = [json.loads(follower.stdout.readline()) for _ in range(2)]
        assert {each["_change_type"] for each in first} == {"insert"}
        session.table("people").delete([(1,)])
        assert json.loads(follower.stdout.readline())["_change_type"] == "delete"
    finally:
        follower.send_signal(2)
    assert follower.wait(timeout=10) == 130
    assert follower.communicate()[1] == b""
