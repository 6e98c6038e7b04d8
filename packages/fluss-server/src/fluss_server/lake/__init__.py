"""The lake of a server: its catalog, what is tiered into it, and which worker tiers what.

`lake_catalog` finds the package that knows a format; the rest knows none. `server_lake` is the
lake of a running server, `lake_settings` how it is described, `plan_tiering` which table is handed
out when, `lake_snapshots` which snapshots of the lake the server knows, and `offsets_file` the
files with their offsets. The server writes no rows into a lake: workers do.
"""
