"""Whether a failed request is made again, when, and whether metadata must be fetched first.

The error itself knows whether a retry can help (`is_retriable`) and whether the leader may have
moved (`refresh_metadata`); here are only the pauses and the limits. What is not here: the rules for
idempotent batches, which must keep their order (`write.plan_idempotence`).
"""

from __future__ import annotations

from dataclasses import dataclass

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError

JITTER = 0.2  # every pause is up to 20 % shorter or longer, so that clients do not retry in step

# A request that counted the buckets of its partition wrongly is made again with fresh metadata. If
# that has the same count, further attempts cannot succeed; one is spared for a late server.
ROUTING_ATTEMPTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to pause and how often to try."""

    attempts_max: int = 2**31 - 1
    delay_first_ms: int = 20
    delay_ms_max: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retry the request at `at`, on the clock that gave `now`."""

    at: float
    refresh_metadata: bool


def decide_retry(
    policy: RetryPolicy,
    error: BaseException,
    *,
    attempt: int,
    now: float,
    deadline: float,
    jitter: float,
) -> Retry | None:
    """Decide what follows the failed attempt number `attempt` (the first is 1).

    Args:
        policy: Pauses and limits.
        error: The error of the attempt.
        attempt: How many attempts have been made.
        now: The present, in seconds of any monotonic clock.
        deadline: When the caller stops waiting, on the same clock.
        jitter: A random number from 0 to 1; spreads the pauses.

    Returns:
        When to retry, or None to give up.
    """
    if not isinstance(error, FlussError) or not error.is_retriable:
        return None
    if attempt >= policy.attempts_max:
        return None
    is_misrouted = error.error_code == ErrorCode.INVALID_BUCKET_ROUTING
    if is_misrouted and attempt >= ROUTING_ATTEMPTS_MAX:
        return None
    at = now + pause_ms(policy, attempt=attempt, jitter=jitter) / 1_000
    if at >= deadline:
        return None
    return Retry(at=at, refresh_metadata=error.refresh_metadata)


def pause_ms(policy: RetryPolicy, *, attempt: int, jitter: float) -> float:
    """The pause after attempt number `attempt`: doubling, bounded, spread by `jitter`."""
    doublings = min(attempt - 1, 30)
    pause = min(policy.delay_first_ms * 2.0**doublings, policy.delay_ms_max)
    return pause * (1 + JITTER * (2 * jitter - 1))
