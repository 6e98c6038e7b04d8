"""`fluss import`: the table's types decide, and an early end reports the count of rows."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import time

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet as pq

from fluss.cli.files.importing import CHUNK_ROWS


@pytest.fixture
def import_text(run, tmp_path):
    """Import a file with the given content."""

    def one(table: str, content: str | bytes, *words: str, name: str = "rows.csv"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return run("import", table, str(file), *words)

    return one


@pytest.fixture
def typed(session):
    """A log with columns whose values look like those of other types."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("zip", pa.string()),
            ("price", pa.decimal128(9, 2)),
            ("at", pa.timestamp("us", "UTC")),
        ]
    )
    return session.create_table("typed", schema, buckets=1)


def test_values_are_read_as_the_types_of_the_table(import_text, typed):
    content = 'price,zip,id,at\n1.5,007,1.0,2026-01-01T00:00:00Z\n,"",2,\n2,,3,\n'
    assert import_text(typed.name, content).returncode == 0
    lines = '{"id": 4, "zip": 7.10}\n\n{"zip": null, "price": "3.25", "id": "5"}\n'
    assert import_text(typed.name, lines, name="rows.jsonl").returncode == 0
    found = typed.to_arrow()
    assert found["zip"].to_pylist() == ["007", "", None, "7.10", None]
    assert found["id"].to_pylist() == [1, 2, 3, 4, 5]
    assert [each and str(each) for each in found["price"].to_pylist()] == [
        "1.50",
        None,
        "2.00",
        None,
        "3.25",
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r.csv", "id\n1\n2\nx\n", "r.csv, line 4, column 'id': 'x' is not BIGINT"),
        ("r.csv", 'zip,id\n"a\nb",1\n\nc,1.5\n', "r.csv, line 5, column 'id': '1.5' is not BIGINT"),
        ("r.csv", "price\n1.125\n", "line 2, column 'price': '1.125' has more than 2 digits"),
        ("r.csv", "at\n2026-01-32\n", "line 2, column 'at': '2026-01-32' is not a day"),
        ("r.csv", "id,zip\n1,a\n2,b,c\n", "r.csv, line 3: '2,b,c' has 3 cells"),
        ("r.csv", 'id,zip\n1,a\n2,"b\n3,c\n', "r.csv, line 3: 'The record' opens a quote"),
        ("r.csv", 'zip,id\n1,2\n"b,3\n4,5\n', "r.csv, line 3: 'The record' opens a quote"),
        ("r.csv", b"zip\na\n\xff\n", "r.csv, line 3, column 'zip'"),
        ("r.csv", "id,id\n1,2\n", "two columns 'id'"),
        ("r.csv", "", "is empty"),
        ("r.csv", "id\n1\n".encode("utf-16"), "r.csv is in UTF-16"),
        ("r.csv", "idd,zip\n1,a\n", "did you mean 'id'"),
        ("r.jsonl", '{"id": 1}\n\n{"id": 1.5}\n', "line 3, column 'id': '1.5' is not BIGINT"),
        ("r.jsonl", '{"idd": 1}\n', "line 1, column 'idd': 'idd' is not a column of the table"),
        ("r.jsonl", '{"id": 1, "id": 2}\n', "the key 'id' occurs twice"),
        ("r.jsonl", '{"id": 1}\nnull\n', "line 2: 'null' is not a JSON object"),
        ("r.jsonl", '{"id": 1} {"id": 2}\n', "line 1"),
        ("r.jsonl", "[\n", "jq"),
        ("r.jsonl", b'{"zip": "\xff"}\n', "line 1: "),
        ("r.csv", b"\x89PNG\r\n", "r.csv cannot be read as csv: it is not UTF-8"),
        ("r.csv", b"PAR1\x00\x00", "r.csv is a Parquet file, and was to be read as csv"),
        ("r.jsonl", b"PK\x03\x04", "a ZIP archive"),
        ("r.csv", b"\x1f\x8b\x08", "compressed with gzip"),
        ("r.parquet", "no parquet", "cannot be read as parquet"),
        ("r.arrow", "no arrow", "cannot be read as arrow"),
    ],
)
def test_an_error_names_line_column_and_value(import_text, typed, name, content, said):
    done = import_text(typed.name, content, name=name)
    assert done.returncode == 1
    assert said in done.said
    assert "0 rows are in" in done.said
    assert "Traceback" not in done.said
    assert typed.count() == 0


