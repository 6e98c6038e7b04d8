"""The plan of writers: batches that were placed by a wrong bucket count of their partition."""

import pytest

from fluss.errors import FlussError, RequestTimeoutError, error_from_code
from fluss.model.paths import PhysicalTablePath
from fluss.write.plan_pinned_sender import PinnedSendPlan
from fluss.write.write_batch import NO_SEQUENCE, WriterSettings
from tests.support.scripted.write_plan import TABLE, PlanHarness, view_of

EU, US = PhysicalTablePath(TABLE, "EU"), PhysicalTablePath(TABLE, "US")
LEADERS = {0: 0, 1: 0, 2: 0, 3: 0}


def misrouted():
    return error_from_code(74, "bucket routing information is missing or invalid")


def counted(count, *, partition_id=1):
    return view_of(EU, partition_id=partition_id, leaders=LEADERS, bucket_count=count)


@pytest.fixture
def harness():
    """A plan that does not know the partition yet."""
    return PlanHarness(view=view_of())


def test_a_right_guess_is_sent_as_it_is(harness):
    batch = harness.add(0, path=EU, bucket_count=4)
    assert harness.next_requests().paths_unknown == {EU}
    harness.view = counted(4)
    assert harness.go() == [(batch,)]


def test_servers_without_counts_take_every_batch(harness):
    batch = harness.add(0, path=EU, bucket_count=2)
    harness.view = counted(0)
    assert harness.go() == [(batch,)]


def test_all_batches_of_a_wrong_guess_are_returned_in_their_order(harness):
    wrong = [harness.add(each, path=EU, bucket_count=2) for each in (0, 1, 0)]
    other = harness.add(0, path=US, bucket_count=2)
    harness.view = counted(4)
    found = harness.next_requests()
    assert found.misplaced == [wrong]
    assert found.requests == []
    assert found.paths_unknown == {US}
    assert set(harness.plan.incomplete()) == {*wrong, other}
    assert not harness.plan.is_idle


def test_nothing_of_the_partition_is_sent_until_they_are_placed(harness):
    first, second = (harness.add(each, path=EU, bucket_count=2) for each in (0, 1))
    harness.view = counted(4)
    harness.next_requests()
    late = harness.add(3, path=EU, bucket_count=4)
    assert harness.go() == []
    parts = {
        first: [harness.made(3, path=EU, bucket_count=4), harness.made(2, path=EU, bucket_count=4)],
        second: [harness.made(3, path=EU, bucket_count=4)],
    }
    harness.plan.placed_again(EU, list(parts.items()), now=harness.now)
    sent = harness.sent()
    # The rows of the first batch come before those of the second, and these before later ones.
    assert [each for each in sent if each.bucket_id == 3] == [
        parts[first][0],
        parts[second][0],
        late,
    ]
    assert parts[first][1] in sent
    harness.written(*sent)
    assert harness.plan.is_idle


def test_a_guess_that_is_queued_after_a_batch_that_knew_better_is_placed_again(harness):
    """Another thread may learn the count, and queue its batch, while rows are being encoded."""
    harness.view = counted(4)
    knew = harness.add(0, path=EU, bucket_count=4)
    guess = harness.add(0, path=EU, bucket_count=2)
    later = harness.add(2, path=EU, bucket_count=4)  # of the thread that guessed before
    found = harness.next_requests()
    assert found.misplaced == [[guess]]
    assert found.requests == []
    placed = harness.made(2, path=EU, bucket_count=4)
    harness.plan.placed_again(EU, [(guess, [placed])], now=harness.now)
    sent = harness.sent()
    assert sorted(map(id, sent)) == sorted(map(id, [knew, placed, later]))
    assert [each for each in sent if each.bucket_id == 2] == [placed, later]


def test_a_batch_that_was_refused_for_its_count_is_placed_again(harness):
    harness.view = counted(2)
    first, second = harness.add(0, path=EU, bucket_count=2), harness.add(0, path=EU, bucket_count=2)
    harness.leave()
    late = harness.add(1, path=EU, bucket_count=2)
    harness.view = counted(4, partition_id=2)
    assert harness.fail(first, misrouted()) == []
    # The second one is still in flight: its rows must come before those of the late one.
    assert harness.next_requests().misplaced == []
    assert harness.fail(second, misrouted()) == []
    found = harness.next_requests()
    assert found.misplaced == [[first, second, late]]
    assert [each.sequence for each in (first, second)] == [NO_SEQUENCE] * 2
    placed = harness.made(0, path=EU, bucket_count=4)
    harness.plan.placed_again(EU, [(first, [placed])], now=harness.now)
    harness.later(1)
    assert harness.sent() == [placed]
    assert placed.sequence == 0


def test_a_batch_that_may_be_written_is_not_placed_again(harness):
    harness.view = counted(2)
    batch = harness.add(0, path=EU, bucket_count=2)
    harness.leave()
    assert harness.fail(batch, RequestTimeoutError("no answer")) == []
    harness.view = counted(4, partition_id=2)
    (result,) = harness.next_requests().results
    assert result.batch is batch
    assert "may have been written" in str(result.error)
    assert harness.plan.is_idle


def test_a_batch_that_is_given_up_meanwhile_is_left_out(harness):
    batch = harness.add(0, path=EU, bucket_count=2)
    harness.view = counted(4)
    harness.next_requests()
    assert harness.plan.is_replacing(batch)
    (result,) = harness.plan.give_up([batch], FlussError("closed"))
    assert result.batch is batch
    assert not harness.plan.is_replacing(batch)
    harness.plan.placed_again(EU, [], now=harness.now)
    assert harness.plan.is_idle


def test_a_count_that_stays_wrong_is_an_error(harness):
    harness.view = counted(2)
    batch = harness.add(0, path=EU, bucket_count=2)
    for _ in range(2):
        harness.leave()
        assert harness.fail(batch, misrouted()) == []
        harness.later(5)
    harness.leave()
    (result,) = harness.fail(batch, misrouted())
    assert result.error.error_code == 74
    assert "have not been written" in str(result.error)


def test_batches_with_their_own_sequences_fail():
    harness = PlanHarness(view=counted(4), writer_id=None)
    harness.plan = PinnedSendPlan(WriterSettings())
    batch = harness.made(0, path=EU, bucket_count=2)
    batch.writer_id, batch.sequence = 5, 0
    harness.plan.add(batch, now=harness.now)
    (result,) = harness.next_requests().results
    assert "created again with 4 buckets" in str(result.error)
    assert harness.plan.is_idle
