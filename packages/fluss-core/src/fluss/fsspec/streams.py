"""Rows as a file: an Arrow IPC stream that is encoded while it is read.

A batch is encoded when its bytes are requested, and closing the file ends the scan. There is no
size, which is known only at the end, and no seeking.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from typing import Any, NoReturn

import pyarrow as pa

BUFFER_BYTES = 256 * 1024
# The end of a stream: a continuation mark, and a length of zero.
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class ArrowFile(io.BufferedReader):
    """An Arrow IPC stream of batches, for one reader.

    Args:
        batches: The rows.
        path: The path that was opened, for messages.
    """

    # fsspec reads this of files that it copies; see above.
    size = None

    def __init__(self, batches: pa.RecordBatchReader, path: str) -> None:
        super().__init__(_Raw(batches), BUFFER_BYTES)
        self.path = path

    def seekable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> NoReturn:  # noqa: ARG002 - of any file
        raise io.UnsupportedOperation(
            f"{self.path} is a stream and not seekable; read it as one, with "
            "pyarrow.ipc.open_stream or polars.read_ipc_stream"
        )


class _Raw(io.RawIOBase):
    def __init__(self, batches: pa.RecordBatchReader) -> None:
        super().__init__()
        self._pieces = _messages(batches)
        self._piece = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._piece = piece
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._pieces.close()
            self._piece = memoryview(b"")
        super().close()


def _messages(batches: pa.RecordBatchReader) -> Generator[memoryview, None, None]:
    yield memoryview(batches.schema.serialize()).cast("B")
    for batch in batches:
        yield memoryview(batch.serialize()).cast("B")
    yield memoryview(END_OF_STREAM)
