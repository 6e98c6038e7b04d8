"""Primary-key tables: rows by key, and the changelog that records every change of them.

One `KvTablet` serves one bucket. `kv_tablet` applies batches in order, `merge_engines` and
`aggregate_functions` combine the rows of one key, `kv_store` keeps rows on disk, and
`pending_changes` has those that are not there yet. The changelog is the write-ahead log: a change
is acknowledged when the log has it, and after a crash the store is brought up to date from the log
(`kv_recovery`). The wire and the files of the log are not handled here.
"""
