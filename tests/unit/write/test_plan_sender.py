import pytest
from hypothesis import given, settings, strategies as st

from fluss.errors import (
    ConnectError,
    LeaderChangedError,
    LimitExceededError,
    RequestTimeoutError,
    TableNotFoundError,
    WriterStateError,
    error_from_code,
)
from fluss.model.paths import PhysicalTablePath
from fluss.write.write_batch import Route
from tests.support.scripted.write_plan import PATH, ROUTE, TABLE, PlanHarness, out_of_order, view_of

PARTITION = PhysicalTablePath(TABLE, "EU")


# --- what goes together --------------------------------------------------------------------------


def test_the_buckets_of_one_server_share_a_request():
    harness = PlanHarness()
    a, b, c = harness.add(0), harness.add(1), harness.add(2)
    assert harness.go() == [(a, b), (c,)]


def test_a_request_never_holds_two_batches_of_a_bucket():
    harness = PlanHarness()
    batches = harness.add_many(3)
    assert harness.go() == [(each,) for each in batches]


def test_a_request_is_not_larger_than_allowed():
    harness = PlanHarness(request_bytes_max=250)
    batches = [harness.add(0), harness.add(1), harness.add(0), harness.add(1)]
    assert [len(each) for each in harness.go()] == [2, 2]
    small = PlanHarness(request_bytes_max=150)
    small.add(0)
    small.add(1)
    assert [len(each) for each in small.go()] == [1, 1]
    assert len(batches) == 4


@pytest.mark.parametrize(
    "other",
    [
        Route(table_id=8, is_kv=False, schema_id=1),
        Route(table_id=7, is_kv=True, schema_id=1),
        Route(table_id=7, is_kv=False, schema_id=1, target_columns=(0, 1)),
        Route(table_id=7, is_kv=False, schema_id=1, agg_mode=1),
    ],
)
def test_only_batches_of_one_route_travel_together(other):
    harness = PlanHarness()
    harness.add(0)
    harness.add(1, route=other)
    if other.table_id != ROUTE.table_id:
        assert harness.next_requests().paths_unknown == {PATH}
    else:
        assert [len(each) for each in harness.go()] == [1, 1]


def test_five_batches_of_a_bucket_are_in_flight_and_the_next_is_sent_with_the_first_answer():
    harness = PlanHarness()
    batches = harness.add_many(7)
    assert harness.sent() == batches[:5]
    assert harness.sent() == []
    harness.written(batches[0])
    assert harness.sent() == [batches[5]]


def test_numbers_are_given_when_a_batch_is_first_sent():
    harness = PlanHarness()
    batches = harness.add_many(3)
    harness.sent()
    assert [(each.writer_id, each.sequence) for each in batches] == [(0, 0), (0, 1), (0, 2)]


def test_without_idempotence_batches_carry_no_numbers():
    harness = PlanHarness(writer_id=None, is_idempotent=False)
    batch = harness.add()
    assert harness.sent() == [batch]
    assert (batch.writer_id, batch.sequence) == (-1, -1)


def test_nothing_is_sent_before_there_is_a_writer_id():
    harness = PlanHarness(writer_id=None)
    batch = harness.add()
    plan = harness.next_requests()
    assert plan.needs_writer_id
    assert plan.requests == []
    harness.plan.take_writer_id(3)
    assert harness.sent() == [batch]


def test_a_writer_id_is_never_taken_twice():
    harness = PlanHarness(writer_id=3)
    with pytest.raises(WriterStateError):
        harness.plan.take_writer_id(3)


def test_a_bucket_without_a_leader_waits_and_is_asked_for():
    harness = PlanHarness(view=view_of(leaders={0: None, 1: 0}))
    harness.add(0)
    led = harness.add(1)
    plan = harness.next_requests()
    assert plan.paths_unknown == {PATH}
    assert [each.batches for each in plan.requests] == [[led]]


def test_a_partition_is_asked_for_until_it_has_an_id():
    harness = PlanHarness()
    batch = harness.add(path=PARTITION)
    assert harness.next_requests().paths_unknown == {PARTITION}
    harness.view = view_of(PARTITION, partition_id=5)
    assert harness.sent() == [batch]
    assert batch.partition_id == 5


# --- attempts that fail --------------------------------------------------------------------------


@pytest.mark.parametrize("code", [12, 44, 1, 21, 25, 28])
def test_an_attempt_is_repeated_with_its_number_in_its_place(code):
    harness = PlanHarness()
    batches = harness.add_many(3)
    harness.sent()
    for each in batches:
        assert harness.fail(each, error_from_code(code, "not now")) == []
    assert harness.sent() == []
    again = []
    for _ in batches:
        harness.later(5)
        (one,) = harness.sent()
        again.append((one, one.sequence))
        harness.written(one)
    assert again == [(each, index) for index, each in enumerate(batches)]


