"""Protobuf classes that `python -m tools.generate` makes; reached through `fluss.wire.messages`."""
