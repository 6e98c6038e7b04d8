"""Copies tables into their lakes: rounds of reading the log, writing files, and committing both.

`plan_round` decides what a round does, and `plan_lease` whose table it is; both without waiting.
`range_task` is the unit of work: the files of one range of one bucket, in whatever process.
`round_driver` drives the rounds of a table: it alone commits.
"""
