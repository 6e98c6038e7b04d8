"""Rows in files: reading, typing and writing CSV, JSON lines, Parquet and Arrow.

`importing` and `row_files` are what commands call; the other files know one format or one step.
"""
