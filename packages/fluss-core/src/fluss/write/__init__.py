"""Writing: from rows and frames to batches, and from batches to acknowledgements.

Rule: a row or frame is checked before any of it is queued. `plan*.py` decides which batches are
sent when and what follows from the answers; the sender executes that. `fluss.exactly_once` writes
the rows of repeated tasks once.
"""
