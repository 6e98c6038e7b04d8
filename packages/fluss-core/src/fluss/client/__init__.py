"""The user's verbs: check arguments, call the engine, dress the result.

Rule: no bytes of a protocol here, and no waiting of its own. A *core* does the work of one class of
users' objects; its plain methods never wait, its coroutines run on the engine's loop. The doors
(`fluss`, `fluss.aio`) are one line per method over the cores.
"""
