"""Which bucket takes rows without a bucket key.

*Sticky*: all rows of a batch go to one bucket, the next batch to another, so that batches fill.
*Round robin*: row after row to the next bucket, so that even few rows are spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable


def choose_sticky(
    current: int | None, bucket_count: int, has_leader: Callable[[int], bool], *, jitter: float
) -> int:
    """The bucket for the next batch: another than the last, and one with a leader if possible.

    Args:
        current: The bucket of the last batch, None for the first one.
        bucket_count: How many buckets there are.
        has_leader: Whether a bucket has a known leader.
        jitter: A random number from 0 to 1 (not 1 itself).
    """
    start = int(jitter * bucket_count)
    around = [(start + step) % bucket_count for step in range(bucket_count)]
    others = [each for each in around if each != current] or around
    return next((each for each in others if has_leader(each)), others[0])
