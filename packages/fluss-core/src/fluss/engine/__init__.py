"""The one thread of a process that waits for the network, and everything that runs on it.

Rule: the only room with an event loop. A line here either waits or hands on a decision made in
`plan`; anything worth a unit test without a socket belongs there. Callers never run on this
thread: they cross over by `Engine.run` (blocking) or `Engine.submit` (awaitable).
"""
