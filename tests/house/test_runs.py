"""The rules of a test run itself: no needless waits, and long tests are named."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.support.fix_processor_times import Times, unmarked_lines
from tests.support.fix_reruns import find_connection


def test_a_worker_does_not_wait_for_acknowledgements(pytestconfig: pytest.Config) -> None:
    if not hasattr(pytestconfig, "workerinput"):
        pytest.skip("tests run without pytest-xdist, so no worker waits")
    connection = find_connection(pytestconfig)
    assert connection is not None, "pytest-rerunfailures keeps its connection elsewhere"
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


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
