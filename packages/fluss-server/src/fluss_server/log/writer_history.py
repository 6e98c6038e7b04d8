"""The idempotent writers of a bucket: the last five batches of each.

A duplicate batch gets the same response as the first one; a batch that leaves a gap is refused
(Java: `WriterStateManager`, `WriterAppendInfo`). The history is built from the headers of the log,
and stored in a snapshot beside each segment, so that a start need not read the whole log. It never
overrules the log: every log can be opened.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptDataError
from fluss.records.log.log_header import NO_BATCH_SEQUENCE, NO_WRITER_ID
from fluss_server.server_errors import request_error

BATCHES_KEPT: Final = 5
EXPIRATION_MS: Final = 7 * 86_400_000  # server.writer-id.expiration-time
_SEQUENCE_MAX: Final = 2**31 - 1

_MAGIC: Final = b"FWS1"
_HEAD = struct.Struct("<4sI")  # magic, checksum of what follows
_COUNTS = struct.Struct("<qi")  # end offset, number of batches
_BATCH = struct.Struct("<qiqqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """The place of a batch in the log: its first offset, the offset after it, and its time."""

    base_offset: int
    next_offset: int
    commit_timestamp: int
    batch_sequence: int = NO_BATCH_SEQUENCE


class WriterHistory:
    """The writers of one bucket. The caller holds the bucket's lock.

    Args:
        where: The bucket's name, for error messages.
    """

    __slots__ = ("_where", "_writers")

    def __init__(self, where: str) -> None:
        self._where = where
        self._writers: dict[int, deque[WrittenBatch]] = {}

    def __len__(self) -> int:
        return len(self._writers)

    def find_duplicate(
        self, writer_id: int, batch_sequence: int, *, ahead: int | None = None, at: int = -1
    ) -> WrittenBatch | None:
        """Return the place of an earlier copy of a batch; None for a new batch.

        Args:
            writer_id: The batch's writer; a batch without an idempotent writer is always new.
            batch_sequence: The batch's sequence number.
            ahead: The sequence of the writer's previous batch in the same request, if any.
            at: The offset at which it would end, for the error message.

        Raises:
            WriterStateError: It is neither the next batch nor one of the last five.
        """
        if writer_id == NO_WRITER_ID:
            return None
        known = self._writers.get(writer_id, ())
        for batch in known:
            if batch.batch_sequence == batch_sequence:
                return batch
        last = ahead
        if last is None:
            last = known[-1].batch_sequence if known else NO_BATCH_SEQUENCE
        wraps = batch_sequence == 0 and last == _SEQUENCE_MAX
        if batch_sequence != last + 1 and not wraps:
            # Clients parse the two numbers from this text, which is Java's.
            raise request_error(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_EXCEPTION,
                f"Out of order batch sequence for writer {writer_id} at offset {at} in "
                f"table-bucket {self._where} : {batch_sequence} (incoming batch seq.), "
                f"{last} (current batch seq.)",
            )
        return None

    def remember(self, writer_id: int, batch: WrittenBatch) -> None:
        """Record a batch that was written."""
        if writer_id == NO_WRITER_ID:
            return
        known = self._writers.get(writer_id)
        if known is None:
            known = self._writers[writer_id] = deque(maxlen=BATCHES_KEPT)
        known.append(batch)

    def forget_from(self, offset: int) -> None:
        """Remove the batches from an offset on, because they were cut off."""
        for writer_id, known in list(self._writers.items()):
            while known and known[-1].base_offset >= offset:
                known.pop()
            if not known:
                del self._writers[writer_id]

    def expire(self, *, now_ms: int) -> None:
        """Remove writers that have been idle for a week."""
        oldest = now_ms - EXPIRATION_MS
        for writer_id, known in list(self._writers.items()):
            if known[-1].commit_timestamp < oldest:
                del self._writers[writer_id]

    def to_bytes(self, end_offset: int) -> bytes:
        """Encode a snapshot of the history up to an offset."""
        batches = list(self._batches())
        body = b"".join(
            [
                _COUNTS.pack(end_offset, len(batches)),
                *(
                    _BATCH.pack(
                        writer_id,
                        batch.batch_sequence,
                        batch.base_offset,
                        batch.next_offset,
                        batch.commit_timestamp,
                    )
                    for writer_id, batch in batches
                ),
            ]
        )
        return _HEAD.pack(_MAGIC, crc32c(body)) + body

    def load(self, data: bytes) -> int:
        """Load a snapshot.

        Returns:
            The offset of the snapshot; the log from there on must be read.

        Raises:
            CorruptDataError: The snapshot is damaged.
        """
        if len(data) < _HEAD.size + _COUNTS.size:
            raise _corrupt(f"it has {len(data)} bytes")
        magic, crc = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size :]
        if magic != _MAGIC or crc32c(body) != crc:
            raise _corrupt("its checksum is wrong")
        end_offset, count = _COUNTS.unpack_from(body)
        if len(body) != _COUNTS.size + count * _BATCH.size:
            raise _corrupt(f"{count} batches do not fit it")
        for writer_id, sequence, base, next_offset, timestamp in _BATCH.iter_unpack(
            body[_COUNTS.size :]
        ):
            batch = WrittenBatch(
                base_offset=base,
                next_offset=next_offset,
                commit_timestamp=timestamp,
                batch_sequence=sequence,
            )
            self.remember(writer_id, batch)
        return int(end_offset)

    def _batches(self) -> Iterator[tuple[int, WrittenBatch]]:
        for writer_id, known in self._writers.items():
            for batch in known:
                yield writer_id, batch


def _corrupt(why: str) -> CorruptDataError:
    return CorruptDataError(
        f"A writer snapshot cannot be read: {why}.", what="a writer snapshot", at=0, why=why
    )
