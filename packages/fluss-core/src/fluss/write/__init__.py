"""Writing: from rows and frames to batches, and from batches to acknowledgements.

Rule: a row or frame is checked before any of it is queued; `plan*.py` decides which batches go
when and what follows from the answers; the sender obeys. Writing a task once, however often it is
repeated, is the business of `fluss.exactly_once`.
"""
