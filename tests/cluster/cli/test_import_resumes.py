"""An import that was killed, stopped or changed: what is in is counted, and nothing doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from fluss.cli.files import import_writers

ROWS = 600_000


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(import_writers, "SEGMENT_BYTES", 100_000)


def _state_of(folder):
    return sorted((folder / "state" / "fluss" / "imports").glob("*.json"))


def _importing(program, *words):
    (python, flag, line), environment = program
    # Small segments, so that a kill is likely to hit each place of the protocol.
    line = (
        "from fluss.cli.files import import_writers, importing; import_writers.SEGMENT_BYTES = 1 << 20; "
        f"importing.CHUNK_ROWS = 20_000; {line}"
    )
    return subprocess.Popen(
        [python, flag, line, "import", *words], stderr=subprocess.PIPE, env=environment
    )


@pytest.mark.slow  # starts three processes, and kills two
@pytest.mark.parametrize("key", [[], ["id"]])
def test_an_import_that_is_killed_continues_and_doubles_nothing(session, program, tmp_path, key):
    schema = {"id": "BIGINT", "half": "BIGINT"}
    table = session.create_table("killed", schema, primary_key=key or None, buckets=2)
    for part in range(3):
        first = part * ROWS // 3
        ids = range(first, first + ROWS // 3)
        rows = pa.table({"id": ids, "half": [each // 2 for each in ids]})
        pq.write_table(rows, tmp_path / f"part-{part}.parquet", row_group_size=50_000)
    pattern = str(tmp_path / "part-*.parquet")
    for kill in range(2):
        importer = _importing(program, table.name, pattern)
        before, ends = table.count(), time.monotonic() + 30
        while importer.poll() is None and time.monotonic() < ends:
            if table.count() > before + kill * 1_000:
                break
            time.sleep(0.01)
        importer.kill()
        said = importer.communicate()[1].decode()
        assert importer.returncode == -signal.SIGKILL, said
    importer = _importing(program, table.name, pattern)
    said = importer.communicate(timeout=100)[1].decode()
    assert importer.returncode == 0, said
    assert "continuing an import that ended early" in said
    assert "of an earlier run" in said
    found = table.to_arrow().sort_by("id")
    assert found.num_rows == ROWS
    assert found["id"].to_numpy().tolist() == list(range(ROWS))
    assert not _state_of(tmp_path)


def test_ctrl_c_ends_an_import_between_rows_that_are_counted(session, program, tmp_path):
    table = session.create_table("interrupted", {"n": "BIGINT"}, buckets=1)
    pq.write_table(pa.table({"n": range(3_000_000)}), tmp_path / "rows.parquet")
    importer = _importing(program, table.name, str(tmp_path / "rows.parquet"))
    ends = time.monotonic() + 30
    while not table.count() and time.monotonic() < ends:
        time.sleep(0.01)
    importer.send_signal(signal.SIGINT)
    said = importer.communicate(timeout=30)[1].decode()
    assert importer.returncode == 130, said
    assert "run the same command again; no row is written twice" in said
    importer = _importing(program, table.name, str(tmp_path / "rows.parquet"))
    importer.communicate(timeout=60)
    assert table.count() == 3_000_000


class KilledError(Exception):
    """Stands for the end of the process."""


def _killed(run, monkeypatch, table, file, rows):
    """Import a file until the table has some rows, then end before their segment is noted."""
    append = import_writers.append_exactly_once
    work, finish = import_writers.OnceWriter._work, import_writers.OnceWriter.finish
    ends = []

    def dying(*given):
        receipt = append(*given)
        if table.count() >= rows:
            raise KilledError
        return receipt

    def noting(self):
        try:
            work(self)
        except KilledError as error:
            ends.append(error)

    def raising(self):
        finish(self)
        if ends:
            raise ends[0]

    with monkeypatch.context() as patch:
        patch.setattr(import_writers, "append_exactly_once", dying)
        patch.setattr(import_writers.OnceWriter, "_work", noting)
        patch.setattr(import_writers.OnceWriter, "finish", raising)
        done = run("import", table.name, str(file))
    assert "unexpected KilledError" in done.said


def test_files_that_have_changed_are_not_continued(
    run, session, tmp_path, monkeypatch, small_segments
):
    table = session.create_table("changed", {"n": "BIGINT"}, buckets=1)
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.csv").write_text("n\n" + "".join(f"{each}\n" for each in range(30_000)))
    _killed(run, monkeypatch, table, folder, 10_000)
    (state,) = _state_of(tmp_path)
    certain = json.loads(state.read_text())["progress"]["rows"]
    there = table.count()
    assert certain < there  # the last segment was not noted
    (folder / "b.csv").write_text("n\n1\n")
    assert "b.csv has come" in run("import", table.name, str(folder)).said
    (folder / "b.csv").unlink()
    with (folder / "a.csv").open("a") as more:
        more.write("30000\n")
    done = run("import", table.name, str(folder))
    assert done.returncode == 1
    assert "a.csv has changed since" in done.said
    assert f"rows 1 to {certain:,} of the files are in, and up to " in done.said
    assert f"--skip {certain} continues" in done.said
    assert table.count() == there
    done = run("import", table.name, str(folder), "--restart")
    assert done.returncode == 0, done.said
    assert table.count() == there + 30_001
    assert not _state_of(tmp_path)


def test_a_repeated_segment_adds_nothing(run, session, tmp_path, monkeypatch, small_segments):
    table = session.create_table("repeated", {"n": "BIGINT"}, buckets=3)
    file = tmp_path / "rows.csv"
    file.write_text("n\n" + "".join(f"{each}\n" for each in range(40_000)))
    for rows in (1, 20_000):
        _killed(run, monkeypatch, table, file, rows)
    done = run("import", table.name, str(file))
    assert done.returncode == 0, done.said
    assert sorted(table.to_arrow()["n"].to_pylist()) == list(range(40_000))
    done = run("import", table.name, str(file))  # a new import, which appends
    assert table.count() == 80_000
    # A table that was created again has none of the rows.
    _killed(run, monkeypatch, table, file, 90_000)
    session.drop_table("repeated")
    table = session.create_table("repeated", {"n": "BIGINT"}, buckets=3)
    done = run("import", table.name, str(file))
    assert (done.returncode, table.count()) == (0, 40_000), done.said


def test_a_bad_row_leaves_the_rows_before_it(run, session, tmp_path):
    schema = {"id": "BIGINT NOT NULL", "name": "STRING"}
    table = session.create_table("bad", schema, buckets=1)
    rows = pa.table({"id": [*range(5_000), None, 7], "name": ["x"] * 5_002})
    pq.write_table(rows, tmp_path / "rows.parquet")
    done = run("import", table.name, str(tmp_path / "rows.parquet"))
    assert done.returncode == 1
    assert "rows.parquet, row 5,001: " in done.said
    assert f"5,000 rows are in {table.name}: rows 1 to 5,000" in done.said
    assert "--skip 5000" in done.said
    assert table.count() == 5_000


def test_two_processes_do_not_import_the_same_files(run, session, tmp_path):
    import fcntl

    table = session.create_table("locked", {"n": "BIGINT"}, buckets=1)
    (tmp_path / "rows.csv").write_text("n\n1\n")
    words = ("import", table.name, str(tmp_path / "rows.csv"))
    assert run(*words).returncode == 0
    from hashlib import blake2b

    text = f"{table.name}\n{os.path.realpath(tmp_path / 'rows.csv')}"
    name = blake2b(text.encode(), digest_size=16).hexdigest()
    with (tmp_path / "state" / "fluss" / "imports" / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run(*words)
    assert (done.returncode, table.count()) == (1, 1)
    assert "Another process is importing these files" in done.said


def test_an_import_without_a_place_for_its_state_is_done_all_the_same(
    run, session, tmp_path, monkeypatch
):
    table = session.create_table("stateless", {"n": "BIGINT"}, buckets=1)
    (tmp_path / "rows.csv").write_text("n\n1\nx\n")
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    done = run("import", table.name, str(tmp_path / "rows.csv"))
    assert done.returncode == 1
    assert "To continue: run the same command again" in done.said
