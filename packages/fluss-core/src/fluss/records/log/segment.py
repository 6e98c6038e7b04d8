"""The files of a log segment, beside a server's tablet and in remote storage: names, and the index.

A segment is `{first offset as 20 digits}.log`, the batches as they are on the wire, with sound
checksums and no cut at the end; the server's indexes into it are beside it. The index of offsets
has entries of eight bytes, big endian (Java: `OffsetIndex`):

=============  ====  ===========================================================================
field          size  what
=============  ====  ===========================================================================
last offset       4  of what was appended there, less the first offset of the segment
position          4  where that begins in the file
=============  ====  ===========================================================================

An append has an entry when more than 4 KiB have been appended since the one before; the first
never has.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FILE_NAME_DIGITS: Final = 20
_ENTRY = struct.Struct(">ii")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One entry: a batch begins at `position`, and `last_offset` is after it or its last."""

    last_offset: int
    position: int


def segment_file_name(first_offset: int, suffix: str) -> str:
    """Return the name of a segment's file: `log`, `index` or `timeindex`."""
    return f"{first_offset:0{_FILE_NAME_DIGITS}d}.{suffix}"


def read_offset_index(data: bytes, *, first_offset: int, file_size: int) -> Sequence[IndexEntry]:
    """Return the entries of an index, up to the first one that cannot be.

    An index may have been cut off or padded; what is left of it is still right.

    Args:
        data: The file.
        first_offset: The first offset of the segment.
        file_size: The size of the segment.
    """
    entries: list[IndexEntry] = []
    before = IndexEntry(last_offset=first_offset - 1, position=0)
    for delta, position in _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]):
        last_offset = first_offset + delta
        if not before.position < position < file_size or last_offset <= before.last_offset:
            break
        before = IndexEntry(last_offset=last_offset, position=position)
        entries.append(before)
    return entries
