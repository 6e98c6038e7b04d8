"""Files, folders, patterns and compressed files in; files and partitioned folders out."""

from __future__ import annotations

import bz2
import gzip
import os
import resource
import subprocess
from datetime import date

import pyarrow as pa
import pytest
from pyarrow import dataset as ds, parquet as pq

from fluss.cli.files.format_names import FileFormat
from fluss.cli.files.input_files import input_files
from fluss.cli.files.partitioned_folder import open_partitioned
from fluss.errors import InvalidValueError


def _numbers(session, name):
    return session.create_table(name, {"n": "BIGINT"}, buckets=1)


def test_patterns_and_folders_are_read_in_a_fixed_order(run, session, tmp_path):
    for number, name in enumerate(
        ("b/2.csv", "b/10.csv", "a/x.csv", "c.csv", "a/_SUCCESS", "a/.x")
    ):
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"n\n{number}\n")
    table = _numbers(session, "patterns")
    assert run("import", table.name, str(tmp_path / "in")).returncode == 0
    assert table.to_arrow()["n"].to_pylist() == [3, 2, 1, 0]
    names = [each.file for each in input_files([str(tmp_path / "in/*/*.csv")], None)]
    assert [os.path.relpath(each, tmp_path / "in") for each in names] == [
        "a/x.csv", "b/10.csv", "b/2.csv",
    ]  # fmt: skip
    assert len(input_files([str(tmp_path / "in/**/*.csv")], None)) == 4
    assert len(input_files([str(tmp_path / "in/*")], None)) == 4
    assert len(input_files([str(tmp_path / "in/**")], None)) == 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["in/none.csv"], "There is no file in/none.csv"),
        (["in/roww.csv"], "did you mean 'rows.csv'?"),
        (["in/*.json"], "No file matches in/*.json"),
        (["empty"], "The folder empty has no files"),
        (["in/rows.csv", "in/*.csv"], "in/rows.csv is named twice"),
        (["other"], "The name of other/part-0 does not show its format"),
    ],
)
def test_a_word_that_names_no_file_is_refused(tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    for folder in ("in", "empty", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in" / "rows.csv").write_text("n\n1\n")
    (tmp_path / "other" / "part-0").write_text("n\n1\n")
    with pytest.raises(InvalidValueError) as caught:
        input_files(words, None)
    assert expected in str(caught.value)


def test_compressed_files_are_read_by_their_names(run, session, tmp_path):
    table = _numbers(session, "compressed")
    text = "n\n" + "".join(f"{each}\n" for each in range(50_000))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()) + gzip.compress(b"-1\n"))
    (tmp_path / "b.csv.bz2").write_bytes(bz2.compress(b"n\n-2\n"))
    with pa.CompressedOutputStream(str(tmp_path / "c.jsonl.zst"), "zstd") as out:
        out.write(b'{"n": -3}\n')
    pq.write_table(pa.table({"n": [-4]}), tmp_path / "d.parquet")
    (tmp_path / "d.parquet.gz").write_bytes(gzip.compress((tmp_path / "d.parquet").read_bytes()))
    (tmp_path / "d.parquet").unlink()
    done = run("import", table.name, str(tmp_path / "*.*.*"))
    assert done.returncode == 0, done.said
    assert table.to_arrow()["n"].to_pylist() == [*range(50_000), -1, -2, -3, -4]


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.parquet", "rows.arrow", "rows.jsonl"])
def test_a_half_written_file_is_reported_with_what_is_in(run, session, tmp_path, name):
    table = _numbers(session, "half")
    rows = pa.table({"n": range(100_000)})
    file = tmp_path / name
    match name.partition(".")[2]:
        case "csv.gz":
            text = "n\n" + "".join(f"{each}\n" for each in range(100_000))
            file.write_bytes(gzip.compress(text.encode()))
        case "parquet":
            pq.write_table(rows, file)
        case "arrow":
            with pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows)
        case _:
            file.write_text("".join(f'{{"n": {each}}}\n' for each in range(100_000)))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 - 3])
    done = run("import", table.name, str(file))
    assert done.returncode == 1
    assert name in done.said
    assert f"{table.count():,} rows are in {table.name}" in done.said
    assert len(done.said.splitlines()) <= 3, done.said
    assert "Traceback" not in done.said


@pytest.fixture
def parted(session, database):
    rows = pa.table(
        {
            "id": range(6),
            "day": pa.array([0, 1, 1, 20_000, None, 0], pa.date32()),
            "text": ["a/b", "x=y", "", None, "__ü 1%", "a/b"],
        }
    )
    table = session.create_table("parted", rows, buckets=1)
    table.append(rows)
    return table


