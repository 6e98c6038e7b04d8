"""Administration: databases, tables, partitions, offsets.

Rule: each call is written here once, as a coroutine; `dialects` and `session` only run it.
"""
