"""Primary-key tables as Arrow: their state at one offset of the log, and the changes up to it.

Rule: exact or refused. A state is what a replay of the changelog up to the pinned offset gives, by
whichever way it was read (`state_planner` asks and `plan_state` chooses, `state_at_offset` carries
it out); changes carry Fluss's own names (`changelog`). Reading runs on the caller's thread and
crosses to the engine for bytes only.
"""

from fluss.state.changelog import (
    ChangeColumns,
    binlog_batches,
    binlog_schema,
    changelog_batches,
    changelog_schema,
)
from fluss.state.state_at_offset import read_state
from fluss.state.state_planner import StatePlan, plan_state, plan_states

__all__ = [
    "ChangeColumns",
    "StatePlan",
    "binlog_batches",
    "binlog_schema",
    "changelog_batches",
    "changelog_schema",
    "plan_state",
    "plan_states",
    "read_state",
]
