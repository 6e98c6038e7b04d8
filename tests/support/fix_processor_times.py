"""Measures how much processor time each test uses, which is the same on a busy machine.

Counted is the time of the test process, and of the programs that a test started and waited for.
Servers and Sparks that outlive a test are not part of it. At the end of a run, tests without
servers that use more than a second and are not marked `slow` are listed, so that
`./dev test quick` stays quick. `--times FILE` prints the files that use most, and writes one line
of JSON for each test.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

UNMARKED_S_MAX = 1.0
WITHOUT_SERVERS = ("tests/unit/", "tests/house/")
FILES_MAX = 30
_USED = pytest.StashKey[float]()


@dataclass(slots=True)
class Times:
    """What one test took, its setup and teardown included.

    Args:
        processor_s: Processor time of the test process and of programs that ended.
        clock_s: What the clock shows, with waits for servers and for other processes.
        is_slow: It has the mark `slow`.
        worker: The process of pytest-xdist that ran it.
    """

    processor_s: float = 0.0
    clock_s: float = 0.0
    is_slow: bool = False
    worker: str = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--times`."""
    parser.addoption("--times", metavar="FILE", help="write the processor time of each test")


def pytest_configure(config: pytest.Config) -> None:
    """Collect the times in the main process, which receives the reports of all workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the setup."""
    return (yield from _measure(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the test."""
    return (yield from _measure(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the teardown."""
    return (yield from _measure(item))


def _measure(item: pytest.Item) -> Generator[None, object, object]:
    before = _processor_s()
    try:
        return (yield)
    finally:
        item.stash[_USED] = _processor_s() - before


def _processor_s() -> float:
    if resource is None:
        return time.process_time()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, object]:
    """Let the report carry the time to the main process."""
    report = yield  # pytest-xdist sends all attributes of a report
    report.processor_s = item.stash.get(_USED, 0.0)  # type: ignore[attr-defined]
    return report


class _Collector:
    def __init__(self) -> None:
        self._times: dict[str, Times] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        times = self._times.setdefault(report.nodeid, Times())
        times.processor_s += getattr(report, "processor_s", 0.0)
        times.clock_s += report.duration
        times.is_slow = "slow" in report.keywords
        times.worker = getattr(report, "worker_id", "")

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        file = config.getoption("--times")
        lines = [*unmarked_lines(self._times), *(file_lines(self._times) if file else ())]
        if lines:
            terminalreporter.section("processor time")
        for line in lines:
            terminalreporter.line(line)
        if file:
            Path(file).write_text("".join(json_lines(self._times)))


def unmarked_lines(times: Mapping[str, Times]) -> Iterator[str]:
    """Name the tests that make `./dev test quick` slow, the longest first."""
    for name, taken in sorted(times.items(), key=lambda pair: -pair[1].processor_s):
        is_quick = name.startswith(WITHOUT_SERVERS) and not taken.is_slow
        if is_quick and taken.processor_s > UNMARKED_S_MAX:
            yield f"{taken.processor_s:.1f} s without the mark `slow`: {name}"


def file_lines(times: Mapping[str, Times]) -> Iterator[str]:
    """Name the files that use most of the processor: their time, the clock's, their tests."""
    files: defaultdict[str, list[Times]] = defaultdict(list)
    for name, taken in times.items():
        files[name.partition("::")[0]].append(taken)
    sums = {
        name: (sum(each.processor_s for each in of), sum(each.clock_s for each in of), len(of))
        for name, of in files.items()
    }
    yield f"{'processor':>10} {'clock':>9} {'tests':>6}"
    listed = sorted(sums.items(), key=lambda pair: -pair[1][0])
    for name, (processor_s, clock_s, count) in listed[:FILES_MAX]:
        yield f"{processor_s:>8.1f} s {clock_s:>7.1f} s {count:>6}  {name}"
    processor_s, clock_s, count = (sum(of) for of in zip(*sums.values(), strict=True))
    yield f"{processor_s:>8.1f} s {clock_s:>7.1f} s {count:>6}  in {len(sums)} files"


def json_lines(times: Mapping[str, Times]) -> Iterator[str]:
    """Write each test as one line of JSON."""
    for name, taken in times.items():
        yield json.dumps({"test": name, **asdict(taken)}) + "\n"
