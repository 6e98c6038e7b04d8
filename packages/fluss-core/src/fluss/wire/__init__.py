"""Frames and messages of the Fluss protocol: bytes to messages and back, in both directions.

Rule: nothing here knows whether it serves a client or a server, and nothing waits, keeps time or
touches Arrow. Record batches are opaque bytes to this room; they belong to `records`.

==============  ==================================================================================
`splitter`      cuts a stream of bytes into frames; owns the memory a socket receives into
`frame`         the header of a frame: which API and request, how it ended
`api`           the APIs, which servers have them, which version both sides know
`messages`      the protobuf messages, made on first use; damage becomes our error
`zero_copy`     the messages with records, keys and values, which are not copied; built on
                `message_layout` (a table per message), `field_codecs` (a codec per kind of
                field) and `protobuf_fields` (tags and lengths)
`table_paths`   the fields that name a table, or a partition
`sasl`          authentication, for both sides
==============  ==================================================================================
"""
