"""Rows, keys, bucket hashes and partition texts, bit for bit as Fluss's Java classes make them.

Rule: values and numpy buffers in, bytes out, and back. Each codec has a vectorised path over
columns and a path over one row, and both give the same bytes. This room
knows no frames or messages (`wire`), no record batches (`records`) and no Arrow.
"""
