"""The bytes of a file, a pipe or the standard input, read once from start to end.

Memory is bounded: a look at the beginning, then blocks. Parquet is read from its end, so a pipe or
a compressed file is first copied to a temporary file. A read of a pipe cannot be interrupted;
therefore a thread reads ahead, and the caller waits for that thread, which can be stopped.
"""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

STANDARD: Final = "-"
# Suffixes of compressed files, and Arrow's names of the codecs.
COMPRESSIONS: Final = {
    ".gz": "gzip",
    ".zst": "zstd",
    ".bz2": "bz2",
    ".lz4": "lz4",
    ".br": "brotli",
}
BOM: Final = b"\xef\xbb\xbf"
_COPY_BYTES: Final = 8 << 20
_PIPE_BYTES: Final = 1 << 20
_PIPE_BLOCKS: Final = 4
_SLICE_S: Final = 0.1


class ByteSource:
    """The bytes of a file, without the byte order mark that some programs put before UTF-8.

    Args:
        file: A path, which may be compressed and then ends in `.gz`, `.zst` or the like; or `-`.
    """

    def __init__(self, file: str) -> None:
        self._raw: Any = None
        self._stream: Any
        if can_be_read_again(file):
            self._raw = pa.OSFile(file)
            codec = COMPRESSIONS.get(Path(file).suffix.lower())
            self._stream = (
                self._raw if codec is None else pa.CompressedInputStream(self._raw, codec)
            )
        else:
            self._stream = _Pipe(_open_pipe(file))
        self._is_stopped = False
        self._ahead = b""
        if self.peek(len(BOM)) == BOM:
            self._ahead = b""

    def close(self) -> None:
        """Close the file; the standard input itself stays open."""
        self._stream.close()

    @property
    def bytes_read(self) -> int:
        """How many bytes of the file have been read, compressed ones as they are; 0 for a pipe."""
        return 0 if self._raw is None or self._raw.closed else int(self._raw.tell())

    def stop(self) -> None:
        """Make the threads that read the file see its end now."""
        self._is_stopped = True
        if isinstance(self._stream, _Pipe):
            self._stream.close()

    def peek(self, size: int) -> bytes:
        """Return at most `size` of the next bytes; `read` returns them again."""
        while len(self._ahead) < size:
            more = self._stream.read(size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer only at the end."""
        parts = [self._ahead[:size]]
        self._ahead = self._ahead[size:]
        left = size - len(parts[0])
        while left:
            more = b"" if self._is_stopped else self._stream.read(left)
            if not more:
                break
            parts.append(more)
            left -= len(more)
        return b"".join(parts)


class _Pipe:
    """A pipe that a thread reads ahead."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._blocks: queue.Queue[bytes | OSError] = queue.Queue(_PIPE_BLOCKS)
        self._block = b""
        self._is_ended = False
        threading.Thread(target=self._pump, name="import", daemon=True).start()

    def read(self, size: int) -> bytes:
        while not self._block and not self._is_ended:
            try:
                found = self._blocks.get(timeout=_SLICE_S)
            except queue.Empty:
                continue
            if isinstance(found, OSError):
                raise found
            self._block = found
            if not found:
                self.close()
        block, self._block = self._block[:size], self._block[size:]
        return block

    def close(self) -> None:
        self._is_ended = True

    def _pump(self) -> None:
        block: bytes | OSError = b" "
        while block and not isinstance(block, OSError) and not self._is_ended:
            try:
                block = self._read(_PIPE_BYTES)
            except OSError as error:
                block = error
            while not self._is_ended:
                try:
                    self._blocks.put(block, timeout=_SLICE_S)
                except queue.Full:
                    continue
                break


def _open_pipe(file: str) -> Callable[[int], bytes]:
    if file != STANDARD:
        opened = Path(file).open("rb", buffering=0)  # noqa: SIM115 - open until the process ends
        return opened.read
    try:
        number = sys.stdin.fileno()
    except OSError:  # a program has replaced `sys.stdin`
        return sys.stdin.buffer.read
    # Not `sys.stdin`: Python does not end while a thread waits for it.
    return lambda size: os.read(number, size)


def seekable(file: str) -> Any:
    """Open a file for random access; a pipe or a compressed file is copied to a temporary one."""
    if can_be_read_again(file) and not is_compressed(file):
        return pa.OSFile(file)  # a map would show every byte read as memory of the process
    with tempfile.NamedTemporaryFile() as copy, closing(ByteSource(file)) as source:
        while block := source.read(_COPY_BYTES):
            copy.write(block)
        copy.flush()
        return pa.OSFile(copy.name)  # it keeps the bytes when the name is removed


def is_compressed(file: str) -> bool:
    """Whether the name of a file says that it is compressed as a whole."""
    return Path(file).suffix.lower() in COMPRESSIONS


def can_be_read_again(file: str) -> bool:
    """Whether a second reader finds the same bytes: not in a pipe."""
    return file != STANDARD and Path(file).is_file()
