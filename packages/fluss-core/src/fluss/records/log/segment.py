"""The names of the files of a log segment, beside a server's tablet and in remote storage.

A segment is `{first offset as 20 digits}.log`, the batches as they are on the wire, with sound
checksums and no cut at the end; the server's indexes into it are beside it.
"""

from __future__ import annotations

from typing import Final

_FILE_NAME_DIGITS: Final = 20


def segment_file_name(first_offset: int, suffix: str) -> str:
    """Return the name of a segment's file: `log`, `index` or `timeindex`."""
    return f"{first_offset:0{_FILE_NAME_DIGITS}d}.{suffix}"
