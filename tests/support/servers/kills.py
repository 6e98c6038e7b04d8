"""Checks tables after processes were killed: exactly-once tables have every row once.

The log `exact` and the primary-key table `keyed` were written exactly once, the log `naive` at
least once: its duplicates prove that processes were killed between a write and its acknowledgement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def assert_written_once(ids: Callable[[str], list[int]], rows: int, *, what: str) -> None:
    """Compare what the three tables hold with the rows that were written.

    Args:
        ids: The ids in a table, sorted, with duplicates.
        rows: How many rows were written, with the ids from 0 on.
        what: Which processes were killed how often, for the report.
    """
    expected = list(range(rows))
    exact, keyed, naive = ids("exact"), ids("keyed"), ids("naive")
    sys.stderr.write(
        f"\nkills: {what}; {rows} rows: exact {len(exact)}, keyed {len(keyed)}, "
        f"naive {len(naive)}\n"
    )
    assert exact == expected
    assert keyed == expected
    assert sorted(set(naive)) == expected
    assert len(naive) > rows, "no process was killed at a harmful moment"
