"""A worker that is killed at a step of a round: nothing is lost, nothing is there twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid

import pytest

from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import one_round

# The process kills itself where the function is called.
STEPS = {
    "files are written": "prepare_offsets",
    "the server has the offsets": "commit_change",
    "the lake has the snapshot": "_report",
    "the cluster was notified": "Committed",
}
# One process imports all of it, which takes most of a second; each step is killed in a fork of it.
WORKERS = """
import os, signal, sys
import pyiceberg.catalog.sql, pyiceberg.io.pyarrow
import fluss
from fluss_lake.tiering import round_driver, service

def killed(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)

def run(url, name, step):
    getattr(round_driver, step)  # the step exists
    setattr(round_driver, step, killed)
    with fluss.connect(url) as session:
        service.tier(name, cluster=session, now=True)

for line in sys.stdin:
    child = os.fork()
    if not child:
        run(*line.split())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
pytestmark = pytest.mark.slow  # a process imports all of it


@pytest.fixture(scope="module")
def killed_at(tmp_path_factory):
    """A function that runs a round in a process, and returns its exit code and what it wrote."""
    log = tmp_path_factory.mktemp("workers") / "errors.txt"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", WORKERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):

        def run(*words):
            print(*words, file=process.stdin, flush=True)
            return process.stdout.readline().strip(), log.read_text()

        yield run
        process.kill()  # a test that failed may have left it in the middle of a round


def put(table, ids, n):
    rows = {"id": list(ids), "n": [n] * len(ids)}
    (table.upsert if table.primary_key else table.append)(rows)


def rows_of(table, lake):
    return table.scan(lake=lake, with_metadata=["_bucket"]).to_arrow().sort_by("id")


@pytest.mark.parametrize("key", [None, "id"], ids=["log", "state"])
def test_rounds_go_on_after_a_kill(session, lake_cluster, killed_at, key):
    how = {"primary_key": key} if key else {}
    name = f"kill_{uuid.uuid4().hex[:8]}"
    session.create_table(name, {"id": "BIGINT", "n": "BIGINT"}, buckets=2, properties=LAKE, **how)
    table = session.table(name)
    url = f"fluss://{lake_cluster.bootstrap_servers}"
    for number, step in enumerate(STEPS.values()):
        put(table, range(number * 10, number * 10 + (15 if key else 10)), number)
        code, errors = killed_at(url, table.name, step)
        assert code == str(-signal.SIGKILL), errors
        assert rows_of(table, "union") == rows_of(table, "off")
        if number % 2:
            put(table, [number * 10 + 1] if key else [1_000 + number], 9)
        one_round(table)
        assert rows_of(table, "only") == rows_of(table, "union") == rows_of(table, "off")
    assert one_round(table).snapshot_id is None
