"""The documented dialect and the awaited one: the classes that users of pyfluss know.

Rule: a class of both dialects has its methods once, in a base class; a dialect adds only whether a
call blocks or is awaited. `fluss` names the documented classes, `fluss.aio` the awaited ones.
"""
