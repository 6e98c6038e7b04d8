"""The plan for batches with their own writer id and sequences."""

from fluss.errors import ConnectError, LimitExceededError, WriterStateError
from fluss.write.plan_pinned_sender import PinnedSendPlan
from fluss.write.write_batch import WriteBatch, WriterSettings
from tests.support.scripted.write_plan import PATH, ROUTE, PlanHarness, out_of_order

WRITER = 2**62 + 5


class PinnedHarness(PlanHarness):
    def __init__(self):
        super().__init__(writer_id=None)
        self.plan = PinnedSendPlan(WriterSettings())

    def add_from(self, first, count, bucket_id=0):
        return [self.add_numbered(bucket_id, first + each) for each in range(count)]

    def add_numbered(self, bucket_id, sequence):
        batch = WriteBatch(
            route=ROUTE,
            path=PATH,
            bucket_id=bucket_id,
            body=None,
            row_count=1,
            size_bytes=100,
            writer_id=WRITER,
            sequence=sequence,
        )
        self.plan.add(batch, now=self.now)
        return batch


def _settled(results):
    return {each.batch.sequence: each.error for each in results}


def test_batches_go_with_the_numbers_they_bring_and_no_writer_id_is_asked_for():
    harness = PinnedHarness()
    batches = harness.add_from(40, 7)
    found = harness.next_requests()
    assert not found.needs_writer_id
    assert [each.batches[0] for each in found.requests] == batches[:5]
    assert [each.sequence for each in batches] == list(range(40, 47))
    assert {each.writer_id for each in batches} == {WRITER}


def test_a_batch_is_sent_again_with_its_number():
    harness = PinnedHarness()
    (batch,) = harness.add_from(40, 1)
    harness.sent()
    assert harness.fail(batch, ConnectError("gone")) == []
    harness.now += 1
    assert harness.sent() == [batch]
    assert (batch.writer_id, batch.sequence) == (WRITER, 40)


def test_a_batch_that_comes_before_its_turn_is_sent_again():
    harness = PinnedHarness()
    first, second = harness.add_from(40, 2)
    harness.sent()
    assert harness.fail(second, out_of_order(41, 39)) == []
    harness.written(first)
    harness.now += 1
    assert harness.sent() == [second]


def test_a_bucket_that_refuses_the_next_number_fails_as_a_whole_and_gets_no_other_id():
    harness = PinnedHarness()
    batches = harness.add_from(40, 8)
    other = harness.add_numbered(1, 3)
    harness.sent()
    refused = harness.fail(batches[0], out_of_order(40, 47))
    assert [type(each.error) for each in refused] == [WriterStateError]
    for each in batches[1:5]:
        assert harness.fail(each, out_of_order(each.sequence, 47))
    found = harness.next_requests()
    assert set(_settled(found.results)) == {45, 46, 47}
    assert not found.needs_writer_id
    harness.written(other)
    assert harness.plan.is_idle


def test_an_idle_bucket_continues_with_any_sequence():
    harness = PinnedHarness()
    (batch,) = harness.add_from(40, 1)
    harness.sent()
    harness.fail(batch, out_of_order(40, 47))
    again = harness.add_from(48, 2)
    assert harness.sent() == again
    harness.written(again[0])
    harness.written(again[1])
    assert harness.plan.is_idle


def test_what_is_refused_for_good_stops_the_bucket_and_moves_no_number_up():
    harness = PinnedHarness()
    batches = harness.add_from(0, 6)
    harness.sent()
    refused = harness.fail(batches[0], LimitExceededError("too large", 13))
    assert [each.batch for each in refused] == batches[:1]
    for each in batches[1:5]:
        assert harness.fail(each, out_of_order(each.sequence, -1))
    assert list(_settled(harness.next_requests().results)) == [5]
    assert [each.sequence for each in batches] == list(range(6))
    assert harness.plan.is_idle
