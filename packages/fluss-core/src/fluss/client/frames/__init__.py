"""Whole frames written and looked up: anything tabular in, Arrow out.

Everything here is called by blocking threads and works on theirs; the engine only sends and
receives. What a frame is stands in `frames.tabular`, how a table is made of one in
`frames.creation`, writing in `frames.writing`, finding rows in `frames.lookups`.
"""
