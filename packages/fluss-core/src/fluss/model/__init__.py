"""The nouns of Fluss: frozen, validated when made, free of IO.

Rule: a noun knows its own meaning and its own text forms (names, JSON, the Arrow type it stands
for), nothing about bytes on a wire and nothing about who asks. Arrow is named lazily: importing
this room does not load pyarrow.
"""
