"""Appending to logs so that a task that is repeated writes its rows once: for engines that retry.

Rule: `plan*.py` decides who claims what and what has been written; decision 0006 has the protocol.
"""

from fluss.exactly_once.delivery import (
    Receipt,
    Task,
    append_exactly_once,
    bound_table_id,
    commit_once,
    delivery_caveats,
    end_run,
    keeps_order,
)

__all__ = [
    "Receipt",
    "Task",
    "append_exactly_once",
    "bound_table_id",
    "commit_once",
    "delivery_caveats",
    "end_run",
    "keeps_order",
]
