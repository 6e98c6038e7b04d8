"""What must be in the tables when the killing is over: every row once, and some twice without it.

The log `exact` and the primary-key table `keyed` were written to exactly once, the log `naive`
beside them at least once: its duplicates show that somebody was killed where it hurts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def assert_written_once(ids: Callable[[str], list[int]], rows: int, *, what: str) -> None:
    """Compare what the three tables hold with the rows that were written.

    Args:
        ids: The ids in a table, sorted, as often as they are there.
        rows: How many rows were written, with the ids from 0 on.
        what: Who was killed how often, for the report.
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
    assert len(naive) > rows, "nobody was killed where it hurts"