def test_a_row_that_the_table_refuses_is_named_with_its_location(
    import_text, session, run, tmp_path
):
    rows = pa.table({"id": [1, None, 3], "name": ["a", "b", "c"]})
    keyed = session.create_table("keyed", rows, primary_key=["id"], buckets=1)
    done = import_text(keyed.name, "id,name\n1,a\n\n,b\n")
    assert "rows.csv, line 4: " in done.said
    pq.write_table(rows, tmp_path / "rows.parquet")
    done = run("import", keyed.name, str(tmp_path / "rows.parquet"))
    assert "rows.parquet, row 2: " in done.said
    assert keyed.count() == 0


def test_a_late_bad_value_fails_with_the_count_and_how_to_continue(
    import_text, session, database, monkeypatch
):
    monkeypatch.setattr("fluss.cli.files.row_files.SAMPLE_BYTES", 100_000)
    monkeypatch.setattr("fluss.cli.files.csv_file.BLOCK_BYTES", 100_000)
    count = CHUNK_ROWS + 50_000
    good = "v\n" + "".join(f"{each}\n" for each in range(count))
    done = import_text(f"{database}.late", good + "1.5\n7\n", "--create", "--buckets", "1")
    assert done.returncode == 1
    assert f"rows.csv, line {count + 2:,}, column 'v': '1.5' is not BIGINT" in done.said
    table = session.table("late")
    there = table.count()
    assert CHUNK_ROWS <= there < count
    assert f"{there:,} rows are in {database}.late: rows 1 to {there:,}" in done.said
    assert f"--skip {there}" in done.said
    done = import_text(table.name, good + "15\n7\n", "--skip", str(there))
    assert done.returncode == 0, done.said
    assert f"{count + 2 - there:,} rows written" in done.said
    assert table.to_arrow()["v"].to_pylist() == [*range(count), 15, 7]
    done = import_text(f"{database}.right", good + "1.5\n", "--create", "--type", "v=DOUBLE")
    assert done.returncode == 0, done.said


def test_rows_to_skip_are_counted_over_all_files(run, session, tmp_path):
    table = session.create_table("skipped", {"n": [0]}, buckets=1)
    files = []
    for number, form in enumerate(("csv", "jsonl", "parquet", "arrow")):
        rows = pa.table({"n": range(number * 3, number * 3 + 3)})
        file = tmp_path / f"{number}.{form}"
        files.append(str(file))
        match form:
            case "csv":
                file.write_text("n\n" + "".join(f"{each}\n" for each in rows["n"].to_pylist()))
            case "jsonl":
                file.write_text("".join(json.dumps(each) + "\n" for each in rows.to_pylist()))
            case "parquet":
                pq.write_table(rows, file)
            case _:
                with ipc.new_file(file, rows.schema) as writer:
                    writer.write_table(rows, max_chunksize=2)
    assert run("import", table.name, *files, "--skip", "7").returncode == 0
    assert table.to_arrow()["n"].to_pylist() == [7, 8, 9, 10, 11]


def test_more_rows_to_skip_than_there_are_is_refused(import_text, typed):
    assert import_text(typed.name, "id\n1\n", "--skip", "1").returncode == 0
    done = import_text(typed.name, "id\n1\n", "--skip", "2")
    assert done.returncode == 1
    assert "more rows than the files have, 1" in done.said
    assert typed.count() == 0


def test_types_are_chosen_that_keep_every_value(import_text, session, database):
    done = import_text(
        f"{database}.made",
        'zip,big,day,at,f,t\n007,99999999999999999999,2026-01-31,2026-01-31T12:00:00Z,1.5,""\n',
        "--create",
    )
    assert done.returncode == 0, done.said
    made = session.table("made")
    assert [str(each.data_type) for each in made.fluss_schema.columns] == [
        "STRING",
        "DECIMAL(38, 0)",
        "DATE",
        "TIMESTAMP_LTZ(6)",
        "DOUBLE",
        "STRING",
    ]
    assert str(made.to_arrow()["big"][0].as_py()) == "99999999999999999999"
    lines = '{"id": 1}\n{"id": 99999999999999999999}\n'
    done = import_text(f"{database}.ids", lines, "--create", name="rows.jsonl")
    assert [int(each) for each in session.table("ids").to_arrow()["id"].to_pylist()] == [
        1,
        99999999999999999999,
    ]


def test_an_import_that_is_refused_makes_no_table(import_text, session, database):
    for content in ("a,b\n1\n", "", "a\n1\nx,y\n"):
        done = import_text(f"{database}.refused", content, "--create")
        assert done.returncode == 1
        assert "no table was made" in done.said
    done = import_text(f"{database}.refused", "a\n1\n", "--create", "--type", "b=INT")
    assert "has no column 'b'" in done.said
    done = import_text(f"{database}.refused", "a\nx\n", "--create", "--type", "a=INT")
    assert "'x' is not INT" in done.said
    assert session.tables(database) == []


