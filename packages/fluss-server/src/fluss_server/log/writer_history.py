"""What a bucket remembers of its idempotent writers: the last five batches of each.

A batch that is there already is answered as it was the first time; one that leaves a gap is
refused (Java: `WriterStateManager`, `WriterAppendInfo`). The memory is made from the headers of
the log and kept in a snapshot beside each segment, so that a start need not read the whole log.
It is never an authority over the log: whatever a log holds, it can be opened.
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
from fluss_server.server_errors import refuse

BATCHES_KEPT: Final = 5
EXPIRATION_MS: Final = 7 * 86_400_000  # server.writer-id.expiration-time
_SEQUENCE_MAX: Final = 2**31 - 1

_MAGIC: Final = b"FWS1"
_HEAD = struct.Struct("<4sI")  # magic, checksum of what follows
_COUNTS = struct.Struct("<qi")  # end offset, number of batches
_BATCH = struct.Struct("<qiqqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """Where a batch went: its first offset, the offset behind it, and when."""

    base_offset: int
    next_offset: int
    commit_timestamp: int
    batch_sequence: int = NO_BATCH_SEQUENCE


class WriterStates:
    """The writers of one bucket; used by whoever holds the bucket's turn.

    Args:
        where: The bucket, for error messages.
    """

    __slots__ = ("_where", "_writers")

    def __init__(self, where: str) -> None:
        self._where = where
        self._writers: dict[int, deque[WrittenBatch]] = {}

    def __len__(self) -> int:
        return len(self._writers)

    def judge(
        self, writer_id: int, batch_sequence: int, *, ahead: int | None = None, at: int = -1
    ) -> WrittenBatch | None:
        """Say whether a batch is new.

        Args:
            writer_id: The batch's writer; one that is not idempotent is always new.
            batch_sequence: The batch's number.
            ahead: The number of the writer's batch in front of it in the same request, if any.
            at: The offset it would end at, for the error message.

        Returns:
            What became of the same batch when it came first, or None.

        Raises:
            WriterStateError: It is neither the next one nor one of the last five.
        """
        if writer_id == NO_WRITER_ID:
            return None
        known = self._writers.get(writer_id, ())
        for each in known:
            if each.batch_sequence == batch_sequence:
                return each
        last = ahead
        if last is None:
            last = known[-1].batch_sequence if known else NO_BATCH_SEQUENCE
        wraps = batch_sequence == 0 and last == _SEQUENCE_MAX
        if batch_sequence != last + 1 and not wraps:
            # Clients read the two numbers out of this text (Java has the same).
            raise refuse(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_EXCEPTION,
                f"Out of order batch sequence for writer {writer_id} at offset {at} in "
                f"table-bucket {self._where} : {batch_sequence} (incoming batch seq.), "
                f"{last} (current batch seq.)",
            )
        return None

    def remember(self, writer_id: int, batch: WrittenBatch) -> None:
        """Take note of a batch that was written."""
        if writer_id == NO_WRITER_ID:
            return
        known = self._writers.get(writer_id)
        if known is None:
            known = self._writers[writer_id] = deque(maxlen=BATCHES_KEPT)
        known.append(batch)

    def forget_from(self, offset: int) -> None:
        """Forget what was written at an offset or behind it, because it was taken back."""
        for writer_id, known in list(self._writers.items()):
            while known and known[-1].base_offset >= offset:
                known.pop()
            if not known:
                del self._writers[writer_id]

    def expire(self, *, now_ms: int) -> None:
        """Forget writers that have been silent for a week."""
        oldest = now_ms - EXPIRATION_MS
        for writer_id, known in list(self._writers.items()):
            if known[-1].commit_timestamp < oldest:
                del self._writers[writer_id]

    def to_bytes(self, end_offset: int) -> bytes:
        """A snapshot of what is known of the log up to an offset."""
        batches = list(self._batches())
        body = b"".join(
            [
                _COUNTS.pack(end_offset, len(batches)),
                *(
                    _BATCH.pack(
                        writer_id,
                        each.batch_sequence,
                        each.base_offset,
                        each.next_offset,
                        each.commit_timestamp,
                    )
                    for writer_id, each in batches
                ),
            ]
        )
        return _HEAD.pack(_MAGIC, crc32c(body)) + body

    def load(self, data: bytes) -> int:
        """Take over a snapshot.

        Returns:
            The offset it was made at; the log from there on has to be looked at.

        Raises:
            CorruptDataError: It is not a sound snapshot.
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
        for writer_id, sequence, base, behind, timestamp in _BATCH.iter_unpack(
            body[_COUNTS.size :]
        ):
            batch = WrittenBatch(
                base_offset=base,
                next_offset=behind,
                commit_timestamp=timestamp,
                batch_sequence=sequence,
            )
            self.remember(writer_id, batch)
        return int(end_offset)

    def _batches(self) -> Iterator[tuple[int, WrittenBatch]]:
        for writer_id, known in self._writers.items():
            for each in known:
                yield writer_id, each


def _corrupt(why: str) -> CorruptDataError:
    return CorruptDataError(
        f"A writer snapshot cannot be read: {why}.", what="a writer snapshot", at=0, why=why
    )
