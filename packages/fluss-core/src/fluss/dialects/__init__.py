"""The documented and the awaited dialect: the classes that users of pyfluss know.

Rule: a class of both dialects has its methods once, in a base class; a dialect adds only whether a
call blocks or is awaited. `fluss` exports the documented classes, `fluss.aio` the awaited ones.
"""
