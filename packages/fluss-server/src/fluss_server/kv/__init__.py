"""Primary-key tables: state by key, and the changelog that explains every change of it.

One `KvTablet` keeps one bucket: `tablet` applies batches in order, `merging` and `aggregating` say
what two rows with one key become, `store` keeps rows on disk, `pending` those that are not there
yet. The changelog is the write-ahead log: a change is acknowledged when the log has it, and the
store catches up from the log after a crash. The wire and the log's files are other rooms'
business.
"""
