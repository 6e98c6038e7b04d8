"""The pipeline, interrupted at each step and started again: no row is lost or duplicated.

With a lake, the logs expire as soon as they are copied, and queries still see every row once.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

import fluss
from fluss_server.local_cluster import LocalCluster
from tests.support.servers.local_spark import local_spark

FOLDER = Path(__file__).resolve().parents[2] / "examples/pipeline"
TABLES = ("raw", "clicks", "quarantine", "minutes")
STEPS = ("ingest", "clean", "quarantine", "minutes", "history")
IS_PROOF = os.environ.get("FLUSS_TEST_PROFILE") == "exhaustive"
ONLY_PROOF = pytest.mark.skipif(
    not IS_PROOF, reason="a Spark of its own for each kill: ./dev prove pipeline"
)
# Without a lake the pipeline is the same, less one step: the long form runs that, too.
LAKES = (pytest.param(False, id="no lake", marks=ONLY_PROOF), pytest.param(True, id="lake"))
ROWS = 60
WAIT_S = 600
STARTS_MAX = 10
KILLS = 3

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

    raw: Counter[tuple[str, str]]
    good: list[tuple[str, str, str, datetime, int]]
    bad: Counter[tuple[str, str, str]]
    minutes: dict[tuple[datetime, str], tuple[int, int]]


def plainly(folder: Path) -> Plain:
    raw, good, bad, minutes = Counter(), [], Counter(), defaultdict(lambda: (0, 0))
    for path in sorted(folder.glob("clicks-*")):
        for line in path.read_text().splitlines():
            raw[path.name, line] += 1
            reason, said = checked(line)
            if reason is not None:
                bad[path.name, line, reason] += 1
                continue
            at = datetime.fromisoformat(said["at"])
            spent = said["spent_ms"]
            good.append((said["id"], said["user"], said["page"], at, spent))
            key = (at.replace(second=0, microsecond=0), said["page"])
            minutes[key] = (minutes[key][0] + 1, minutes[key][1] + spent)
    return Plain(raw=raw, good=sorted(good), bad=bad, minutes=dict(minutes))


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
    check_tables(servers, plain)
    names = ["id", "user", "page", "at", "spent_ms"]
    # Files that Spark has not committed do not count; its list of those that do is in the folder.
    kept = local_spark().read.parquet(str(work / "history")).select(names).toArrow()
    assert sorted(tuple(each.values()) for each in kept.to_pylist()) == plain.good
    assert ds.dataset(work / "history", format="parquet", partitioning="hive").schema.names


def check_tables(servers: str, plain: Plain, *, lake: str | None = None) -> None:
    """Compare every table with the plain computation.

    Args:
        servers: The cluster.
        plain: What is expected.
        lake: Which rows are read, as `scan` has it.
    """
    rows = {}
    with fluss.connect(f"fluss://{servers}/clicks") as session:
        for name in TABLES:
            rows[name] = session.table(name).scan(lake=lake).to_arrow().to_pylist()
    assert Counter(tuple(each.values()) for each in rows["raw"]) == plain.raw
    assert sorted(tuple(each.values()) for each in rows["clicks"]) == plain.good
    assert Counter(tuple(each.values()) for each in rows["quarantine"]) == plain.bad
    counted = [tuple(each.values()) for each in rows["minutes"]]
    assert sorted(counted) == sorted((*key, *found) for key, found in plain.minutes.items())


def check_lake(servers: str, plain: Plain) -> None:
    """Compare the lake alone, when all is copied; what it has is no longer in the logs."""
    check_tables(servers, plain, lake="only")
    with fluss.connect(f"fluss://{servers}/clicks") as session:
        for name in ("raw", "clicks", "quarantine"):
            wait_for(lambda name=name: session.table(name).scan(lake="off").count() == 0)


def fluss_tier(servers: str) -> list[str]:
    """The command that copies all rows now, in a process beside the pipeline."""
    command = [str(Path(sys.executable).with_name("fluss")), "--url", f"fluss://{servers}", "tier"]
    return [*command, "--now", *(word for name in TABLES for word in ("-t", f"clicks.{name}"))]


def killed(command: list[str], begun: Callable[[], object]) -> None:
    """Start a process in the background, and kill it and its children when it has begun."""
    running = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Spark's Java and its workers die with it
    )
    wait_for(lambda: begun() or running.poll() is not None)
    assert running.poll() is None, "it ended before it could be killed"
    os.killpg(running.pid, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL


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


def test_a_cluster_without_a_lake(tmp_path):
    pipeline_module, ask = module("pipeline"), module("ask")
    with LocalCluster(in_thread=True) as cluster:
        servers = cluster.bootstrap_servers
        pipeline = pipeline_module.Pipeline(
            spark=None, servers=servers, database="clicks", source=tmp_path, work=tmp_path
        )
        pipeline.create_tables()
        assert not pipeline.has_lake
        minute = {"minute": [datetime(2026, 3, 1, tzinfo=UTC)], "page": ["/"], "clicks": [3]}
        with fluss.connect(pipeline.url) as session:
            session.upsert("minutes", {**minute, "spent_ms": [5_000]})
        assert ask.by_page(servers) == [("/", 3, 5.0)]
        assert set(ask.sources(servers).values()) == {"it has no lake"}


@pytest.mark.parametrize("lake", LAKES)
def test_an_interrupted_step_continues_at_its_checkpoint(tmp_path, lake):
    pipeline_module, ask = module("pipeline"), module("ask")
    source, work = tmp_path / "files", tmp_path / "work"
    clicks.write_files(source, files=4, rows=ROWS)
    folder = tmp_path / "server"
    with LocalCluster(folder, durability="none", lake=lake or None, in_thread=True) as cluster:
        servers = cluster.bootstrap_servers
        pipeline = pipeline_module.Pipeline(
            spark=local_spark(),
            servers=servers,
            database="clicks",
            source=source,
            work=work,
            files_per_batch=2,
            rows_per_batch=130,
            keep_log="1s" if lake else None,
        )
        pipeline.create_tables()
        pipeline.create_tables()  # which changes nothing
        assert pipeline.has_lake is lake
        for name in pipeline.steps:
            query = pipeline.start(name)
            begun = work / "checkpoints" / name / "offsets" / "0"
            wait_for(begun.exists)
            query.stop()  # in the middle of its first micro-batch, or in the next
            to_its_end(lambda name=name: pipeline.start(name))
        half = plainly(source)
        check(servers, work, half)
        assert sum(half.bad.values()) > 3
        if lake:
            killed(fluss_tier(servers), lambda: files_of_lake(tmp_path / "server", "*.parquet"))
            check_tables(servers, half)
            copy_all(pipeline)
            check_lake(servers, half)

        clicks.write_files(source, files=2, rows=ROWS, first=4)
        for name in pipeline.steps:
            to_its_end(lambda name=name: pipeline.start(name))
        whole = plainly(source)
        check(servers, work, whole)
        check_answers(ask, servers, whole)
        sources = ask.sources(servers)
        assert all(("from the lake" in each) is lake for each in sources.values())
        if lake:
            rows = len(whole.good) - len(half.good)
            assert f" {len(half.good)} rows" in sources["clicks"]
            assert sources["clicks"].endswith(f"from the log: at most {rows} rows")
            copy_all(pipeline)
            check_lake(servers, whole)
            check_answers(ask, servers, whole)


def copy_all(pipeline) -> None:
    _, errors = pipeline.copy(now=True)
    assert not errors


def files_of_lake(server: Path, pattern: str) -> list[Path]:
    return list((server / "iceberg").rglob(pattern))


def check_answers(ask: ModuleType, servers: str, plain: Plain) -> None:
    pages = {page: count for page, count, _ in ask.by_page(servers)}
    assert pages == Counter(page for _, _, page, _, _ in plain.good)
    hours = {hour: count for hour, count, _ in ask.by_hour(servers)}
    assert hours == Counter(f"{at:%Y-%m-%d %H:00}" for _, _, _, at, _ in plain.good)
    assert ask.busiest(servers).height == 3
    spent = Counter()
    for _, user, _, _, spent_ms in plain.good:
        spent[user] += spent_ms
    assert ask.longest(servers, users=1)["user"].to_list() == [spent.most_common(1)[0][0]]


@ONLY_PROOF
@pytest.mark.slow
@pytest.mark.parametrize("lake", LAKES)
def test_a_pipeline_that_is_killed_is_started_again(tmp_path, lake):
    source, work = tmp_path / "files", tmp_path / "work"
    clicks.write_files(source, files=6, rows=ROWS)
    with LocalCluster(tmp_path / "server", durability="none", lake=lake or None) as cluster:
        servers = cluster.bootstrap_servers
        command = [sys.executable, str(FOLDER / "pipeline.py"), f"fluss://{servers}"]
        command += [str(source), str(work), "--files-per-batch", "2"]
        command += ["--keep-log", "1s"] if lake else []
        for name in STEPS:
            begun = work / "checkpoints" / name / "offsets" / "0"
            killed(command, begun.exists)
        # While files are written, and while the first of them are committed.
        for pattern in ("*.parquet", "snap-*.avro") if lake else ():
            killed(command, lambda pattern=pattern: files_of_lake(tmp_path / "server", pattern))
        subprocess.run(command, check=True, capture_output=True)
        whole = plainly(source)
        check(servers, work, whole)
        if lake:
            check_tables(servers, whole, lake="only")


@ONLY_PROOF
@pytest.mark.slow
def test_answers_while_it_runs_and_is_killed(tmp_path):
    ask = module("ask")
    source, work = tmp_path / "files", tmp_path / "work"
    random_ = random.Random(11)
    with LocalCluster(tmp_path / "server", durability="none", lake=True) as cluster:
        servers = cluster.bootstrap_servers
        command = [sys.executable, str(FOLDER / "pipeline.py"), f"fluss://{servers}"]
        command += [str(source), str(work), "--files-per-batch", "2", "--follow"]
        clicks.write_files(source, files=2, rows=ROWS)
        killed(command, lambda: files_of_lake(tmp_path / "server", "snap-*.avro"))
        answers = Answers(ask, servers)
        for first in range(2, 2 + 2 * KILLS, 2):
            clicks.write_files(source, files=2, rows=ROWS, first=first)
            killed(command, answers.after(rows=random_.randrange(1, ROWS)))
        output = tmp_path / "output"
        with output.open("w") as errors, subprocess.Popen(command, stderr=errors) as running:
            wait_for(lambda: answers.now() == len(plainly(source).good))
            # A killed worker has its tables for two minutes.
            wait_for(lambda: ask.sources(servers)["clicks"].endswith(" at most 0 rows"))
            running.send_signal(signal.SIGINT)
            assert running.wait(WAIT_S) == 1
        assert "Stopped; run the same command" in output.read_text()
        whole = plainly(source)
        subprocess.run(command[:-1], check=True, capture_output=True)
        check(servers, work, whole)
        check_tables(servers, whole, lake="only")
        check_answers(ask, servers, whole)


@dataclass(kw_only=False)
class Answers:
    """What queries answer while the pipeline runs: never fewer clicks than before."""

    ask: ModuleType
    servers: str
    clicks: int = 0

    def now(self) -> int:
        """Ask how many clicks there are."""
        found = sum(each for _, each, _ in self.ask.by_hour(self.servers))
        assert found >= self.clicks
        self.clicks = found
        return found

    def after(self, *, rows: int) -> Callable[[], bool]:
        """Whether there are so many clicks more than at present."""
        least = self.now() + rows
        return lambda: self.now() >= least
