"""Writing to logs so that a task that is repeated writes its rows once: for engines that retry.

Rule: `plan*.py` decides who claims what and what has been written; decision 0006 has the protocol.
"""