def test_order_is_kept_when_only_the_first_fails():
    harness = PlanHarness()
    batches = harness.add_many(6)
    harness.sent()
    harness.fail(batches[0], LeaderChangedError("moved"))
    for number, each in enumerate(batches[1:5], start=1):
        assert harness.fail(each, out_of_order(number, -1)) == []
    order = []
    while not harness.plan.is_idle:
        harness.later(2)
        for each in harness.sent():
            order.append(each)
            harness.written(each)
    assert order == batches
    assert [each.sequence for each in batches] == list(range(6))


def test_pauses_double_and_set_the_time_to_wake_up():
    harness = PlanHarness()
    harness.add()
    (batch,) = harness.sent()
    harness.fail(batch, ConnectError("refused"))
    assert harness.next_requests().wake_at == pytest.approx(harness.now + 0.02)
    harness.later(0.02)
    harness.sent()
    harness.fail(batch, ConnectError("refused"))
    assert harness.next_requests().wake_at == pytest.approx(harness.now + 0.04)


def test_a_batch_is_given_up_when_its_bucket_made_no_progress():
    harness = PlanHarness(delivery_timeout_ms=90_000)
    batch = harness.add(rows=3)
    harness.sent()
    harness.fail(batch, LeaderChangedError("moved"))
    harness.later(90)
    (settled,) = harness.next_requests().results
    assert settled.batch is batch
    assert isinstance(settled.error, RequestTimeoutError)
    assert settled.error.rows == 3
    assert "90 s" in settled.error.message
    assert "moved" in settled.error.message
    assert harness.plan.is_idle


def test_progress_of_a_bucket_puts_the_end_off():
    harness = PlanHarness(delivery_timeout_ms=90_000, in_flight_max=1)
    first, second = harness.add_many(2)
    harness.sent()
    harness.later(80)
    harness.written(first)
    harness.later(80)
    assert harness.sent() == [second]


def test_without_retries_the_first_error_is_the_last():
    harness = PlanHarness(retries_max=0)
    batch = harness.add()
    harness.sent()
    (settled,) = harness.fail(batch, LeaderChangedError("moved"))
    assert isinstance(settled.error, LeaderChangedError)


def test_a_batch_that_a_server_finds_too_large_is_not_sent_again():
    harness = PlanHarness()
    batch = harness.add()
    harness.leave()
    (settled,) = harness.fail(batch, error_from_code(13, "too large"))
    assert isinstance(settled.error, LimitExceededError)
    assert "have not been written" in str(settled.error)
    assert not settled.error.facts["in_doubt"]
    harness.later(100)
    assert harness.sent() == []
    assert harness.plan.is_idle


def test_the_error_names_the_rows_and_whether_they_are_in_doubt():
    harness = PlanHarness()
    certain, doubtful = harness.add(0, rows=2), harness.add(1, rows=5)
    harness.leave()
    (first,) = harness.fail(certain, error_from_code(57, "deletes are disabled"))
    (second,) = harness.fail(doubtful, error_from_code(-1, "NullPointerException"))
    assert "2 rows for bucket 0 of db.t failed, they have not been written" in first.error.message
    assert not first.error.in_doubt
    assert "may have been written or not" in second.error.message
    assert (second.error.in_doubt, second.error.bucket, second.error.table) == (True, 1, "db.t")
    assert "before you write these rows again" in second.error.hint


def test_rows_that_wait_after_a_batch_in_doubt_were_never_sent():
    harness = PlanHarness(delivery_timeout_ms=1_000, in_flight_max=1)
    sent, waiting = harness.add_many(2)
    harness.leave()
    harness.fail(sent, RequestTimeoutError("no answer", hint="Is the server hung?"))
    harness.later(1)
    first, second = harness.next_requests().results
    assert [first.batch, second.batch] == [sent, waiting]
    assert "failed, they were sent and may have been written or not: No batch" in str(first.error)
    assert first.error.hint.startswith("Look what the table holds before")
    assert first.error.hint.endswith("Is the server hung?")
    assert "failed, they were never sent: No batch of the bucket" in second.error.message
    assert second.error.hint.startswith("They can be written again.")
    assert not second.error.in_doubt


# --- holes in the numbers ------------------------------------------------------------------------


def test_a_duplicate_is_a_success():
    harness = PlanHarness()
    batch = harness.add()
    harness.sent()
    (settled,) = harness.fail(batch, error_from_code(32, "duplicate"))
    assert settled.error is None
    assert harness.plan.is_idle


