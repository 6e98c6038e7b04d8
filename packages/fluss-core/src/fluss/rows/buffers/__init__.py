"""Columns as numpy buffers, and the operations on them that all formats share."""
