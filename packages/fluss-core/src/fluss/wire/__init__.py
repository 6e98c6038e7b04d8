"""Frames and messages of the Fluss protocol: bytes to messages and back, in both directions.

Rule: nothing here knows whether it serves a client or a server, and nothing waits, keeps time or
touches Arrow. Record batches are opaque bytes to this room; they belong to `records`.
"""
