"""The pipeline, interrupted at each step and started again: no row is lost or duplicated."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

import fluss
from fluss_server.local_cluster import LocalCluster
from tests.support.servers.local_spark import local_spark

FOLDER = Path(__file__).resolve().parents[2] / "examples/pipeline"
STEPS = ("ingest", "clean", "quarantine", "minutes", "history")
IS_PROOF = os.environ.get("FLUSS_TEST_PROFILE") == "exhaustive"
ROWS = 60
WAIT_S = 600
STARTS_MAX = 10

pytestmark = pytest.mark.timeout(900)  # many queries, and machines are shared


def module(name: str) -> ModuleType:
    """Import a program of the example by its path."""
    spec = importlib.util.spec_from_file_location(f"pipeline_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look
    spec.loader.exec_module(made)
    return made


clicks = module("clicks")


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The expected tables, computed in plain Python."""

    good: list[tuple[str, str, str, datetime, int]]
    bad: Counter[tuple[str, str, str]]
    minutes: dict[tuple[datetime, str], tuple[int, int]]


def plainly(folder: Path) -> Plain:
    good, bad, minutes = [], Counter(), defaultdict(lambda: (0, 0))
    for path in sorted(folder.glob("clicks-*")):
        for line in path.read_text().splitlines():
            reason, said = checked(line)
            if reason is not None:
                bad[path.name, line, reason] += 1
                continue
            at = datetime.fromisoformat(said["at"])
            spent = said["spent_ms"]
            good.append((said["id"], said["user"], said["page"], at, spent))
            key = (at.replace(second=0, microsecond=0), said["page"])
            minutes[key] = (minutes[key][0] + 1, minutes[key][1] + spent)
    return Plain(good=sorted(good), bad=bad, minutes=dict(minutes))


def checked(line: str) -> tuple[str | None, dict]:
    try:
        said = json.loads(line)
    except ValueError:
        return "no JSON of a click", {}
    for name in ("user", "page"):
        if name not in said:
            return f"no {name}", said
    if said["at"] == "yesterday":
        return "no time", said
    if not 0 <= said["spent_ms"] <= 24 * 60 * 60 * 1000:
        return "no time spent", said
    return None, said


def check(servers: str, work: Path, plain: Plain) -> None:
    """Compare every table, and the Parquet files, with the plain computation."""
    with fluss.connect(f"fluss://{servers}/clicks") as session:
        found = session.table("clicks").to_arrow().to_pylist()
        bad = session.table("quarantine").to_arrow().to_pylist()
        counted = session.table("minutes").to_arrow().to_pylist()
    assert sorted(tuple(each.values()) for each in found) == plain.good
    assert Counter(tuple(each.values()) for each in bad) == plain.bad
    assert {
        (each["minute"], each["page"]): (each["clicks"], each["spent_ms"]) for each in counted
    } == (plain.minutes)
    names = ["id", "user", "page", "at", "spent_ms"]
    # Files that Spark has not committed do not count; its list of those that do is in the folder.
    kept = local_spark().read.parquet(str(work / "history")).select(names).toArrow()
    assert sorted(tuple(each.values()) for each in kept.to_pylist()) == plain.good
    assert ds.dataset(work / "history", format="parquet", partitioning="hive").schema.names


def wait_for(happens) -> None:
    deadline = time.monotonic() + WAIT_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def to_its_end(start) -> None:
    """Run a step to its end, and restart it if a busy machine was too slow to start a worker."""
    for _ in range(STARTS_MAX):
        query = start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
        else:
            return
    raise AssertionError("no worker started in time")


def test_an_interrupted_step_continues_at_its_checkpoint(tmp_path):
    pipeline_module, ask = module("pipeline"), module("ask")
    source, work = tmp_path / "files", tmp_path / "work"
    clicks.write_files(source, files=4, rows=ROWS)
    with LocalCluster(tmp_path / "server", durability="none") as cluster:
        pipeline = pipeline_module.Pipeline(
            spark=local_spark(),
            servers=cluster.bootstrap_servers,
            database="clicks",
            source=source,
            work=work,
            files_per_batch=2,
            rows_per_batch=130,
        )
        pipeline.create_tables()
        pipeline.create_tables()  # which changes nothing
        for name in pipeline.steps:
            query = pipeline.start(name)
            begun = work / "checkpoints" / name / "offsets" / "0"
            wait_for(begun.exists)
            query.stop()  # in the middle of its first micro-batch, or in the next
            to_its_end(lambda name=name: pipeline.start(name))
        half = plainly(source)
        check(cluster.bootstrap_servers, work, half)
        assert sum(half.bad.values()) > 3

        clicks.write_files(source, files=2, rows=ROWS, first=4)
        for name in pipeline.steps:
            to_its_end(lambda name=name: pipeline.start(name))
        whole = plainly(source)
        check(cluster.bootstrap_servers, work, whole)
        pages = {page: count for page, count, _ in ask.by_page(cluster.bootstrap_servers)}
        assert pages == Counter(page for _, _, page, _, _ in whole.good)
        assert ask.busiest(cluster.bootstrap_servers).height == 3


@pytest.mark.skipif(not IS_PROOF, reason="a Spark of its own for each kill: ./dev prove pipeline")
@pytest.mark.slow
def test_a_pipeline_that_is_killed_is_started_again(tmp_path):
    source, work = tmp_path / "files", tmp_path / "work"
    clicks.write_files(source, files=6, rows=ROWS)
    with LocalCluster(tmp_path / "server", durability="none") as cluster:
        servers = cluster.bootstrap_servers
        command = [sys.executable, str(FOLDER / "pipeline.py"), f"fluss://{servers}"]
        command += [str(source), str(work), "--files-per-batch", "2"]
        for name in STEPS:
            running = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Spark's Java and its workers die with it
            )
            begun = work / "checkpoints" / name / "offsets" / "0"
            wait_for(lambda begun=begun, running=running: begun.exists() or running.poll())
            assert running.poll() is None, "it ended before it could be killed"
            os.killpg(running.pid, signal.SIGKILL)
            assert running.wait() == -signal.SIGKILL
        subprocess.run(command, check=True, capture_output=True)
        check(servers, work, plainly(source))
