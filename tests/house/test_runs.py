"""The rules of a test run itself: no needless waits, and long tests are named."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.support.fix_processor_times import Times, unmarked_lines
from tests.support.fix_reruns import OwnCounts


def test_a_worker_counts_reruns_itself(pytestconfig: pytest.Config) -> None:
    if not hasattr(pytestconfig, "workerinput"):
        pytest.skip("tests run without pytest-xdist, so there is no worker")
    assert isinstance(pytestconfig.failures_db, OwnCounts)  # type: ignore[attr-defined]


@pytest.mark.slow  # starts pytest with a worker
def test_a_worker_runs_a_test_again_for_the_listed_reason_only(tmp_path: Path) -> None:
    (tmp_path / "test_reruns.py").write_text(
        "runs = []\n\n"
        "def test_listed():\n    runs.append(1)\n    assert len(runs) == 3, 'no leader'\n\n"
        "def test_not_listed():\n    assert False, 'wrong rows'\n"
    )
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ("xdist", "rerunfailures", "tests.support.fix_reruns")
    options = [word for name in plugins for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", *options, "-n1", "-q", "--rootdir", str(tmp_path)]
    ended = subprocess.run(
        [*command, "-c", os.devnull, "--reruns=2", "--only-rerun=no leader", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed, 2 rerun" in ended.stdout, ended.stdout + ended.stderr


def test_the_garbage_collector_passes_over_the_collected_tests() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    garbage: list[object] = []
    garbage.append(garbage)
    assert any(each is garbage for each in gc.get_objects())


def test_a_test_that_makes_a_quick_run_slow_is_named() -> None:
    times = {
        "tests/unit/a.py::test_quick": Times(processor_s=0.9, clock_s=30),
        "tests/unit/a.py::test_long": Times(processor_s=1.1),
        "tests/unit/a.py::test_marked": Times(processor_s=9, is_slow=True),
        "tests/house/b.py::test_longer": Times(processor_s=2),
        "tests/cluster/c.py::test_with_servers": Times(processor_s=9),
    }
    assert list(unmarked_lines(times)) == [
        "2.0 s without the mark `slow`: tests/house/b.py::test_longer",
        "1.1 s without the mark `slow`: tests/unit/a.py::test_long",
    ]


def test_the_time_of_a_test_is_that_of_the_processor(tmp_path: Path) -> None:
    program = (
        "import time\nstart = time.process_time()\nwhile time.process_time() < start + 0.06: 0"
    )
    (tmp_path / "test_times.py").write_text(
        "import subprocess, sys, time\n\n"
        "def test_waits():\n    time.sleep(0.1)\n\n"
        f"def test_works():\n    exec({program!r})\n\n"
        f"def test_lets_work():\n    subprocess.run([sys.executable, '-c', {program!r}])\n"
    )
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ("-p", "no:cacheprovider", "-p", "tests.support.fix_processor_times")
    words = (*plugins, "--times", str(tmp_path / "times"), str(tmp_path))
    subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *words],
        cwd=ROOT, env=environment, check=True, capture_output=True,
    )  # fmt: skip
    found = {
        each["test"].rpartition("::")[2]: each
        for each in map(json.loads, (tmp_path / "times").read_text().splitlines())
    }
    assert found["test_waits"]["processor_s"] < 0.05
    assert found["test_waits"]["clock_s"] >= 0.1
    assert found["test_works"]["processor_s"] >= 0.05
    assert found["test_lets_work"]["processor_s"] >= 0.05
