"""What exists: databases, tables, schemas, partitions, counters, producer offsets.

`catalog` is the one who knows and may change it, `store` its sqlite file, `entries` the nouns,
`creation` and `alteration` the rules for tables. Readers look at memory only; a change is one
transaction of the file, after which memory follows. Rows are somebody else's business.
"""
