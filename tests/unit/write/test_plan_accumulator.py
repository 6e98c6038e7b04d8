from hypothesis import given, strategies as st

from fluss.write.plan_accumulator import BatchSizes, BucketQueue, QueueKey
from fluss.write.write_batch import WriteBatch, WriterSettings
from tests.support.scripted.write_plan import PATH, ROUTE

SETTINGS = WriterSettings()


def queue_with(count: int) -> tuple[BucketQueue, list[WriteBatch]]:
    queue = BucketQueue(QueueKey(7, PATH, 0), now=0)
    batches = [
        WriteBatch(route=ROUTE, path=PATH, bucket_id=0, body=None, row_count=1, size_bytes=1)
        for _ in range(count)
    ]
    for order, each in enumerate(batches):
        each.order = order
    for each in batches:
        queue.add(each, now=0)
    return queue, batches


@given(st.permutations(range(6)), st.integers(1, 6))
def test_whatever_comes_back_in_whatever_order_the_queue_is_in_order(returns, sent):
    queue, batches = queue_with(8)
    for each in batches[:sent]:
        queue.send(each)
    for index in returns:
        if index < sent:
            queue.in_flight.remove(batches[index])
            queue.take_back(batches[index])
    assert list(queue.waiting) == batches


def test_at_most_five_batches_of_a_bucket_are_in_flight():
    queue, _ = queue_with(8)
    while (batch := queue.next_batch(SETTINGS, now=0)) is not None:
        queue.send(batch)
    assert len(queue.in_flight) == SETTINGS.in_flight_max == 5


def test_a_retried_batch_is_sent_alone():
    queue, batches = queue_with(3)
    queue.send(batches[0])
    queue.send(batches[1])
    queue.in_flight.remove(batches[0])
    queue.take_back(batches[0])
    assert queue.next_batch(SETTINGS, now=0) is None
    queue.in_flight.remove(batches[1])
    queue.take_back(batches[1])
    assert queue.next_batch(SETTINGS, now=0) is batches[0]


def test_a_pause_holds_a_bucket_back():
    queue, batches = queue_with(1)
    queue.not_before = 5
    assert queue.next_batch(SETTINGS, now=4.9) is None
    assert queue.next_batch(SETTINGS, now=5) is batches[0]


def test_progress_of_the_bucket_keeps_its_batches_alive():
    queue, (batch,) = queue_with(1)
    assert queue.deadline_of(batch, SETTINGS) == 120
    queue.progress_at = 50
    assert queue.deadline_of(batch, SETTINGS) == 170


def test_batches_of_a_quiet_table_become_smaller_down_to_the_minimum():
    sizes = BatchSizes(SETTINGS)
    for _ in range(1_000):
        sizes.observe(10)
    assert sizes.target_bytes == SETTINGS.batch_bytes_min


def test_batches_that_fill_grow_back_to_the_maximum():
    sizes = BatchSizes(SETTINGS)
    for _ in range(100):
        sizes.observe(10)
    for _ in range(100):
        sizes.observe(sizes.target_bytes)
    assert sizes.target_bytes == SETTINGS.batch_bytes_max


def test_batches_after_a_pause_start_small_and_double():
    sizes = BatchSizes(SETTINGS)
    for _ in range(2):
        found = []
        for _ in range(6):
            found.append(sizes.target_bytes)
            sizes.observe(sizes.target_bytes)
        least, most = SETTINGS.batch_bytes_min, SETTINGS.batch_bytes_max
        assert found == [min(least << step, most) for step in range(6)]
        sizes.pause()


def test_a_pause_does_not_make_batches_of_small_frames():
    sizes = BatchSizes(SETTINGS)
    before = sizes.large_frame_bytes
    assert SETTINGS.batch_bytes_min < before
    sizes.pause()
    assert sizes.target_bytes == SETTINGS.batch_bytes_min
    assert sizes.large_frame_bytes == before


def test_small_batches_at_the_start_do_not_count_as_those_of_a_quiet_table():
    sizes = BatchSizes(SETTINGS)
    for _ in range(100):
        sizes.observe(sizes.target_bytes)
        sizes.pause()
    for _ in range(10):
        sizes.observe(sizes.target_bytes)
    assert sizes.target_bytes == SETTINGS.batch_bytes_max


def test_fixed_batches_do_not_adapt():
    sizes = BatchSizes(WriterSettings(has_dynamic_batches=False))
    sizes.observe(10)
    assert sizes.target_bytes == SETTINGS.batch_bytes_max
