"""The past of Fluss tables in Iceberg: scans read it together with the log.

Installing this package is enough: `fluss` finds it by its entry point, and a scan of a table that
has a snapshot in its lake reads both. Nothing here needs to be imported for that.
"""
