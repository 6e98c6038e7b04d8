"""Decides what follows when the fetch of a bucket fails, or brings no rows although there are some.

A decision concerns one bucket and leaves the others alone. It pauses the bucket, changes how it is
fetched, or gives it up, and names what `log.fetcher` must look up before the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from fluss.errors import (
    FlussError,
    OffsetOutOfRangeError,
    RemoteFileNotFoundError,
    RemoteStorageError,
)
from fluss.hints import Hint, HintKey
from fluss.log.plan_fetch import Position
from fluss.net.plan_retry import RetryPolicy, decide_retry, pause_ms

INVALID_COLUMN_PROJECTION_CODE = 34

# After a leader has died, its successor's high watermark lags until the other replicas have asked
# it once; until then it answers without rows. If this lasts longer, the log has lost its end.
LAG_S_MAX = 30.0
# A remote file may be deleted after an answer names it, because its rows have expired: the next
# answer names others. Other failures of the store have been retried where that helps.
REMOTE_ATTEMPTS_MAX = 3
# How long the last fetch may take after the time limit of a failing bucket: a late answer explains
# more than none.
LATE_S_MAX = 1.0


class Recovery(Enum):
    """What to look up about a bucket before it is fetched again."""

    NOTHING = auto()
    LEADER = auto()  # its leader, if it still exists
    RANGE = auto()  # the offsets that can be read
    GIVEN_UP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryContext:
    """What decisions depend on, besides the bucket."""

    policy: RetryPolicy
    patience_s: float  # how long a bucket may fail before it is given up
    now: float
    jitter: float


def decide_refusal(position: Position, error: FlussError, context: RetryContext) -> Recovery:
    """Decide what to do about a bucket whose fetch ended with an error."""
    if error.error_code == INVALID_COLUMN_PROJECTION_CODE and position.pushes_projection:
        # A batch here is older than one of the columns, and the server refuses to project it at
        # all. Whole batches are read instead, and the column is NULL in them.
        position.pushes_projection = False
        return Recovery.NOTHING
    _count(position, context)
    if isinstance(error, OffsetOutOfRangeError) and not _is_over(position, context):
        _pause(position, context, attempt=position.attempts)
        return Recovery.RANGE
    retry = decide_retry(
        context.policy,
        error,
        attempt=position.attempts,
        now=context.now,
        deadline=position.failing_since + context.patience_s,
        jitter=context.jitter,
    )
    if retry is None:
        return give_up(position, error)
    position.paused_until = retry.at
    return Recovery.LEADER if retry.refresh_metadata else Recovery.NOTHING


def decide_remote_failure(position: Position, error: FlussError, context: RetryContext) -> Recovery:
    """Decide what to do about a bucket of which a remote file could not be read."""
    position.remote_attempts += 1
    is_final = isinstance(error, RemoteStorageError) and not isinstance(
        error, RemoteFileNotFoundError
    )
    if is_final or position.remote_attempts >= REMOTE_ATTEMPTS_MAX:
        return give_up(position, error)
    _pause(position, context, attempt=position.remote_attempts)
    return Recovery.NOTHING


def decide_stall(position: Position, high_watermark: int, context: RetryContext) -> Recovery:
    """Decide what to do about a bucket without rows in an answer that had room for them.

    Args:
        position: The bucket; nothing has been read of it in this answer.
        high_watermark: Where its log ends, by the answer.
        context: The time and the limits.
    """
    lags = high_watermark < (position.stop or 0) or (
        position.has_read and high_watermark < position.offset
    )
    if not lags and high_watermark <= max(position.offset, 0):
        position.attempts = 0
        return Recovery.NOTHING
    patience_s = min(context.patience_s, LAG_S_MAX) if lags else context.patience_s
    _count(position, context)
    if context.now - position.failing_since >= patience_s:
        return give_up(
            position, went_backwards(position, high_watermark) if lags else _stalled(position)
        )
    _pause(position, context, attempt=position.attempts)
    return Recovery.RANGE if position.offset < 0 else Recovery.NOTHING


def give_up(position: Position, error: FlussError) -> Recovery:
    """Stop fetching a bucket: its error is raised to the reader."""
    position.error = error
    return Recovery.GIVEN_UP


def forgive(position: Position) -> None:
    """Fetch a bucket again whose error has been reported and may be over."""
    position.error = None
    position.attempts = position.remote_attempts = 0


def out_of_range(position: Position, *, earliest: int, latest: int) -> FlussError | None:
    """The error for an offset that was refused; None where the log has it now."""
    if earliest <= position.offset <= latest or position.offset < 0 or position.is_finished:
        return None
    if position.offset > latest and position.has_read:
        return went_backwards(position, latest)
    if position.offset > latest:
        why = f"the log ends at {latest}: rows were lost, or the offset is of another table"
        hint = Hint(HintKey.BEYOND_THE_END, log_end=latest)
    else:
        why = f"the rows before {earliest} have been removed, because the table keeps no older ones"
        hint = Hint(HintKey.TRIMMED_BEFORE_READ, earliest=earliest, latest=latest)
    return OffsetOutOfRangeError(
        f"Offset {position.offset} of bucket {position.bucket.bucket_id} of {position.path} cannot "
        f"be read: {why}.",
        hint=hint,
        **position.facts,
        earliest_offset=earliest,
        latest_offset=latest,
    )


def went_backwards(position: Position, end: int) -> FlussError:
    """The error for a log that ends before an offset that has been read.

    A cluster that lost all replicas of a bucket may come back with a shorter log, and give
    the same offsets to other rows later. Reading on would mix the two.
    """
    return FlussError(
        f"The log of bucket {position.bucket.bucket_id} of {position.path} went backwards: it ends "
        f"at offset {end}, and {position.offset} has been read already. The cluster has lost rows "
        "that were acknowledged.",
        hint="Read the table again from an offset before that, and check what depends on it.",
        **position.facts,
        high_watermark=end,
    )


def _stalled(position: Position) -> FlussError:
    return FlussError(
        f"Bucket {position.bucket.bucket_id} of {position.path} is reported to have rows at offset "
        f"{position.offset}, but the server sends none.",
        hint=Hint(HintKey.READ_WHAT_IS_THERE),
        **position.facts,
    )


def give_up_at(positions: Iterable[Position], *, now: float, patience_s: float) -> float:
    """When to stop waiting for a fetch that is sent now."""
    failing = [each.failing_since for each in positions if each.attempts]
    return min(failing, default=now) + patience_s + LATE_S_MAX


def _count(position: Position, context: RetryContext) -> None:
    if not position.attempts:
        position.failing_since = min(position.asked_at or context.now, context.now)
    position.attempts += 1


def _is_over(position: Position, context: RetryContext) -> bool:
    return context.now - position.failing_since >= context.patience_s


def _pause(position: Position, context: RetryContext, *, attempt: int) -> None:
    pause = pause_ms(context.policy, attempt=attempt, jitter=context.jitter)
    position.paused_until = context.now + pause / 1_000