def test_a_partitioned_folder_comes_back_and_others_read_it(run, session, parted, tmp_path):
    folder = tmp_path / "out"
    done = run("export", parted.name, str(folder), "--partition-by", "day,text")
    assert done.returncode == 0, done.said
    assert "6 rows read" in done.said
    names = {str(each.relative_to(folder)) for each in folder.rglob("*.parquet")}
    assert "day=1970-01-01/text=a%2Fb/part-0.parquet" in names
    assert "day=__HIVE_DEFAULT_PARTITION__/text=__%C3%BC 1%25/part-0.parquet" in names
    copy = session.create_table("copy", parted.schema, buckets=1)
    assert run("import", copy.name, str(folder)).returncode == 0
    assert copy.to_arrow().sort_by("id").equals(parted.to_arrow().sort_by("id"))
    done = run("import", f"{parted.name}2", str(folder), "--create")
    assert done.returncode == 0, done.said
    made = session.table("parted2")
    assert min(made.to_arrow()["day"].to_pylist(), key=str) == date(1970, 1, 1)
    by_day = tmp_path / "by_day"
    words = ("--partition-by", "day", "--where", "id < 4", "--file-format", "csv")
    assert run("export", parted.name, str(by_day), *words).returncode == 0
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
    read = ds.dataset(by_day, schema, "csv", partitioning=ds.partitioning(flavor="hive"))
    assert sorted(read.to_table()["id"].to_pylist()) == [0, 1, 2, 3]


def test_more_partitions_than_open_files_become_further_parts(
    run, session, database, tmp_path, monkeypatch
):
    monkeypatch.setattr("fluss.cli.files.partitioned_folder.OPEN_FILES_MAX", 2)
    rows = pa.table({"n": range(6), "k": [each % 3 for each in range(6)]})
    folder = tmp_path / "out"
    with open_partitioned(str(folder), FileFormat.PARQUET, rows.schema, ["k"]) as write:
        for _ in range(2):
            write(rows.to_batches()[0])
    assert len(list(folder.rglob("part-1.parquet"))) == 3
    found = ds.dataset(folder, partitioning="hive").to_table()
    assert sorted(found["n"].to_pylist()) == sorted([*range(6)] * 2)
    monkeypatch.setattr("fluss.cli.files.partitioned_folder.PARTITIONS_MAX", 2)
    table = session.create_table("many", rows, buckets=1)
    table.append(rows)
    done = run("export", table.name, str(tmp_path / "more"), "--partition-by", "k")
    assert "more than 2 folders" in done.said
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["out", "--partition-by", "dya"], "did you mean 'day'?"),
        (["out", "--partition-by", "id,day,text"], "names all columns"),
        (["full", "--partition-by", "day"], "full exists already"),
        (["out.parquet", "--partition-by", "day"], "looks like a file"),
        (["none/x.csv"], "mkdir -p none"),
        (["full"], "does not show its format"),
        (["full", "--file-format", "csv"], "full cannot be written: Is a directory"),
    ],
)
def test_an_export_that_cannot_be_written_is_refused(
    run, parted, tmp_path, monkeypatch, words, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    done = run("export", parted.name, *words)
    assert done.returncode == 1
    assert expected in done.said
    assert len(done.said.splitlines()) <= 2
    left = [
        each.name for each in tmp_path.iterdir() if "unfinished" in each.name or each.name == "out"
    ]
    assert not left


@pytest.mark.parametrize("words", [["out.parquet"], ["out.csv"], ["out", "--partition-by", "k"]])
def test_a_full_disk_leaves_nothing(session, program, tmp_path, words):
    table = session.create_table("large", {"n": "BIGINT", "k": "INT"}, buckets=1)
    table.append({"n": list(range(300_000)), "k": [1] * 300_000})
    line, environment = program

    def full():  # a file that grows larger fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = subprocess.run(
        [*line, "export", table.name, *words], capture_output=True, env=environment, cwd=tmp_path,
        preexec_fn=full, check=False, timeout=60,
    )  # fmt: skip
    said = done.stderr.decode()
    assert done.returncode == 1, said
    assert f"{words[0]} cannot be written: File too large; " in said
    assert f"nothing is left of {words[0]}" in said
    assert "make room" in said
    assert len(said.splitlines()) == 2, said
    assert not [each for each in tmp_path.iterdir() if each.name not in {"config.toml", "state"}]
