"""Copies tables into their lakes: a round reads the log, writes files, and commits a snapshot.

`plan_round` decides what a round does, and `plan_lease` which worker holds a table; neither waits.
`range_task` is the unit of work: the files of one offset range of one bucket. Any process can run
it. `round_driver` drives the rounds of a table; no other file commits.
"""
