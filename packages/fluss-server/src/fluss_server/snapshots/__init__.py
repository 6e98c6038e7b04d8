"""KV snapshots: copies of the rows by key of one moment, which clients read as files.

As in Fluss, each bucket that has changed gets one in each interval, the newest two are kept, and a
lease keeps others. `kv_snapshots` makes them, `snapshot_files` has those of one bucket on disk,
`plan_leases` and `plan_schedule` decide what is kept and what is due, without clocks and files.
"""
