"""What the ledger keeps of logs and of the catalog: how far, and which numbers are used up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LogMark(NamedTuple):
    """Up to where a log has been acknowledged; made for each append, so it costs little.

    Args:
        generation: Of the list of its segments.
        end_offset: The offset after the last acknowledged batch.
        segment: The first offset of the segment which that batch is in.
        size: How many bytes of the segment have been acknowledged.
        headers_crc: The checksum of the headers in them.
    """

    generation: int
    end_offset: int
    segment: int
    size: int
    headers_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Numbers that are free: all below have been given out, or are lost."""

    table_id: int = 0
    partition_id: int = 0
    writer_id: int = 0
