"""Record batches of logs and primary-key tables: bytes to Arrow and back.

Rule: the only room below the client that touches Arrow memory. No sockets, no files, no clocks:
bytes come in as buffers and leave as buffers. Row layouts are borrowed from `rows`.
"""
