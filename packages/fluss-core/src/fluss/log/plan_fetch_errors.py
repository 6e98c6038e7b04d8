"""What becomes of a bucket whose fetch was refused, or brought nothing although there is more.

Each decision is made for one bucket and leaves the others alone. It pauses the bucket, changes how
it is asked for, or gives it up, and names what must be found out before the next try. Who finds out
is `log.fetcher`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from fluss.errors import FlussError, OffsetOutOfRangeError
from fluss.hints import Hint, HintKey
from fluss.log.plan_fetch import Position
from fluss.net.plan_retry import RetryPolicy, decide_retry, pause_ms

INVALID_COLUMN_PROJECTION_CODE = 34

# After a leader has died, its successor's high watermark lags until the other replicas have asked
# it once; it answers without rows meanwhile. What lasts longer is a log that has lost its end.
LAG_S_MAX = 30.0
# A remote file may vanish between being named and being read, because its rows have expired: the
# next answer names others. One that stays unreadable is unreadable from here.
REMOTE_ATTEMPTS_MAX = 3
# How much longer than a bucket may go wrong its last fetch may take: an answer says more of what is
# wrong than none.
LATE_S_MAX = 1.0


class Recovery(Enum):
    """What to find out about a bucket before it is fetched again."""

    NOTHING = auto()
    LEADER = auto()  # who leads it now, if it is still there
    RANGE = auto()  # which offsets there are
    GIVEN_UP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryContext:
    """What decisions depend on besides the bucket."""

    policy: RetryPolicy
    patience_s: float  # how long a bucket may go wrong before it is given up
    now: float
    jitter: float


def decide_refusal(position: Position, error: FlussError, moment: RetryContext) -> Recovery:
    """What to do about a bucket whose fetch ended with an error."""
    if error.error_code == INVALID_COLUMN_PROJECTION_CODE and position.pushes_projection:
        # A batch here is older than one of the columns, and the server refuses to project it at
        # all. Whole batches are read instead, and the column is NULL in them.
        position.pushes_projection = False
        return Recovery.NOTHING
    _count(position, moment)
    if isinstance(error, OffsetOutOfRangeError) and not _is_over(position, moment):
        _pause(position, moment, attempt=position.attempts)
        return Recovery.RANGE
    retry = decide_retry(
        moment.policy,
        error,
        attempt=position.attempts,
        now=moment.now,
        deadline=position.failing_since + moment.patience_s,
        jitter=moment.jitter,
    )
    if retry is None:
        return give_up(position, error)
    position.paused_until = retry.at
    return Recovery.LEADER if retry.refresh_metadata else Recovery.NOTHING


def decide_remote_failure(position: Position, error: FlussError, moment: RetryContext) -> Recovery:
    """What to do about a bucket of which a remote file could not be read."""
    position.remote_attempts += 1
    if position.remote_attempts >= REMOTE_ATTEMPTS_MAX:
        return give_up(position, error)
    _pause(position, moment, attempt=position.remote_attempts)
    return Recovery.NOTHING


def decide_stall(position: Position, high_watermark: int, moment: RetryContext) -> Recovery:
    """What to do about a bucket that brought nothing, in an answer that had room for it.

    Args:
        position: The bucket; nothing has been read of it in this answer.
        high_watermark: Where its log ends, as the answer says.
        moment: The moment.
    """
    lags = high_watermark < (position.stop or 0) or (
        position.has_read and high_watermark < position.offset
    )
    if not lags and high_watermark <= max(position.offset, 0):
        position.attempts = 0
        return Recovery.NOTHING
    patience_s = min(moment.patience_s, LAG_S_MAX) if lags else moment.patience_s
    _count(position, moment)
    if moment.now - position.failing_since >= patience_s:
        return give_up(
            position, went_backwards(position, high_watermark) if lags else _stalled(position)
        )
    _pause(position, moment, attempt=position.attempts)
    return Recovery.RANGE if position.offset < 0 else Recovery.NOTHING


def give_up(position: Position, error: FlussError) -> Recovery:
    """Fetch a bucket no more: its error is the reader's."""
    position.error = error
    return Recovery.GIVEN_UP


def forgive(position: Position) -> None:
    """Fetch a bucket again whose error has been reported and may have healed since."""
    position.error = None
    position.attempts = position.remote_attempts = 0


def out_of_range(position: Position, *, earliest: int, latest: int) -> FlussError | None:
    """Why an offset was refused, given what there is; None where it is there now."""
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
        table=str(position.path.table_path),
        bucket=position.bucket.bucket_id,
        offset=position.offset,
        earliest_offset=earliest,
        latest_offset=latest,
    )


def went_backwards(position: Position, end: int) -> FlussError:
    """The log ends before what has been read of it.

    A cluster that lost all replicas of a bucket at once may come back with a shorter log, and give
    the same offsets to other rows later. Reading on would mix the two.
    """
    return FlussError(
        f"The log of bucket {position.bucket.bucket_id} of {position.path} went backwards: it ends "
        f"at offset {end}, and {position.offset} has been read already. The cluster has lost rows "
        "that were acknowledged.",
        hint="Read the table again from an offset before that, and check what depends on it.",
        table=str(position.path.table_path),
        bucket=position.bucket.bucket_id,
        offset=position.offset,
        high_watermark=end,
    )


def _stalled(position: Position) -> FlussError:
    return FlussError(
        f"Bucket {position.bucket.bucket_id} of {position.path} is said to have rows at offset "
        f"{position.offset}, but the server sends none.",
        hint=Hint(HintKey.READ_WHAT_IS_THERE),
        table=str(position.path.table_path),
        bucket=position.bucket.bucket_id,
        offset=position.offset,
    )


def give_up_at(positions: Iterable[Position], *, now: float, patience_s: float) -> float:
    """When to wait no longer for a fetch that leaves now."""
    failing = [each.failing_since for each in positions if each.attempts]
    return min(failing, default=now) + patience_s + LATE_S_MAX


def _count(position: Position, moment: RetryContext) -> None:
    if not position.attempts:
        position.failing_since = min(position.asked_at or moment.now, moment.now)
    position.attempts += 1


def _is_over(position: Position, moment: RetryContext) -> bool:
    return moment.now - position.failing_since >= moment.patience_s


def _pause(position: Position, moment: RetryContext, *, attempt: int) -> None:
    pause = pause_ms(moment.policy, attempt=attempt, jitter=moment.jitter)
    position.paused_until = moment.now + pause / 1_000
