"""The fixtures `oracle` and `compare`, and the line that says how much was compared with Java.

One JVM per test process, started for the first test that uses it. Without Java the tests are
skipped with the remedy, unless FLUSS_TEST_REQUIRE_REAL=1 requires it. Under xdist each worker
counts, and the counts are added up at the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fluss.model.types.data_type import DataType
from tests.support.differential.oracle import FLUSS_VERSION, Oracle, OracleUnavailableError, start
from tests.support.generators.seeded_values import exact

_SHOWN_MAX = 3
_NO_TYPE = "other"


class Comparison:
    """Compares answers with Java's, counts the values, and fails with the first differences."""

    def __init__(self) -> None:
        self.counted: Counter[tuple[str, str]] = Counter()
        self.differences = 0

    def rows(
        self,
        kind: str,
        types: Sequence[DataType],
        rows: Sequence[Sequence[Any]],
        *,
        ours: Sequence[Any],
        java: Sequence[Any],
    ) -> None:
        """One answer per row; every column of every row counts as a value."""
        for data_type in types:
            self.counted[kind, data_type.root] += len(rows)
        title = f"{kind} of ({', '.join(map(str, types))})"
        self._must_agree(title, rows, ours, java)

    def values(
        self,
        kind: str,
        data_type: DataType,
        values: Sequence[Any],
        *,
        ours: Sequence[Any],
        java: Sequence[Any],
    ) -> None:
        """One answer per value of one type."""
        self.counted[kind, data_type.root] += len(values)
        self._must_agree(f"{kind} of {data_type}", values, ours, java)

    def others(
        self, kind: str, given: Sequence[Any], *, ours: Sequence[Any], java: Sequence[Any]
    ) -> None:
        """One answer per thing that has no data type: a document, a hash, an error code."""
        self.counted[kind, _NO_TYPE] += len(given)
        self._must_agree(kind, given, ours, java)

    def _must_agree(
        self, title: str, given: Sequence[Any], ours: Sequence[Any], java: Sequence[Any]
    ) -> None:
        assert len(ours) == len(java) == len(given), f"{title}: {len(ours)}, {len(java)} answers"
        found = [
            (what, mine, theirs)
            for what, mine, theirs in zip(given, ours, java, strict=True)
            if exact(mine) != exact(theirs)
        ]
        self.differences += len(found)
        if found:
            shown = "\n".join(_told(*each) for each in found[:_SHOWN_MAX])
            pytest.fail(f"{title}: {len(found)} of {len(given)} differ from Java.\n{shown}")


def _told(what: Any, ours: Any, java: Any) -> str:
    if isinstance(ours, bytes) and isinstance(java, bytes):
        pairs = zip(ours, java, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(java)))
        return f"  of   {what!r}, from byte {at}\n  ours {ours.hex()}\n  Java {java.hex()}"
    return f"  of   {what!r}\n  ours {ours!r}\n  Java {java!r}"


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Fluss's own Java classes, ready to answer."""
    try:
        running = start()
    except OracleUnavailableError as error:
        if os.environ.get("FLUSS_TEST_REQUIRE_REAL") == "1":
            pytest.fail(f"FLUSS_TEST_REQUIRE_REAL=1, but: {error}")
        pytest.skip(str(error))
    with running:
        assert running.fluss_version == FLUSS_VERSION
        yield running


@pytest.fixture
def compare(pytestconfig: pytest.Config) -> Comparison:
    """The comparison of this test run; see `Comparison`."""
    return pytestconfig.stash[_COMPARISON]


_COMPARISON = pytest.StashKey[Comparison]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COMPARISON] = Comparison()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "oracle" in getattr(item, "fixturenames", ()):
            item.add_marker("oracle")


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # this process is an xdist worker
        mine = session.config.stash[_COMPARISON]
        counted = [(kind, root, count) for (kind, root), count in mine.counted.items()]
        output["oracle"] = (counted, mine.differences)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    total = node.config.stash[_COMPARISON]
    counted, differences = getattr(node, "workeroutput", {}).get("oracle", ((), 0))
    for kind, root, count in counted:
        total.counted[kind, root] += count
    total.differences += differences


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    total = config.stash[_COMPARISON]
    if not total.counted:
        return
    kinds = {kind for kind, _ in total.counted}
    by_root: Counter[str] = Counter()
    for (_, root), count in total.counted.items():
        by_root[root] += count
    terminalreporter.section("oracle")
    terminalreporter.line(
        f"oracle: {total.counted.total()} values of {len(kinds)} kinds compared with "
        f"Java {FLUSS_VERSION}, {total.differences} differences"
    )
    roots = ", ".join(f"{root} {count}" for root, count in sorted(by_root.items()))
    terminalreporter.line(f"oracle: by type: {roots}")
