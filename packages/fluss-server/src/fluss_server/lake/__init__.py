"""The lake of a server: its catalog, the snapshots in it, and the assignment of tables to workers.

`lake_catalog` finds the package that implements a format; no other file depends on a format.
`server_lake` is the lake of a running server, and `lake_settings` its description. `plan_tiering`
assigns tables to workers. `lake_snapshots` holds the snapshots that the server knows, and
`offsets_file` reads and writes the files with their offsets. The server writes no rows into a lake:
workers do.
"""
