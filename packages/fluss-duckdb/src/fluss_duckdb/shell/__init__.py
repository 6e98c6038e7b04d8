"""The shell `fluss sql`: statements from a prompt, a file, an argument or a pipe, one by one.

Rule: a statement about tables of Fluss that DuckDB cannot run is carried out through the session
(`fluss_statements`), exactly or not at all; every other statement is DuckDB's.
"""
