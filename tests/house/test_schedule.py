"""Workers of a run get whole files, each test once; Spark and Java start in one each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fix_schedule import GROUP_MAX, next_group, pytest_xdist_make_scheduler

WORKERS = 4


class Config:
    """Options of a run with workers."""

    stash: Any = None

    def __init__(self, dist: str) -> None:
        self._options = {"dist": dist, "tx": [f"{WORKERS}*popen"], "maxschedchunk": None}

    def getoption(self, name: str) -> Any:
        return self._options[name]

    def getvalue(self, name: str) -> Any:
        return self._options[name]


class Worker:
    """A worker that runs a test once it knows the next one, as those of pytest-xdist do."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.shutting_down = False
        self.queue: list[int] = []
        self.ran: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def run(names: list[str]) -> list[Worker]:
    """Run tests of these names in four workers, one after the other."""
    config: Any = Config("load")
    scheduler: Any = pytest_xdist_make_scheduler(config, None)
    workers: list[Any] = [Worker() for _ in range(WORKERS)]
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, names)
    scheduler.schedule()
    while ready := [each for each in workers if len(each.queue) > (not each.shutting_down)]:
        for worker in ready:
            worker.ran.append(worker.queue.pop(0))
            scheduler.mark_test_complete(worker, worker.ran[-1])
    assert scheduler.tests_finished
    return workers


@pytest.mark.parametrize("count", [0, 1, 3, 7, 8, 9, 50, 1_000])
@pytest.mark.parametrize("per_file", [1, 2, 7, 300])
def test_every_test_runs_once(count: int, per_file: int) -> None:
    names = [f"tests/a/test_{at // per_file}.py::test_{at}" for at in range(count)]
    ran = [index for worker in run(names) for index in worker.ran]
    assert sorted(ran) == list(range(count))


def test_every_test_runs_once_where_only_some_workers_suit() -> None:
    names = [f"tests/engines/spark/test_{at // 5}.py::test_{at}" for at in range(40)]
    assert sorted(index for worker in run(names) for index in worker.ran) == list(range(40))


def test_spark_starts_in_one_worker_while_there_is_other_work() -> None:
    spark = [f"tests/engines/spark/test_{at // 5}.py::test_{at}" for at in range(40)]
    java = [f"tests/java/oracle/test_{at // 5}.py::test_{at}" for at in range(40)]
    others = [f"tests/unit/test_{at // 5}.py::test_{at}" for at in range(400)]
    names = [*spark, *java, *others]
    of_spark, of_java = set(range(40)), set(range(40, 80))
    for place, worker in enumerate(run(names)):
        assert bool(of_spark & {*worker.ran}) == (place == 0), place
        assert bool(of_java & {*worker.ran}) == (place == WORKERS - 1), place
        assert worker.ran == sorted(worker.ran), "in the order of the collection"


@pytest.mark.parametrize(("folder", "place"), [("engines/spark", 0), ("java/oracle", -1)])
def test_the_worker_of_spark_and_that_of_java_do_their_tests_first(folder: str, place: int) -> None:
    first = [f"tests/unit/test_{at // 5}.py::test_{at}" for at in range(400)]
    last = [f"tests/{folder}/test_{at // 5}.py::test_{at}" for at in range(40)]
    ran = run([*first, *last])[place].ran
    assert ran[:40] == list(range(400, 440))
    assert ran[40:], "and then others"


def test_a_group_is_one_file_or_a_piece_of_it() -> None:
    names = ["tests/unit/a.py::x", "tests/unit/a.py::y", "tests/unit/b.py::x"]
    assert next_group([0, 1, 2], names, 0, 1) == [0, 1]
    assert next_group([0, 2], names, 0, 1) == [0]
    many = ["tests/unit/a.py::x"] * (2 * GROUP_MAX)
    assert next_group(range(2 * GROUP_MAX), many, 0, 1) == list(range(GROUP_MAX))


def test_another_distribution_can_be_asked_for() -> None:
    config: Any = Config("loadgroup")
    assert pytest_xdist_make_scheduler(config, None) is None
