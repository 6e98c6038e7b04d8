"""Moves the slowest modules to the front, so that no worker runs one alone at the end.

Workers get tests in the order of collection (`fix_schedule`). Modules that wait for servers to die
or for Spark, or that make environments and sites, are therefore spread over the first half; each
module stays whole, because its tests share what they started. The last ones are the unit tests,
which take milliseconds.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "proofs/test_spark_kills",
    "proofs/test_exactly_once_kills",
    "engines/spark/test_exactly_once",
    "examples/test_pipeline",
    "engines/spark/test_batch",
    "proofs/test_differential",
    "proofs/test_jobs",
    "engines/spark/test_traps",
    "cluster/lake/test_java_judges",
    "proofs/test_import",
    "engines/spark/test_guide",
    "proofs/test_object_storage",
    "engines/spark/test_streams",
    "proofs/test_crashes",
    "engines/spark/test_tiering",
    "cluster/adversity/test_read_failover",
    "cluster/many/test_killed_servers",
    "engines/spark/test_lake_histories",
    "engines/spark/test_tiering_kills",
    "cluster/lake/test_tiering_histories",
    "cluster/lake/test_tiering_kills",
    "proofs/test_repeatable_state",
    "cluster/test_failover",
    "cluster/adversity/test_write_failover",
    "cluster/testkit/test_cluster_keeper",
    "examples/test_notebooks",
    "cluster/testkit/test_java_cluster",
    "cluster/testkit/test_replicated",
    "cluster/testkit/test_fixtures",
    "cluster/testkit/test_kept_data",
    "cluster/server/test_lifecycle",
    "cluster/state/test_retention",
    "packaging/test_fresh_clone",
    "packaging/test_installs",
    "packaging/test_s3_store",
    "examples/test_types_of_programs",
    "examples/test_docs_site",
    "examples/test_docs_pages",
    "house/test_planted_bugs",
)
LONGEST_SET = frozenset(LONGEST)


@pytest.hookimpl(trylast=True)  # after tests that share a cluster were grouped
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the modules; tests on the embedded server keep their place."""
    long: dict[str, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        name = item.nodeid.partition(".py::")[0].removeprefix("tests/")
        if name not in LONGEST_SET or "[embedded" in item.nodeid:
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
