"""Frames and messages of the Fluss protocol: bytes to messages and back, in both directions.

Rule: nothing here knows whether it serves a client or a server, and nothing waits, keeps time or
touches Arrow. Record batches are opaque bytes to this room; they belong to `records`.

==============  ==================================================================================
`splitter`      a stream of bytes becomes frames; owns the memory a socket receives into
`frame`         the head of a frame: which API and request, how it ended
`api`           the APIs, who serves them, which version both sides know
`messages`      the protobuf messages, made on first use; damage becomes our error
`envelope`      the messages with records, keys and values, which are not copied; built on
                `layout` (a table per message), `kinds` (of fields), `fields` (tags and lengths)
`paths`         the fields that name a table, or a partition
`sasl`          who may come in, from both sides
==============  ==================================================================================
"""
