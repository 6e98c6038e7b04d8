"""The modules that take longest are begun early, so that no worker is alone with one in the end.

Workers of pytest-xdist are given tests in the order in which they were collected, fewer at a time
towards the end. What waits for servers to die or for Spark is therefore spread over the first half;
each module stays whole, because its tests share what they started.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "spark/test_kills",
    "connectors/test_once_kills",
    "spark/test_exactly_once",
    "examples/test_pipeline",
    "server/test_differential",
    "server/test_crashes",
    "conformance/test_read_failover",
    "server_real/test_keeper",
    "examples/test_notebooks",
    "server_real/test_lifecycle",
    "server_real/test_replicated",
    "server_real/test_fixtures",
    "server_real/test_kept_data",
    "server/test_lifecycle",
    "session/test_state_retention",
)


@pytest.hookimpl(trylast=True)  # after tests that share a cluster were brought together
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move them; what runs on the embedded server stays where that server is."""
    long: dict[str, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        name = next((each for each in LONGEST if f"tests/{each}.py" in item.nodeid), None)
        if name is None or "[embedded" in item.nodeid:
            others.append(item)
        else:
            long.setdefault(name, []).append(item)
    step = max(1, len(others) // (2 * max(1, len(long))))
    for place, name in enumerate(each for each in LONGEST if each in long):
        at = place * step + sum(
            len(long[each]) for each in LONGEST[: LONGEST.index(name)] if each in long
        )
        others[at:at] = long[name]
    items[:] = others
