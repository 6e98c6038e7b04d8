"""`fluss import` of large Parquet files, killed and continued, and `fluss export` of them back.

Rows are compared as sets: each has a number, which must occur once, and a checksum of its values.
Memory is that of the process, sampled while it runs: a fraction of what it reads or writes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import fluss
from fluss_server.local_cluster import LocalCluster
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE

# The values are random, so a file has about as many bytes as they do.
BYTES = (5_000 if IS_EXHAUSTIVE else 100) * 1_000_000
ROW_BYTES = 68
FILES = 4
KILLS = 6 if IS_EXHAUSTIVE else 2
GROUP_ROWS = 500_000 if IS_EXHAUSTIVE else 50_000
RSS_MB_MAX = 1_000  # less than one file of the long run has, so none is kept in memory
SEGMENT_BYTES = (64 << 20) if IS_EXHAUSTIVE else (4 << 20)
COMMAND = (
    f"import sys; from fluss.cli import main; from fluss.cli.files import import_writers; "
    f"import_writers.SEGMENT_BYTES = {SEGMENT_BYTES}; sys.exit(main())"
)

pytestmark = [
    pytest.mark.one_server,
    pytest.mark.slow,  # a server, and a process for each kill
    pytest.mark.timeout(3_600),
]


def test_an_import_that_is_killed_loses_and_doubles_no_row(tmp_path):
    files = tmp_path / "in"
    total, checksum = _written(files)
    size = sum(each.stat().st_size for each in files.iterdir())
    with LocalCluster(tmp_path / "data") as cluster:
        environment = {
            **os.environ,
            "FLUSS_URL": cluster.url,
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        _create(cluster.url)
        began = time.monotonic()
        killed = _killed_several_times(environment, files, cluster.url, total)
        last = _Command(environment, "import", "fluss.rows", str(files))
        said = last.end()
        took = time.monotonic() - began
        assert "of an earlier run" in said
        whole = _Command(environment, "export", "fluss.rows", str(tmp_path / "out.parquet"))
        export_began = time.monotonic()
        assert f"{total:,} rows read" in whole.end()
        export_took = time.monotonic() - export_began
        with fluss.connect(cluster.url) as session:
            assert session.table("fluss.rows").count() == total
    found = _checked(pq.ParquetFile(tmp_path / "out.parquet").iter_batches(), total)
    assert found == checksum
    importing_mb = max(each.memory_max() for each in [*killed, last])
    assert max(importing_mb, whole.memory_max()) < RSS_MB_MAX
    print(  # noqa: T201 - the page of the proof shows it
        f"import: {total:,} rows, {size / 1e9:.2f} GB of Parquet in {FILES} files, "
        f"killed {len(killed)} times, {took:,.0f} s; every row once; at most {importing_mb:.0f} MB"
    )
    print(  # noqa: T201
        f"export: {total:,} rows in {export_took:,.0f} s, equal; "
        f"at most {whole.memory_max():.0f} MB"
    )


def _written(folder: Path) -> tuple[int, int]:
    """Write the files; return how many rows they have, and the checksum of their values."""
    folder.mkdir()
    rng = np.random.default_rng(7)
    total, checksum = BYTES // ROW_BYTES, 0
    per_file = -(-total // FILES)
    for number in range(FILES):
        begin, stop = number * per_file, min((number + 1) * per_file, total)
        with pq.ParquetWriter(folder / f"part-{number}.parquet", _SCHEMA) as writer:
            for first in range(begin, stop, GROUP_ROWS):
                rows = _random_rows(rng, first, min(GROUP_ROWS, stop - first))
                checksum = (checksum + _checksum(rows)) % 2**64
                writer.write_batch(rows)
    return total, checksum


_NUMBERS = [f"n{each}" for each in range(7)]
_SCHEMA = pa.schema(
    [("id", pa.int64()), *((name, pa.int64()) for name in _NUMBERS), ("word", pa.string())]
)


def _random_rows(rng, first, count):
    numbers = [rng.integers(0, 2**62, count) for _ in _NUMBERS]
    words = pa.array([f"w{each:03}" for each in range(1_000)]).take(
        pa.array(rng.integers(0, 1_000, count))
    )
    ids = np.arange(first, first + count)
    return pa.RecordBatch.from_arrays([ids, *numbers, words], schema=_SCHEMA)


def _checksum(rows):
    with np.errstate(over="ignore"):
        sums = np.zeros(rows.num_rows, np.uint64)
        for place, name in enumerate(["id", *_NUMBERS], 1):
            values = rows.column(name).to_numpy().astype(np.uint64)
            sums = (sums ^ values) * np.uint64(0x9E3779B97F4A7C15 + 2 * place)
        words = rows.column("word").to_numpy(zero_copy_only=False).astype("U4")
        digits = words.view("U1").reshape(rows.num_rows, -1)[:, 1:].astype("U1")
        number = np.ascontiguousarray(digits).view("U3").ravel().astype(np.uint64)
        return int(np.sum((sums ^ number) * np.uint64(0x2545F4914F6CDD1D), dtype=np.uint64))


def _checked(batches, total):
    """Check that each row is there once, and return the checksum of all."""
    seen = np.zeros(total, bool)
    checksum = 0
    for batch in batches:
        ids = batch.column("id").to_numpy()
        assert not seen[ids].any()
        assert len(np.unique(ids)) == len(ids)
        seen[ids] = True
        checksum = (checksum + _checksum(batch)) % 2**64
    assert seen.all()
    return checksum


def _create(url):
    with fluss.connect(url) as session:
        session.create_table("fluss.rows", _SCHEMA, buckets=4)


def _killed_several_times(environment, files, url, total):
    """Start the import, and kill it after a random part of the rows; return the commands."""
    rng = random.Random(11)
    killed = []
    with fluss.connect(url) as session:
        table = session.table("fluss.rows")
        for kill in range(KILLS):
            until = total * (kill + rng.random()) / (KILLS + 1)
            command = _Command(environment, "import", "fluss.rows", str(files))
            while table.count() < until and command.process.poll() is None:
                time.sleep(0.02)
            assert command.process.poll() is None, command.process.communicate()
            command.process.kill()
            command.process.communicate()
            killed.append(command)
    return killed


class _Command:
    """A command that runs, and the memory that it needs."""

    def __init__(self, environment, *words):
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words],
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self._samples: list[float] = []
        threading.Thread(target=self._sample, daemon=True).start()

    def end(self):
        """Wait for its success, and return what it reports."""
        said = self.process.communicate(timeout=3_000)[1]
        assert self.process.returncode == 0, said
        return said

    def memory_max(self):
        return max(self._samples)

    def _sample(self):
        while self.process.poll() is None:
            try:
                status = Path(f"/proc/{self.process.pid}/status").read_text()
            except OSError:
                return
            found = [each for each in status.splitlines() if each.startswith("VmRSS:")]
            if found:
                self._samples.append(int(found[0].split()[1]) / 1_024)
            time.sleep(0.05)
