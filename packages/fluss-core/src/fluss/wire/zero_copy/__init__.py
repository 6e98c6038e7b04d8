"""The messages with records, keys and values, read and written without copying these.

Each is a frozen dataclass with the field names of the protocol, and has a layout in capitals:
`FETCH_LOG_RESPONSE.read(body)` returns a `FetchLogResponse`, `FETCH_LOG_RESPONSE.write(response)` a
list of buffers, for senders and receivers alike. Records are tuples of buffers: one slice of the
frame when read, any number when written. `records` knows what they hold; all other messages are
left to protobuf (`wire.messages`).
"""
