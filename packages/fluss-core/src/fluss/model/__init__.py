"""The nouns of Fluss: frozen, validated when made, free of IO.

Rule: a noun knows its meaning and its text forms (names, JSON, its Arrow type), and nothing about
bytes on a wire or its users. Arrow is named lazily: importing this room does not load pyarrow.
"""
