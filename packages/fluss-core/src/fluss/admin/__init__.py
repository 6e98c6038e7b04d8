"""Administration: databases, tables, partitions, offsets.

Rule: each call stands here once, as a coroutine; the doors (`dialects`, `session`) only run it.
"""
