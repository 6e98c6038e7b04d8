"""Rows of a primary-key table by key, or by a prefix of keys.

Rule: keys are encoded and values decoded on the caller's thread; the engine only moves bytes.
"""
