"""Primary-key tables as Arrow: their state at one offset of the log, and the changes up to it.

Rule: exact or refused. A state equals a replay of the changelog up to the pinned offset, whatever
the strategy (`state_planner` collects facts, `plan_state` chooses, `state_at_offset` reads);
changes carry Fluss's own names (`changelog`). Reading runs on the caller's thread and crosses to
the engine for bytes only.
"""

from fluss.state.changelog import (
    ChangeColumns,
    binlog_schema,
)
from fluss.state.state_at_offset import read_state
from fluss.state.state_planner import StatePlan, plan_state, plan_states

__all__ = [
    "ChangeColumns",
    "StatePlan",
    "binlog_schema",
    "plan_state",
    "plan_states",
    "read_state",
]
