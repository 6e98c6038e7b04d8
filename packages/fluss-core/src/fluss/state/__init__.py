"""Primary-key tables as Arrow: their state at one offset of the log, and the changes up to it.

Rule: exact or refused. A state equals a replay of the changelog up to the pinned offset, whatever
the strategy (`state_planner` collects facts, `plan_state` chooses, `state_at_offset` reads);
changes carry Fluss's own names (`changelog`). Reading runs on the caller's thread and crosses to
the engine for bytes only.
"""
