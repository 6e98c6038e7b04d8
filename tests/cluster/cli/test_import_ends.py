"""An import whose server dies or hangs ends with one message and an exact count."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fluss
from fluss.cli.files.import_state import ImportState
from fluss.cli.files.import_writers import ChunkWriter, OnceWriter
from fluss.cli.files.importing import ImportJob, ImportRequest, Observer
from fluss.cli.files.input_files import InputFile
from fluss.cli.files.new_table import NewTable
from fluss.errors import ConnectError, InvalidValueError
from fluss.model.tables.table_options import MergeEngine
from fluss.write.write_tally import WriteProgress
from fluss_server.local_cluster import LocalCluster

NOTHING = np.zeros(0, np.int64)
NEW = NewTable(may_create=False, primary_key=None, partition_by=None, buckets=None, types={})
FILE = InputFile(file="f.csv", file_format="csv", size=1, changed_ns=1)
PIPE = InputFile(file="-", file_format="csv")
AGAIN = "To continue: run the same command again"


def _job(
    in_flight=None,
    *,
    rows_in=0,
    skip=0,
    primary_key=(),
    merge_engine=None,
    is_pipe=False,
    doubt=None,
):
    files = [PIPE if is_pipe else FILE]
    request = ImportRequest(words=["f.csv"], files=files, skip=skip)
    job = ImportJob(None, "db.t", NEW, request, Observer(on_written=lambda _: None))
    options = SimpleNamespace(merge_engine=merge_engine)
    job._table = SimpleNamespace(primary_key=primary_key, info=SimpleNamespace(options=options))
    job._state = ImportState(None if is_pipe else Path("f.json"), "db.t", [], {}, skip=skip)
    job._state.progress = replace(job._state.progress, rows=skip + rows_in)
    chunk = in_flight and SimpleNamespace(
        rows=SimpleNamespace(num_rows=in_flight),
        first_row=rows_in,
        file=SimpleNamespace(location_of=lambda row: f"f.csv, line {row + 2}"),
    )
    kind = ChunkWriter if doubt is None else OnceWriter
    job._writer = kind.__new__(kind)
    job._writer.rows_in, job._writer.in_flight = rows_in, chunk
    job._writer.in_doubt_max = doubt or 0
    return job


def _failure(acknowledged, in_doubt, first_missing):
    progress = WriteProgress(
        acknowledged=acknowledged,
        in_doubt=in_doubt,
        not_written=100 - acknowledged - in_doubt,
        first_missing=first_missing,
        first_untaken=100,
        doubtful=NOTHING,
        missing=NOTHING,
        last_offsets={},
    )
    return ConnectError("The server is gone.", progress=progress).add_context(during="100 rows")


def _bad_row():
    return InvalidValueError("It does not fit.").add_context(row=3)


@pytest.mark.parametrize(
    ("job", "error", "account"),
    [
        (_job(100), _failure(0, 0, 0), f"0 rows are in db.t. {AGAIN}"),
        (
            _job(100, rows_in=1_000, skip=10),
            _failure(0, 0, 0),
            f"1,000 rows are in db.t: rows 11 to 1,010 of the files. {AGAIN}",
        ),
        (
            _job(100, rows_in=1_000, is_pipe=True),
            _failure(30, 50, 20),
            (
                "1,030 rows are in db.t: rows 1 to 1,020 of the pipe, and 10 of those after them. "
                "50 more may be in or not. To continue: pipe the same rows again with --skip 1020 "
                "(writes up to 60 rows twice)"
            ),
        ),
        (
            _job(100, primary_key=("id",)),
            _failure(30, 0, 0),
            f"30 rows are in db.t. {AGAIN}; a row that is written again replaces itself",
        ),
        (
            _job(100, primary_key=("id",), merge_engine=MergeEngine.AGGREGATION),
            _failure(0, 5, 0),
            (
                "0 rows are in db.t. 5 more may be in or not. To continue: --skip 0 "
                "(writes up to 5 rows twice)"
            ),
        ),
        (
            _job(100, rows_in=7, is_pipe=True),
            None,
            (
                "7 rows are in db.t: rows 1 to 7 of the pipe. 100 more may be in or not. "
                "To continue: pipe the same rows again with --skip 7 (writes up to 100 rows twice)"
            ),
        ),
        (
            _job(rows_in=7, doubt=5),
            None,
            (
                "7 rows are in db.t: rows 1 to 7 of the files. 5 more may be in or not. "
                f"{AGAIN}; no row is written twice"
            ),
        ),
        (
            _job(100, rows_in=7, doubt=0),
            _bad_row(),
            "7 rows are in db.t: rows 1 to 7 of the files. To continue: --skip 7",
        ),
    ],
)
def test_the_account_counts_what_is_in_in_doubt_and_left(job, error, account):
    assert job.account(error) == account


def test_the_message_is_about_the_file_and_not_about_the_chunk():
    assert _job(100).message(_failure(1, 2, 1)) == "The server is gone."
    error = InvalidValueError("It does not fit.", hint="cut it").add_context(row=3)
    assert _job(100, rows_in=7).message(error) == "f.csv, line 12: It does not fit.\n  hint: cut it"


@pytest.mark.one_server
@pytest.mark.slow  # starts a server, and waits until a write fails
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_an_import_that_loses_its_server_reports_an_exact_count(program, tmp_path, how):
    (python, flag, line), environment = program
    file = tmp_path / "rows.csv"
    file.write_text("n\n" + "".join(f"{each}\n" for each in range(4_000_000)))
    with LocalCluster(tmp_path / "data") as cluster:
        with fluss.connect(cluster.url) as session:
            table = session.create_table("fluss.lost", {"n": [0]}, buckets=2)
            importer = subprocess.Popen(
                [python, flag, line, "--url", f"{cluster.url}?operation-timeout=3s",
                 "import", table.name, str(file)],
                stderr=subprocess.PIPE, env=environment,
            )  # fmt: skip
            ends = time.monotonic() + 30
            while not table.count() and time.monotonic() < ends:
                time.sleep(0.05)
        began = time.monotonic()
        if how == "killed":
            cluster.kill()
        else:
            os.kill(cluster.pid, signal.SIGSTOP)
            time.sleep(1.0)  # until a chunk is in flight to the hanging server
            importer.send_signal(signal.SIGINT)
        said = importer.communicate(timeout=60)[1].decode()
        assert time.monotonic() - began < 20
        assert importer.returncode == (1 if how == "killed" else 130), said
        assert len(said.strip().splitlines()) <= 3, said
        certain = int(re.search(r"([\d,]+) rows are in", said)[1].replace(",", ""))
        doubt = re.search(r"([\d,]+) more may be", said)
        doubtful = int(doubt[1].replace(",", "")) if doubt else 0
        if how == "killed":
            cluster.stop()
            cluster.start()
        else:
            os.kill(cluster.pid, signal.SIGCONT)
            time.sleep(0.5)
        with fluss.connect(cluster.url) as session:
            assert certain <= session.table("fluss.lost").count() <= certain + doubtful
