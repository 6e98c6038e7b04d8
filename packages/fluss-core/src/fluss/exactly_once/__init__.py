"""Appending to logs so that a task that is repeated writes its rows once: for engines that retry.

Rule: `plan*.py` decides who claims what and what has been written; decision 0006 has the protocol.
"""

from fluss.exactly_once.delivery import (
    append_exactly_once,
    bound_table_id,
    commit_once,
    delivery_caveats,
    end_run,
    keeps_order,
)
from fluss.exactly_once.plan_claims import Receipt, Task

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
