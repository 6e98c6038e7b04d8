"""The sequences of the batches of one bucket, and what a server's errors about them mean.

Every batch of a bucket carries the writer's id and the next sequence: 0, 1, 2, … The server
remembers the last five of each writer and answers a repeated one with its first answer, so a batch
may be retried with its sequence any number of times, and is written once. Two rules keep that true:

* A sequence that was sent stays with its batch, because the attempt may have been written.
* A writer id never starts at 0 again in a bucket. When a bucket has lost track of the writer, its
  batches get a new id, and only those that are certainly not written.

The server's error 31 names the sequence it got and the last one it knows:
`… : <got> (incoming batch seq.), <last> (current batch seq.)`, last = -1 for a writer it does not
know. When a batch is sent, and what follows from an error, is decided in `write.plan_sender`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.write.write_batch import NO_SEQUENCE, NO_WRITER_ID, WriteBatch

# Errors after which a batch is certainly not written. Others may follow the append, such as 12 from
# a leader that was replaced while it waited for its replicas.
_CERTAIN = frozenset({
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.TABLE_NOT_EXIST,
    ErrorCode.RECORD_TOO_LARGE_EXCEPTION,
    ErrorCode.CORRUPT_RECORD_EXCEPTION,
    ErrorCode.INVALID_TABLE_EXCEPTION,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS_EXCEPTION,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_EXCEPTION,
    ErrorCode.UNKNOWN_WRITER_ID_EXCEPTION,
    ErrorCode.INVALID_COLUMN_PROJECTION,
    ErrorCode.INVALID_TARGET_COLUMN,
    ErrorCode.PARTITION_NOT_EXISTS,
    ErrorCode.TABLE_NOT_PARTITIONED_EXCEPTION,
    ErrorCode.PARTITION_SPEC_INVALID_EXCEPTION,
    ErrorCode.AUTHENTICATE_EXCEPTION,
    ErrorCode.AUTHORIZATION_EXCEPTION,
    ErrorCode.DELETION_DISABLED_EXCEPTION,
    ErrorCode.DISK_WRITE_LOCKED,
    ErrorCode.STORAGE_BACKPRESSURE_EXCEPTION,
    ErrorCode.INVALID_BUCKET_ROUTING,
})  # fmt: skip

_SEQUENCES = re.compile(r"(-?\d+) \(incoming batch seq[^)]*\), *(-?\d+) \(current batch seq[^)]*\)")


class SequenceVerdict(Enum):
    """Why a server did not accept the sequence of a batch (errors 31 and 33)."""

    LANDED = auto()  # a later one was written, hence this one too
    TOO_EARLY = auto()  # one before it has not been written yet
    UNKNOWN_WRITER = auto()  # the bucket has lost track of the writer; this batch was not written
    DATA_LOST = auto()  # the bucket has lost batches that it had acknowledged
    IN_DOUBT = auto()  # an earlier attempt may have been written; the server cannot tell


@dataclass(slots=True, eq=False)
class BucketSequences:
    """The writer id and the sequences of one bucket."""

    writer_id: int = NO_WRITER_ID
    next_sequence: int = 0
    last_acked: int = NO_SEQUENCE

    def begin(self, writer_id: int) -> None:
        """Start with a writer id that this bucket has never seen."""
        if writer_id in (NO_WRITER_ID, self.writer_id):
            raise AssertionError(f"writer id {writer_id} must not start at 0 in a bucket again")
        self.writer_id = writer_id
        self.next_sequence = 0
        self.last_acked = NO_SEQUENCE

    def number(self, batch: WriteBatch) -> None:
        """Give a batch that is sent for the first time its sequence."""
        batch.writer_id = self.writer_id
        batch.sequence = self.next_sequence
        self.next_sequence += 1

    def acknowledge(self, batch: WriteBatch) -> None:
        """Note that a batch was written. Answers may come out of order."""
        if batch.writer_id == self.writer_id:
            self.last_acked = max(self.last_acked, batch.sequence)

    def has_passed(self, batch: WriteBatch) -> bool:
        """Whether a batch must have been written, because a later one was."""
        return batch.writer_id == self.writer_id and NO_SEQUENCE < batch.sequence <= self.last_acked

    def close_gaps(self, batches: Iterable[WriteBatch]) -> None:
        """Renumber the batches after one that is certainly not written.

        Only while nothing of the bucket is in flight. The server writes no batch after a missing
        sequence, so none of these was written. Batches with `has_passed` were written before it,
        and keep the sequence under which the server knows them.
        """
        self.next_sequence = self.last_acked + 1
        for batch in batches:
            if not self.has_passed(batch):
                self.number(batch)

    def judge(self, batch: WriteBatch, error: FlussError) -> SequenceVerdict:
        """What error 31 or 33 means for a batch."""
        if self.has_passed(batch):
            return SequenceVerdict.LANDED
        last_known = last_known_sequence(error)
        if batch.sequence != self.last_acked + 1 or self._is_outdated(batch, last_known):
            return SequenceVerdict.TOO_EARLY
        if batch.in_doubt:
            return SequenceVerdict.IN_DOUBT
        if last_known is not None and NO_SEQUENCE < last_known < self.last_acked:
            return SequenceVerdict.DATA_LOST
        return SequenceVerdict.UNKNOWN_WRITER

    def _is_outdated(self, batch: WriteBatch, last_known: int | None) -> bool:
        """Whether the server looked at a batch before it wrote one that is acknowledged by now.

        Requests may reach a server in another order, and an answer waits for all buckets of its
        request. Meanwhile the batch before this one may be written and acknowledged.
        """
        return last_known is not None and batch.acked_before <= last_known < self.last_acked


def is_certainly_unwritten(error: FlussError) -> bool:
    """Whether the batch is certainly not written after this error of a server."""
    return error.error_code in _CERTAIN


def last_known_sequence(error: FlussError) -> int | None:
    """The last sequence of the writer that a server reports; -1 for none, None if not reported."""
    found = _SEQUENCES.search(error.server_trace or error.message)
    return None if found is None else int(found.group(2))
