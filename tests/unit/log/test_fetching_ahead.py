"""Fetching ahead: little for a reader that may stop soon, more for one that continues."""

from dataclasses import replace

import pytest

from fluss.log.log_services import BUCKET_BYTES_KEPT, BUCKET_BYTES_SCANNED, limits_of
from fluss.log.plan_fetch import BUCKET_BYTES_FIRST, FetchLimits
from fluss.model.options.config import Config

MIB = 1024 * 1024
MOST = FetchLimits(bytes_max_for_bucket_scanned=2 * MIB, unread_bytes_max=32 * MIB)


def test_a_caller_that_reads_on_is_fetched_for_further_ahead_then_in_larger_answers():
    limits = MOST.first(None)
    seen = []
    for _ in range(6):
        seen.append((limits.unread_bytes_max // MIB, limits.bytes_max_for_bucket // MIB))
        limits = limits.grown(MOST)
    assert seen == [(4, 1), (8, 1), (16, 1), (32, 1), (32, 2), (32, 2)]


def test_a_caller_of_a_few_rows_fetches_little_of_each_bucket():
    limits = MOST.first(10)
    assert limits.bytes_max_for_bucket == limits.unread_bytes_max == BUCKET_BYTES_FIRST


def test_a_caller_that_keeps_all_is_answered_in_parts_that_grow():
    most = limits_of(Config()).keeping
    limits = replace(most, bytes_max_for_bucket=MIB)
    seen = []
    for _ in range(6):
        seen.append((limits.unread_bytes_max // MIB, limits.bytes_max_for_bucket // MIB))
        limits = limits.grown(most)
    assert seen == [(64, 1), (64, 2), (64, 4), (64, 8), (64, 8), (64, 8)]
    assert most.bytes_max_for_bucket == BUCKET_BYTES_KEPT


@pytest.mark.parametrize(("asked", "unread"), [(1, 4), (2, 8), (4, 8), (8, 16), (16, 32)], ids=str)
def test_what_may_be_unread_of_a_bucket_grows_less_than_what_is_asked(asked, unread):
    limits = FetchLimits(bytes_max_for_bucket=asked * MIB)
    assert limits.unread_bytes_max_for_bucket == unread * MIB


def test_a_limit_that_the_user_set_for_a_bucket_is_never_exceeded():
    given = limits_of(Config({"scanner.log.fetch.max-bytes-for-bucket": "1mb"}))
    limits = given.first(None)
    for _ in range(8):
        limits = limits.grown(given)
    assert limits.bytes_max_for_bucket == given.scanning.bytes_max_for_bucket == MIB
    assert given.keeping.bytes_max_for_bucket == given.keeping.scanning.bytes_max_for_bucket == MIB
    assert limits_of(Config()).scanning.bytes_max_for_bucket == BUCKET_BYTES_SCANNED
