"""The past of a table, where a lake has it: which files of a snapshot are read, and by whom.

This room knows lakes only as a place with files up to an offset of each bucket. What the catalog,
the files and the deletes of a format look like is known by the package that offers it; its entry
point finds it (`lake_format`).
"""
