"""The engine thread and the way to a cluster: sockets, metadata, leaders, retries.

Rule: this room and the verbs above it run on one event loop, that of the engine thread; only this
room makes threads and sockets. `plan*.py` decides and does not wait. The rooms above know what a
request means, and `fluss.wire` knows its bytes.
"""
