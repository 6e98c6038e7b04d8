"""The log of a bucket: wire batches in segment files, kept verbatim, found again after a crash.

`bucket_log` is the log, `segment` one of its files, `writers` what it remembers of idempotent
writers, `recovery` opens it from what is on disk, `checks` refuses batches nobody could read,
`projection` cuts columns out of batches on their way to a reader, and `filtered` leaves batches
out, where `pruning` says that no row can be wanted. Nothing here waits for anything but the disk,
and nothing knows of connections; who may call what at which time is said in
`fluss_server.tablets`. How large a segment becomes can be known without loading any of it.
"""

from typing import Final

SEGMENT_BYTES: Final = 128 << 20
