"""The log of a bucket: wire batches in segment files, stored verbatim, and their recovery.

`bucket_log` is the log, `segment_file` one of its files, `writer_history` its record of idempotent
writers. `log_inventory` and `log_recovery` open a log from disk, `log_checkpoint` shortens that,
and `log_repair` salvages a damaged one. `batch_checks` refuses batches that readers could not read,
`lazy_batch_checks` checks stored batches when they are first read. `stored_projection` selects
columns for a reader, and `filtered_read` skips batches that `statistics_filter` rules out.

This room waits for the disk only, and has no connections; `fluss_server.tablets` describes which
thread may call what. This file imports no other one of the room.
"""

from typing import Final

SEGMENT_BYTES: Final = 128 << 20
