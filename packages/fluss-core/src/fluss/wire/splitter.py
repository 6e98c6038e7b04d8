"""Cuts a stream of bytes into frames, without copying the large ones.

The splitter owns the memory a socket receives into and never waits: the reader asks for a buffer,
fills it, and gets the frames that are complete now. Small frames share a chunk; a large one is
received directly into its own memory. A frame that was returned is never written to again while it
is referenced, so the reader may keep it. `wire.frame` reads what is in a frame.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from fluss.errors import ProtocolError
from fluss.wire.frame import FRAME_BYTES_MAX
from fluss.wire.receive_memory import ALIGNMENT, FRAME_MEMORY

CHUNK_BYTES = 64 * 1024
# Memory for a frame that claims more is taken step by step, as its bytes arrive.
TRUSTED_BYTES_MAX = 32 * 1024 * 1024

_LENGTH = struct.Struct(">i")
_NOT_FLUSS = {
    b"HTTP": "an HTTP server",
    b"GET ": "an HTTP client",
    b"POST": "an HTTP client",
    b"\x15\x03": "TLS",
    b"\x16\x03": "TLS",
}


class FrameSplitter:
    """Call `get_buffer`, receive into what it returns, call `buffer_updated`, and repeat.

    The two methods are those of `asyncio.BufferedProtocol`, but nothing here needs asyncio.

    Args:
        frame_bytes_max: The longest frame that is accepted.
        chunk_bytes: The size of the chunks for small frames.
        aligned_at: Chooses, from the beginning of a large frame, the byte that shall lie at a
            multiple of `ALIGNMENT`, so that what begins there can be used without a copy.
    """

    __slots__ = (
        "_aligned_at",
        "_chunk",
        "_chunk_bytes",
        "_consumed",
        "_end",
        "_frame_bytes_max",
        "_large",
        "_large_filled",
        "_large_length",
        "_large_shift",
        "_next_chunk_bytes",
        "_readable",
        "_refusal",
        "_start",
    )

    def __init__(
        self,
        *,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        chunk_bytes: int = CHUNK_BYTES,
        aligned_at: Callable[[memoryview], int] = lambda _: 0,
    ) -> None:
        self._aligned_at = aligned_at
        self._frame_bytes_max = frame_bytes_max
        self._chunk_bytes = self._next_chunk_bytes = chunk_bytes
        self._consumed = 0  # bytes of the stream before the unfinished frame
        self._refusal: ProtocolError | None = None
        # Unfinished small frame: chunk[start:end]. Free: chunk[end:]. Returned: chunk[:start].
        self._chunk = memoryview(bytearray(chunk_bytes))
        self._readable = self._chunk.toreadonly()
        self._start = 0
        self._end = 0
        # Unfinished large frame: large[:filled], of the length it claims.
        self._large: memoryview | None = None
        self._large_filled = 0
        self._large_length = 0
        self._large_shift = 0

    def change_limits(self, *, frame_bytes_max: int, chunk_bytes: int) -> None:
        """Accept frames up to another length, and receive into chunks of another size.

        A frame that is being received keeps its memory.
        """
        self._frame_bytes_max = frame_bytes_max
        self._next_chunk_bytes = chunk_bytes

    @property
    def missing_bytes(self) -> int:
        """How many bytes of a large frame are still to come; 0 where none is being received."""
        return 0 if self._large is None else self._large_length - self._large_filled

    @property
    def unfinished_bytes(self) -> int:
        """How many bytes of a frame that is not complete have arrived."""
        if self._large is not None:
            return _LENGTH.size + self._large_filled
        return self._end - self._start

    def get_buffer(self, size_hint: int = -1) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """The memory for the next bytes; never empty."""
        if self._large is not None:
            return self._large[self._large_filled :]
        # A frame at the start of a chunk has the whole chunk to grow.
        if self._start and (self._chunk_bytes - self._end) * 4 < self._chunk_bytes:
            self._start_chunk()
        return self._chunk[self._end :]

    def buffer_updated(self, count: int) -> list[memoryview]:
        """Note that `count` bytes were received.

        Returns:
            The frames that are complete now, without their lengths, in order; read-only.

        Raises:
            ProtocolError: A frame claims an impossible length. Frames before it are returned first;
                the next call raises. The connection must then be closed.
        """
        self._raise_refusal()
        if self._large is not None:
            return self._fill_large(self._large, count)
        self._end += count
        frames = self._split_chunk()
        if not frames:
            self._raise_refusal()
        return frames

    def _raise_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _split_chunk(self) -> list[memoryview]:
        frames = []
        start, end, readable = self._start, self._end, self._readable
        while end - start >= 4:
            (length,) = _LENGTH.unpack_from(readable, start)
            if not 0 < length <= self._frame_bytes_max:
                self._refusal = self._refuse(bytes(readable[start : start + 4]))
                break
            body = start + 4
            if body + length > end:
                if length * 4 > self._chunk_bytes and body + length > self._chunk_bytes:
                    self._start_large(length, readable[body:end])
                    end = start
                break
            frames.append(readable[body : body + length])
            start = body + length
        self._consumed += start - self._start
        self._start = start
        self._end = end
        return frames

    def _start_chunk(self) -> None:
        tail = self._chunk[self._start : self._end]
        # The rest of a small frame is always smaller than the new chunk: chunks only grow.
        self._chunk_bytes = self._next_chunk_bytes
        self._chunk = memoryview(bytearray(self._chunk_bytes))
        self._readable = self._chunk.toreadonly()
        self._chunk[: len(tail)] = tail
        self._start = 0
        self._end = len(tail)

    def _start_large(self, length: int, received: memoryview) -> None:
        self._large_shift = -self._aligned_at(received) % ALIGNMENT
        trusted = min(length, max(TRUSTED_BYTES_MAX, 2 * len(received)))
        self._large = FRAME_MEMORY.take(trusted, shift=self._large_shift)
        self._large[: len(received)] = received
        self._large_filled = len(received)
        self._large_length = length

    def _fill_large(self, large: memoryview, count: int) -> list[memoryview]:
        self._large_filled += count
        if self._large_filled == self._large_length:
            self._consumed += _LENGTH.size + self._large_length
            self._large = None
            return [large.toreadonly()]
        if self._large_filled == len(large):
            grown = min(self._large_length, 2 * len(large))
            self._large = FRAME_MEMORY.take(grown, shift=self._large_shift)
            self._large[: len(large)] = large
        return []

    def _refuse(self, length_bytes: bytes) -> ProtocolError:
        (length,) = _LENGTH.unpack(length_bytes)
        why = (
            f"its length is {length}, the limit is {self._frame_bytes_max} bytes"
            if length > 0
            else f"its length is {length}"
        )
        hint = "Raise the limit for frames, if the peer is a Fluss server or client."
        for beginning, name in _NOT_FLUSS.items():
            if length_bytes.startswith(beginning):
                hint = f"The peer seems to be {name}; is this the address of a Fluss server?"
        return ProtocolError(
            f"A frame cannot be received: {why}.",
            hint=hint,
            what="a frame",
            at=self._consumed,
            why=why,
        )
