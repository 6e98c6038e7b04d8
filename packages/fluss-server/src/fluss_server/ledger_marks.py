"""The values in the ledger: how far a log is acknowledged, and the next free ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LogMark(NamedTuple):
    """How far a log has been acknowledged. A named tuple, because each append creates one.

    Args:
        generation: The generation of the list of its segments.
        end_offset: The offset after the last acknowledged batch.
        segment: The first offset of the segment that holds that batch.
        size: How many bytes of the segment have been acknowledged.
        headers_crc: The checksum of the batch headers in those bytes.
    """

    generation: int
    end_offset: int
    segment: int
    size: int
    headers_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NextNumbers:
    """The next free ids: all smaller ones have been assigned, or are lost."""

    table_id: int = 0
    partition_id: int = 0
    writer_id: int = 0
