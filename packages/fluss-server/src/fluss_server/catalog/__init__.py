"""Metadata: databases, tables, schemas, partitions, counters, producer offsets.

`catalog` answers queries and applies changes, `catalog_store` is its sqlite file,
`catalog_entries` its nouns, `creation` and `alteration` the rules for tables. `manifests` repeats
the metadata in the directories it describes, and `directory_tree` compares the two. Queries read
memory only; a change is one transaction of the file, after which memory follows. Rows are not
stored here.
"""
