"""The files of the two sparse indexes into a log segment (Java: `OffsetIndex`, `TimeIndex`).

`.index` leads from offsets and `.timeindex` from timestamps to a place at or before the requested
one, with about one entry per 4 KiB. Entries are big endian, unlike everything in the batches:

==============  ==============================================================================
`.index`        offset - first offset (int32), position in the log file (int32)
`.timeindex`    timestamp in ms (int64), offset - first offset (int32)
==============  ==============================================================================

Only bytes are handled here; `segment_indexes` reads and writes the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from fluss.records.arrow.received_bytes import ByteSource, to_view
from fluss.records.corrupt import corrupt_batch
from fluss.rows.buffers.columns import Int64Array

INDEX_INTERVAL_BYTES: Final = 4096  # Java's default for how much log one entry stands for

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffsetIndex:
    """The entries of an `.index` file: offsets and the positions of the batches they are in."""

    first_offset: int
    offsets: Int64Array
    positions: Int64Array

    @classmethod
    def read(cls, data: ByteSource, *, first_offset: int) -> Self:
        """Read a file whose log begins with `first_offset`.

        Raises:
            CorruptBatchError: The entries are not whole or not ascending.
        """
        entries = _entries(data, _OFFSET_ENTRY, "offset index")
        offsets = entries["offset"].astype(np.int64)
        positions = entries["position"].astype(np.int64)
        _check_ascending("offset index", _OFFSET_ENTRY, offsets, positions)
        return cls(first_offset=first_offset, offsets=offsets + first_offset, positions=positions)

    def position_for(self, offset: int) -> int:
        """Return a position at or before the batch with this offset.

        An entry names the last offset of the batch at its position, so an equal one will do.
        """
        slot = int(np.searchsorted(self.offsets, offset, side="right")) - 1
        return 0 if slot < 0 else int(self.positions[slot])

    def write(self) -> bytes:
        """Return the file's bytes."""
        entries = np.empty(len(self.offsets), dtype=_OFFSET_ENTRY)
        entries["offset"] = self.offsets - self.first_offset
        entries["position"] = self.positions
        return entries.tobytes()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeIndex:
    """The entries of a `.timeindex` file: the largest timestamp so far, and its batch's offset."""

    first_offset: int
    timestamps: Int64Array
    offsets: Int64Array

    @classmethod
    def read(cls, data: ByteSource, *, first_offset: int) -> Self:
        """Read a file whose log begins with `first_offset`.

        Raises:
            CorruptBatchError: The entries are not whole or not ascending.
        """
        entries = _entries(data, _TIME_ENTRY, "time index")
        timestamps = entries["timestamp"].astype(np.int64)
        offsets = entries["offset"].astype(np.int64)
        _check_ascending("time index", _TIME_ENTRY, timestamps, offsets)
        return cls(first_offset=first_offset, timestamps=timestamps, offsets=offsets + first_offset)

    def offset_for(self, timestamp: int) -> int:
        """Return an offset at or before the first batch that is not older than this.

        An entry names the first batch that had its timestamp, so an equal one will do.
        """
        slot = int(np.searchsorted(self.timestamps, timestamp, side="right")) - 1
        return self.first_offset if slot < 0 else int(self.offsets[slot])

    def write(self) -> bytes:
        """Return the file's bytes."""
        entries = np.empty(len(self.offsets), dtype=_TIME_ENTRY)
        entries["timestamp"] = self.timestamps
        entries["offset"] = self.offsets - self.first_offset
        return entries.tobytes()


def _entries(data: ByteSource, entry: np.dtype[Any], what: str) -> npt.NDArray[Any]:
    view = to_view(data)
    if len(view) % entry.itemsize:
        why = f"its {len(view)} bytes are not entries of {entry.itemsize}"
        raise corrupt_batch(what, at=0, why=why)
    return np.frombuffer(view, dtype=entry)


def _check_ascending(what: str, entry: np.dtype[Any], *columns: Int64Array) -> None:
    for column in columns:
        if not len(column):
            continue
        falls = column[1:] < column[:-1]
        if column[0] < 0 or falls.any():
            index = 0 if column[0] < 0 else int(falls.argmax()) + 1
            why = f"entry {index} lies before the one in front of it"
            raise corrupt_batch(what, at=index * entry.itemsize, why=why)
