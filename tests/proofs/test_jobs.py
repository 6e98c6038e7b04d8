"""Jobs that continue where the last run ended, and copies of whole histories, each in a process.

A job stores its cursor with its rows. However it ends, the next run reads exactly the missing rows.
Copying a changelog takes the memory of a few batches, however long it is.
"""

import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.hypothesis_profiles import IS_EXHAUSTIVE

ROOT = Path(__file__).resolve().parents[2]
CRASHES = 60 if IS_EXHAUSTIVE else 6
CRASHED = 70
KEYS = 1_000_000 if IS_EXHAUSTIVE else 20_000
CHANGES = 5 * KEYS
GROWTH_MB_MAX = 48
pytestmark = [
    pytest.mark.slow,  # each run is a Python of its own
    pytest.mark.timeout(1_800),
]


# Exits abruptly at one of its steps: a request, a batch, a row of its own database.
JOB = """
import os, sqlite3, sys
import fluss
from fluss.net.cluster_client import Cluster

url, path, fatal = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps, send = 0, Cluster.send

def step():
    global steps
    steps += 1
    if steps == fatal:
        os._exit(70)

async def counted(self, *arguments, **named):
    step()
    answer = await send(self, *arguments, **named)
    step()
    return answer

Cluster.send = counted
store = sqlite3.connect(path)
with store:
    store.execute("create table if not exists cursors (name primary key, cursor)")
    store.execute("create table if not exists rows (name, bucket, at, id)")

def read(session, name, **options):
    found = store.execute("select cursor from cursors where name = ?", [name]).fetchone()
    start = found[0] if found else "earliest"
    scan = session.table(name).scan(
        start=start, columns=["id"], with_metadata=["_bucket", "_log_offset"], **options
    )
    with store:  # the rows and the cursor, or neither
        for batch in scan.to_reader():
            step()
            for row in batch.to_pylist():
                place = [name, row["_bucket"], row["_log_offset"], row["id"]]
                store.execute("insert into rows values (?, ?, ?, ?)", place)
            step()
        cursor = [name, scan.cursor().to_json()]
        store.execute("insert or replace into cursors values (?, ?)", cursor)
        step()
    step()

with fluss.connect(url) as session:
    read(session, "events")
    read(session, "keyed", mode="changelog")
print(steps)
"""


def test_a_job_that_crashes_at_any_step_delivers_every_row_once(
    cluster, database, events, keyed, rows, tmp_path
):
    url, path, rng = (
        f"fluss://{cluster.bootstrap}/{database}",
        tmp_path / "rows.db",
        random.Random(5),
    )
    steps = int(_run(JOB, url, tmp_path / "measured.db", 0).stdout)
    assert steps > 10
    for crash in range(CRASHES):
        fatal = 1 + crash * steps // CRASHES if crash < CRASHES // 2 else rng.randint(1, steps)
        ended = _run(JOB, url, path, fatal, may_crash=True)
        assert ended.returncode in {0, CRASHED}, ended.stderr
        events.append(rows.slice(crash, 7))
        keyed.upsert(rows.slice(crash, 3))
    _run(JOB, url, path, 0)
    for table, options in ((events, {}), (keyed, {"mode": "changelog"})):
        expected = table.scan(
            columns=["id"], with_metadata=["_bucket", "_log_offset"], **options
        ).to_arrow()
        listed = [(row["_bucket"], row["_log_offset"], row["id"]) for row in expected.to_pylist()]
        assert sorted(_stored(path, table.name.split(".")[1])) == sorted(listed)


def _stored(path, name):
    with sqlite3.connect(path) as store:
        found = store.execute("select bucket, at, id from rows where name = ?", [name]).fetchall()
    store.close()
    return found


# Copies the history of a table into another one, and records its memory.
COPY = """
import json, os, sys
from pathlib import Path
import pyarrow as pa
import fluss

url, changes = sys.argv[1], int(sys.argv[2])

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

def watched(reader, marks):
    read = 0
    for batch in reader:
        read += batch.num_rows
        while len(marks) < 10 and read >= changes * (len(marks) + 1) / 10:
            marks.append(resident_mb())
        yield batch

with fluss.connect(url) as session:
    source, copy = session.table("source"), session.table("copy")
    marks = []
    reader = source.scan(mode="changelog").to_reader()
    report = copy.upsert(pa.RecordBatchReader.from_batches(reader.schema, watched(reader, marks)))
    print(json.dumps({"rows": report.rows, "resident_mb": marks}))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_changelog_replayed_into_an_empty_table_gives_the_source_in_flat_memory(
    cluster, database, session
):
    source, copy = _source(session), _empty_copy(session)
    assert sum(each.rows_max for each in source.scan(mode="changelog").splits()) >= CHANGES
    url = f"fluss://{cluster.bootstrap}/{database}"
    told = json.loads(_run(COPY, url, CHANGES).stdout)
    assert told["rows"] == 3 * KEYS + KEYS // 100  # only the second half of an update is written
    assert len(told["resident_mb"]) == 10
    assert copy.scan().to_arrow().sort_by("id").equals(source.scan().to_arrow().sort_by("id"))
    early, late = told["resident_mb"][2], max(told["resident_mb"][3:])
    assert late - early < GROWTH_MB_MAX, told["resident_mb"]


def _source(session):
    """Write one million inserts, two million updates (two changes each), and a few deletes."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
    table = session.create_table("source", schema, primary_key=["id"], buckets=4)
    for round_number in range(3):
        for start in range(0, KEYS, 100_000):
            ids = range(start, min(start + 100_000, KEYS))
            names = [f"name {each % 977} {round_number}" for each in ids]
            values = pa.array([each / 7 + round_number for each in ids])
            table.upsert(pa.table([pa.array(ids, pa.int64()), names, values], schema=schema))
    table.delete({"id": list(range(0, KEYS, 100))})
    return table


def _empty_copy(session):
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
    return session.create_table("copy", schema, primary_key=["id"], buckets=3)


def _run(script, *arguments, may_crash=False):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert may_crash or ended.returncode == 0, ended.stderr
    return ended