def test_error_31_for_what_has_been_passed_is_a_success():
    harness = PlanHarness()
    first, second = harness.add_many(2)
    harness.sent()
    harness.fail(first, ConnectError("gone"))
    harness.written(second)
    harness.later(1)
    harness.sent()
    (settled,) = harness.fail(first, out_of_order(0, 1))
    assert settled.error is None


def test_later_batches_move_up_only_when_nothing_is_in_flight():
    harness = PlanHarness()
    bad, *good = harness.add_many(4)
    harness.sent()
    (settled,) = harness.fail(bad, LimitExceededError("too large", 13))
    assert settled.error is not None
    assert harness.fail(good[0], out_of_order(1, -1)) == []
    assert harness.sent() == []  # two are still in flight with their old sequences
    assert [each.sequence for each in good] == [1, 2, 3]
    harness.fail(good[1], out_of_order(2, -1))
    harness.fail(good[2], out_of_order(3, -1))
    order = []
    while not harness.plan.is_idle:
        harness.later(1)
        for each in harness.sent():
            order.append((each, each.sequence, each.writer_id))
            harness.written(each)
    assert order == [(each, index, 0) for index, each in enumerate(good)]


def test_a_forgotten_writer_gets_a_new_id_and_nothing_is_lost():
    harness = PlanHarness()
    old = harness.add()
    harness.sent()
    harness.written(old)
    batches = harness.add_many(2)
    harness.sent()
    assert harness.fail(batches[0], out_of_order(1, -1)) == []
    assert harness.fail(batches[1], out_of_order(2, -1)) == []
    harness.later(1)
    plan = harness.next_requests()
    assert plan.needs_writer_id
    assert plan.requests == []
    harness.plan.take_writer_id(9)
    sent = []
    while not harness.plan.is_idle:
        harness.later(1)
        for each in harness.sent():
            sent.append((each, each.writer_id, each.sequence))
            harness.written(each)
    assert sent == [(batches[0], 9, 0), (batches[1], 9, 1)]


def test_other_buckets_keep_their_writer_id():
    harness = PlanHarness()
    lost, sound = harness.add(0), harness.add(1)
    harness.sent()
    harness.written(sound)
    harness.fail(lost, error_from_code(33, "unknown"))
    harness.next_requests()
    harness.plan.take_writer_id(9)
    harness.later(1)
    next_one = harness.add(1)
    assert set(harness.sent()) == {lost, next_one}
    assert (lost.writer_id, lost.sequence) == (9, 0)
    assert (next_one.writer_id, next_one.sequence) == (0, 1)


def test_a_batch_in_doubt_is_not_written_with_a_new_id():
    harness = PlanHarness()
    doubtful, sound = harness.add_many(2)
    harness.sent()
    harness.fail(doubtful, ConnectError("gone"))
    assert harness.fail(sound, out_of_order(1, -1)) == []
    harness.later(1)
    assert harness.sent() == [doubtful]
    (settled,) = harness.fail(doubtful, out_of_order(0, -1))
    assert isinstance(settled.error, WriterStateError)
    assert settled.error.in_doubt
    assert harness.next_requests().needs_writer_id
    harness.plan.take_writer_id(9)
    harness.later(1)
    assert harness.sent() == [sound]
    assert (sound.writer_id, sound.sequence) == (9, 0)


def test_batches_after_one_in_doubt_fail_too():
    harness = PlanHarness(delivery_timeout_ms=10_000)
    first, second = harness.add_many(2)
    harness.sent()
    harness.fail(first, ConnectError("gone"))
    harness.fail(second, ConnectError("gone"))
    harness.later(10)
    results = harness.next_requests().results
    assert [each.batch for each in results] == [first, second]
    assert all(each.error.in_doubt for each in results)


def test_lost_acknowledged_rows_are_reported():
    harness = PlanHarness()
    harness.written(*[harness.sent()[0] for _ in harness.add_many(1)])
    for _ in range(3):
        harness.add()
        harness.written(*harness.sent())
    batch = harness.add()
    harness.sent()
    (settled,) = harness.fail(batch, out_of_order(4, 1))
    assert isinstance(settled.error, WriterStateError)
    assert "lost rows of this writer" in settled.error.message
    assert not settled.error.in_doubt


