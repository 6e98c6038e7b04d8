"""Filters on batches: decided row by row, and read from the expressions of pyarrow."""
