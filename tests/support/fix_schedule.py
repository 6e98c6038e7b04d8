"""Gives tests to the workers of pytest-xdist by file, and Spark's and Java's to one worker each.

pytest-xdist gives an eighth of all tests that are left to one worker. Where those are long
ones, such as empty environments that are made and installed into, the other workers have
nothing left to do for minutes. Here a worker gets the tests of one file, in the order of the
collection, whenever it has finished what it had; so module fixtures are still started once.

What is expensive to start is started in one worker: Spark takes 12 s of processor time until it has
read its first table. Its worker does all of Spark's tests first, because they take three quarters
of the time of a whole run, and the worker of Java does those of Java first. Another worker takes
such a file only if nothing else is left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling

# A file with more tests is given out in pieces.
GROUP_MAX = 100
# A worker begins a test when it knows the next one, so this many are always with it.
AHEAD = 2
SPARK = re.compile(r"tests/engines/spark/|\[spark-|tests/examples/test_pipeline")
ORACLE = re.compile(r"tests/java/|/test_frames_found_by_java")
WORKERS_OF_SPARK = 1
WORKERS_OF_ORACLE = 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScheduling | None:
    """Schedule by file unless another `--dist` is asked for."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScheduling

    class ByFile(LoadScheduling):
        def check_schedule(self, node: Any, duration: float = 0) -> None:  # noqa: ARG002 - of the base
            if node.shutting_down:
                return
            if self.pending:
                self._send_tests(node, 0)
            if not self.pending:
                node.shutdown()  # after the tests that it has

        def _send_tests(self, node: Any, num: int) -> None:  # noqa: ARG002 - of the base
            given: list[int] = []
            assert self.collection is not None
            while self.pending and len(self.node2pending[node]) + len(given) <= AHEAD:
                place = self.nodes.index(node)
                chosen = next_group(self.pending, self.collection, place, len(self.nodes))
                at = self.pending.index(chosen[0])
                del self.pending[at : at + len(chosen)]
                given += chosen
            if given:
                self.node2pending[node].extend(given)
                node.send_runtest_some(given)

    return ByFile(config, log)


def next_group(
    pending: Sequence[int], names: Sequence[str], worker: int, workers: int
) -> list[int]:
    """Choose what a worker does next: the first file of Spark or Java, one that suits it, or any.

    Args:
        pending: The numbers of tests that no worker has, in their order.
        names: The names of all tests.
        worker: The number of the worker.
        workers: How many there are.
    """
    begin = next(
        (at for at, each in enumerate(pending) if _is_first(names[each], worker, workers)), None
    )
    if begin is None:
        suits = (at for at, each in enumerate(pending) if _suits(names[each], worker, workers))
        begin = next(suits, 0)
    group = [pending[begin]]
    for each in pending[begin + 1 : begin + GROUP_MAX]:
        if each != group[-1] + 1 or _key(names[each]) != _key(names[group[0]]):
            break
        group.append(each)
    return group


def _is_first(name: str, worker: int, workers: int) -> bool:
    if worker < WORKERS_OF_SPARK and SPARK.search(name):
        return True
    # Else they would be left for the end, when no worker has anything else to do.
    return worker >= workers - WORKERS_OF_ORACLE and name.startswith("tests/java/")


def _suits(name: str, worker: int, workers: int) -> bool:
    if SPARK.search(name):
        return worker < WORKERS_OF_SPARK
    return ORACLE.search(name) is None or worker >= workers - WORKERS_OF_ORACLE


def _key(name: str) -> tuple[str, bool]:
    return name.partition("::")[0], SPARK.search(name) is not None