def test_a_table_of_another_shape_is_not_written_to(import_text, session, typed):
    for words, said in (
        (["--primary-key", "id"], "its --primary-key is none"),
        (["--partition-by", "zip"], "its --partition-by is none"),
        (["--buckets", "7"], "its --buckets is 1"),
        (["--type", "id=INT"], "its --type of 'id' is BIGINT"),
    ):
        done = import_text(typed.name, "id\n1\n", "--create", *words)
        assert done.returncode == 1
        assert said in done.said
    assert typed.count() == 0


def test_large_files_are_read_in_blocks_and_lines_may_cross_them(
    import_text, session, database, monkeypatch
):
    monkeypatch.setattr("fluss.cli.files.json_file.BLOCK_BYTES", 1_000)
    monkeypatch.setattr("fluss.cli.files.csv_file.BLOCK_BYTES", 3_000)
    monkeypatch.setattr("fluss.cli.files.csv_file.RECORD_BYTES_MAX", 20_000)
    rows = [{"n": each, "t": "é" * (each % 700)} for each in range(2_000)]
    table = session.create_table("blocks", pa.Table.from_pylist(rows), buckets=1)
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows)
    assert import_text(table.name, lines, name="rows.jsonl").returncode == 0
    cells = "".join(f'{each["n"]},"{each["t"]}"\r\n' for each in rows)
    assert import_text(table.name, "\ufeffn,t\r\n" + cells).returncode == 0
    assert table.to_arrow().to_pylist() == rows * 2
    monkeypatch.setattr("fluss.cli.files.json_file.LINE_BYTES_MAX", 3_000)
    done = import_text(table.name, f'{{"t": "{"x" * 10_000}"}}', name="rows.jsonl")
    assert "A line has more than" in done.said
    done = import_text(table.name, f'n,t\n1,"{"x" * 50_000}"\n')
    assert "row 1 has more than" in done.said


def test_the_standard_input_is_read_in_every_format(run, session):
    rows = pa.table({"n": [1, 2], "t": ["a", None]})
    table = session.create_table("piped", rows, buckets=1)
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(rows, parquet)
    with ipc.new_stream(arrow, rows.schema) as writer:
        writer.write_table(rows)
    given = {
        "json": b'{"n": 1, "t": "a"}\n{"n": 2}\n',
        "csv": b"n,t\n1,a\n2,\n",
        "parquet": parquet.getvalue(),
        "arrow": arrow.getvalue(),
    }
    for form, content in given.items():
        done = run("import", table.name, "-", "--file-format", form, given=content)
        assert done.returncode == 0, done.said
    assert table.to_arrow().to_pylist() == rows.to_pylist() * 4
    done = run("import", table.name, "-", given=b'{"n": 1}\n{"n": "x"}\n')
    assert "the standard input, row 2, column 'n': 'x' is not BIGINT" in done.said


@pytest.mark.parametrize("imported", ["", "import polars; "])
def test_ctrl_c_reports_the_count_and_the_import_continues_from_there(
    session, program, tmp_path, imported
):
    table = session.create_table("interrupted", {"n": [0]}, buckets=1)
    fifo = tmp_path / "rows.csv"
    os.mkfifo(fifo)
    (python, flag, line), environment = program
    importer = subprocess.Popen(
        [python, flag, imported + line, "import", table.name, str(fifo)],
        stderr=subprocess.PIPE,
        env=environment,
    )
    with fifo.open("w") as rows:  # the pipe stays open, so the command waits
        rows.write("n\n" + "".join(f"{each}\n" for each in range(1_000_000)))
        rows.flush()
        ends = time.monotonic() + 30
        while not table.count() and time.monotonic() < ends:
            time.sleep(0.05)
        began = time.monotonic()
        importer.send_signal(signal.SIGINT)
        assert importer.wait(timeout=10) == 130
        assert time.monotonic() - began < 5
    said = importer.communicate()[1].decode()
    count = table.count()
    assert f"{count:,} rows are in {table.name}: rows 1 to {count:,} of the pipe" in said
    assert f"To continue: pipe the same rows again with --skip {count}" in said
    assert "Traceback" not in said


def test_a_missing_table_or_database_is_named_with_how_it_is_made(run, database, tmp_path):
    (tmp_path / "rows.csv").write_text("n\n1\n")
    done = run("import", f"{database}.absent", str(tmp_path / "rows.csv"))
    assert done.returncode == 1
    assert "--create makes the table from the file" in done.said
    done = run("import", "no_such_db.t", str(tmp_path / "rows.csv"), "--create")
    assert done.returncode == 1
    assert "`fluss create no_such_db` makes it" in done.said