def test_a_batch_that_was_refused_before_the_one_ahead_of_it_was_written_is_sent_again():
    # The server saw the third batch before the second one. Its refusal waited for the other
    # buckets of the request, and came after the acknowledgement of the second.
    harness = PlanHarness()
    first, second, third = harness.add_many(3)
    assert harness.sent() == [first, second, third]
    harness.written(first, second)
    assert not harness.fail(third, out_of_order(2, 0))
    harness.later(1)
    assert harness.sent() == [third]
    assert (third.writer_id, third.sequence) == (0, 2)
    (settled,) = harness.fail(third, out_of_order(2, 0))
    assert "lost rows of this writer" in settled.error.message


def test_a_batch_that_was_never_sent_leaves_no_hole():
    harness = PlanHarness(view=view_of(leaders={0: None}), delivery_timeout_ms=1_000)
    harness.add()
    harness.later(1)
    (settled,) = harness.next_requests().results
    assert "no leader was found" in settled.error.message
    harness.view = view_of()
    batch = harness.add()
    assert harness.sent() == [batch]
    assert batch.sequence == 0


# --- pressure, giving up ------------------------------------------------------------


def test_pressure_holds_a_bucket_back_with_its_square():
    harness = PlanHarness(throttle_ms_max=3_000)
    first, second = harness.add_many(2)
    harness.sent()
    harness.plan.note_pressure(first, 0.5, now=harness.now)
    harness.written(first, second)
    third = harness.add()
    assert harness.sent() == []
    harness.later(0.74)
    assert harness.sent() == []
    harness.later(0.02)
    assert harness.sent() == [third]


def test_a_rejection_under_pressure_is_pressure_in_full():
    harness = PlanHarness(throttle_ms_max=3_000)
    batch = harness.add()
    harness.sent()
    assert harness.fail(batch, error_from_code(72, "slow down")) == []
    harness.later(2.9)
    assert harness.sent() == []
    harness.later(0.2)
    assert harness.sent() == [batch]
    assert not batch.in_doubt


def test_what_waits_for_a_table_can_be_given_up():
    harness = PlanHarness()
    harness.add(0)
    in_flight = harness.sent()
    waiting = [harness.add(1), harness.add(path=PARTITION)]
    error = TableNotFoundError("dropped")
    results = harness.plan.give_up(harness.plan.waiting_for(TABLE), error)
    assert [each.batch for each in results] == waiting
    assert all(isinstance(each.error, TableNotFoundError) for each in results)
    assert list(harness.plan.incomplete()) == in_flight


# --- all of it ------------------------------------------------------------


class Bucket:
    """A bucket as Fluss has it: takes the next number, knows the last five, forgets on demand."""

    def __init__(self):
        self.log = []
        self.writers = {}

    def append(self, batch):
        last = self.writers.get(batch.writer_id, -1)
        if batch.sequence == last + 1:
            self.writers[batch.writer_id] = batch.sequence
            self.log.append(id(batch))
            return None
        if last - 5 < batch.sequence <= last:
            return None
        return out_of_order(batch.sequence, last)


@settings(max_examples=150)
@given(st.data())
def test_no_batch_is_written_twice_lost_or_out_of_order_whatever_happens(data):
    harness, bucket = PlanHarness(), Bucket()
    batches = harness.add_many(data.draw(st.integers(1, 12)))
    done, failed = [], []

    def settle(results):
        for each in results:
            (done if each.error is None else failed).append(each.batch)

    fates = st.sampled_from(["fine", "fine", "answer lost", "request lost", "refused", "moved"])
    troubles = data.draw(st.integers(0, 12))
    for _ in range(400):
        if harness.plan.is_idle:
            break
        harness.later(1.3)
        plan = harness.next_requests()
        settle(plan.results)
        if plan.needs_writer_id:
            harness.plan.take_writer_id(max(harness.plan._writer_ids_seen) + 1)
        for batch in [batch for each in plan.requests for batch in each.batches]:
            fate = data.draw(fates) if troubles > 0 else "fine"
            troubles -= 1
            if fate in ("fine", "answer lost"):
                error = bucket.append(batch)
                if fate == "answer lost":
                    error = ConnectError("gone")
            elif fate == "refused":
                error = LimitExceededError("too large", 13)
            else:
                error = ConnectError("gone") if fate == "request lost" else LeaderChangedError("no")
            if error is None:
                settle([harness.plan.written(batch, offset=0, now=harness.now)])
            else:
                settle(harness.plan.failed(batch, error, now=harness.now, jitter=0.5))
    assert harness.plan.is_idle
    assert sorted(map(id, done + failed)) == sorted(map(id, batches))
    assert len(bucket.log) == len(set(bucket.log))
    assert set(map(id, done)) <= set(bucket.log)
    assert all(each.in_doubt for each in failed if id(each) in bucket.log)
    assert [each for each in map(id, batches) if each in set(bucket.log)] == bucket.log
