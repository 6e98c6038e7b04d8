"""The rows that a writer has taken and not sealed yet.

`write.row_taker` and `write.write_buffer` add rows, under the lock that is here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fluss.write.write_result import Chunk

if TYPE_CHECKING:
    from fluss.write.wire_rows import WireRows
    from fluss.write.write_buffer import WriteBuffer
    from fluss.write.write_encoding import Encoded

# Of one row; see `records.convert.flat_values`.
Cells: TypeAlias = tuple[object, ...]
Runs: TypeAlias = tuple[Sequence[object], ...]


class OpenRows:
    """The chunk that is open in a buffer; the buffer's lock guards it.

    `write.row_taker` adds rows to it with as few steps as possible, so it is a small object of its
    own: its attributes are found in half the time of those of the buffer, which has dozens.

    Attributes:
        lock: Is held while a row is added.
        chunk: The chunk.
        values: The cells of its last rows, row after row; always the same list.
        runs: Their runs (`records.convert.flat_values`); always the same lists.
        count: How many rows the chunk has.
        bytes: Their approximate size.
        target_bytes: The size from which on the chunk is full.
        takes_values: Whether a row needs nothing but to be added here: the chunk is begun, has no
            frames and is not full, and the writer is open.
        is_stale: Whether the lists still have rows that were taken out.
    """

    __slots__ = (
        "bytes", "chunk", "count", "is_stale", "lock", "runs", "takes_values", "target_bytes",
        "values",
    )  # fmt: skip

    def __init__(self, sealer: WriteBuffer, run_count: int) -> None:
        self.lock = threading.RLock()  # one that knows its owner; see `write.row_taker`
        self.values: list[object] = []
        self.runs: tuple[list[object], ...] = tuple([] for _ in range(run_count))
        self.begin(Chunk(sealer), 0)

    def begin(self, chunk: Chunk, target_bytes: int) -> None:
        """Begin an empty chunk."""
        self.chunk = chunk
        self.clear()
        self.count = 0
        self.bytes = 0
        self.target_bytes = target_bytes
        self.takes_values = False

    def clear(self) -> None:
        """Forget the values of the rows."""
        for buffer in (self.values, *self.runs):
            buffer.clear()
        self.is_stale = False

    def clear_stale(self) -> None:
        """Forget rows that were taken out, where a signal has interrupted that."""
        if self.is_stale:
            self.clear()


@dataclass(slots=True, kw_only=True, eq=False)
class TakenRows:
    """The rows of a chunk that is being sealed.

    A signal handler may end a sealing at any step, by Ctrl-C for example. The next sealing goes on
    with these rows, which come before all others.

    Attributes:
        chunk: The chunk.
        first: The number of its first row.
        count: How many rows there are.
        values: The cells of its last rows.
        runs: Their runs.
        frames: The rows before those.
        deletes: Which rows are deletes.
        encoded: Their batches, once they are made.
        failures: How many sealings have failed, not counting interrupts.
    """

    chunk: Chunk
    first: int
    count: int
    values: Sequence[object]
    runs: Sequence[Sequence[object]]
    frames: Sequence[WireRows]
    deletes: Sequence[tuple[int, int]]
    encoded: Encoded | None = None
    failures: int = 0
