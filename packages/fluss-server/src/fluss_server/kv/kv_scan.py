"""Reads all rows of one moment page by page (SCAN_KV); encodes rows as a value batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluss.records.arrow.received_bytes import ByteSource
from fluss.records.kv.value_batch import write_value_batch
from fluss.rows.buffers.columns import RowBytes
from fluss_server.kv.kv_store import StoreSnapshot


def value_batch_of(rows: Sequence[bytes]) -> Sequence[ByteSource]:
    """Return stored rows as a value batch."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in rows], out=offsets[1:])
    data = np.frombuffer(b"".join(rows), dtype=np.uint8)
    return write_value_batch(RowBytes(data=data, offsets=offsets))


class KvScan:
    """The rows of one moment in pages; used by one thread at a time."""

    def __init__(
        self, snapshot: StoreSnapshot, *, log_offset: int, limit: int | None, tag_bytes: int = 0
    ) -> None:
        """Begin a scan.

        Args:
            snapshot: The rows.
            log_offset: The changelog's end offset at that moment.
            limit: How many rows to return; None for all.
            tag_bytes: How many bytes come before each row in the store.
        """
        self._tag_bytes = tag_bytes
        self.log_offset = log_offset
        self._rows = snapshot.from_key(b"")
        self._left = limit
        self._next = self._take()

    def next_page(self, bytes_max: int) -> tuple[Sequence[ByteSource], bool]:
        """Return a value batch of about `bytes_max`, at least one row; and whether more follow."""
        page: list[bytes] = []
        size = 0
        while self._next is not None and (not page or size + len(self._next) <= bytes_max):
            page.append(self._next)
            size += len(self._next)
            self._next = self._take()
        return value_batch_of(page), self._next is not None

    def close(self) -> None:
        """Release the snapshot."""
        self._rows, self._next = iter(()), None

    def _take(self) -> bytes | None:
        if self._left is not None:
            if self._left <= 0:
                return None
            self._left -= 1
        found = next(self._rows, None)
        return None if found is None else found[1][self._tag_bytes :]
