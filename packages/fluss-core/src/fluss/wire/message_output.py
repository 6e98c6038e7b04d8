"""A message that is being written: short byte strings are joined, long ones referred to."""

from __future__ import annotations

from fluss.wire.byte_buffers import Buffer, size_of
from fluss.wire.protobuf_fields import write_varint

# Up to here a copy is cheaper than one more buffer on the way to the socket.
JOINED_BYTES_MAX = 4 * 1024


class Output:
    """The buffers of a message, in the order in which they are sent.

    Tags and numbers are appended to `small`, byte strings by `append`, which may replace `small`.
    """

    __slots__ = ("_finished", "_finished_bytes", "small")

    def __init__(self) -> None:
        self._finished: list[Buffer] = []
        self._finished_bytes = 0
        self.small = bytearray()

    def __len__(self) -> int:
        return self._finished_bytes + len(self.small)

    def buffers(self) -> list[Buffer]:
        """Everything that was appended; nothing may be appended after this."""
        return [*self._finished, self.small] if self.small else self._finished

    def append(self, buffer: Buffer) -> None:
        """Append a byte string: a copy of a short one, a reference to a long one."""
        size = size_of(buffer)
        if size <= JOINED_BYTES_MAX:
            self.small += buffer
            return
        if self.small:
            self._finished_bytes += len(self.small)
            self._finished.append(self.small)
            self.small = bytearray()
        self._finished_bytes += size
        self._finished.append(buffer)

    def append_length(self, tag: bytes, size: int) -> None:
        """Append the tag of a field that is stored with its length, and the length."""
        self.small += tag
        write_varint(self.small, size)

    def append_field(self, tag: bytes, buffer: Buffer) -> None:
        """Append a byte string as a field."""
        self.append_length(tag, size_of(buffer))
        self.append(buffer)

    def append_nested(self, tag: bytes, message: Output) -> None:
        """Append a message as a field."""
        self.append_length(tag, len(message))
        for buffer in message._finished:
            self.append(buffer)
        self.small += message.small
