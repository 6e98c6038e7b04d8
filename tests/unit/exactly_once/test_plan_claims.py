"""Names, claims and steps of writes that may be done again."""

import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError, ProtocolError
from fluss.exactly_once.plan_claims import (
    EPOCH_MS_MAX,
    Claim,
    ClaimedBucket,
    Receipt,
    Step,
    Task,
    decide_epoch,
    read_start,
    start_id,
    start_numbers,
    step_id,
)
from fluss.model.paths import TableBucket

TASK = Task(run="9f2c-1", step=57, part=3)
COUNTS = st.integers(0, 2**62)
BUCKETS = st.builds(
    TableBucket, st.just(7), st.integers(0, 99), partition_id=st.none() | st.integers(0, 9)
)
CLAIMS = st.builds(
    Claim,
    table_id=st.just(7),
    epoch=COUNTS,
    began_ms=COUNTS,
    buckets=st.dictionaries(BUCKETS, st.builds(ClaimedBucket, anchor=COUNTS, first=COUNTS)),
    schema_id=st.none() | st.integers(1, 1_000),
)
STEPS = st.builds(
    Step,
    table_id=st.just(7),
    epoch=COUNTS,
    began_ms=COUNTS,
    claims=st.dictionaries(st.integers(0, 200), st.integers(1, 9)),
    ends=st.dictionaries(BUCKETS, COUNTS),
)


@given(CLAIMS)
def test_a_claim_is_read_as_it_was_registered(claim):
    numbers = claim.to_numbers()
    assert min(numbers) >= 0  # Fluss takes -1 for a bucket that was left out
    assert Claim.of_numbers(7, numbers) == claim


@given(STEPS)
def test_a_step_is_read_as_it_was_registered(step):
    numbers = step.to_numbers()
    assert min(numbers) >= 0
    assert Step.of_numbers(7, numbers) == step


@pytest.mark.parametrize(
    "numbers",
    [[], [1], [2, 0, 5, 5], [1, 1, 5, 5, 0], [1, 0, 5], [1, 0, 5, 5, 0, 1, 2], [1, 4, 5, 5]],
)
def test_numbers_that_are_no_claim_are_refused(numbers):
    with pytest.raises(ProtocolError, match="not a claim"):
        Claim.of_numbers(7, numbers)


def test_a_step_is_not_taken_for_a_claim_and_a_start_for_neither():
    with pytest.raises(ProtocolError):
        Step.of_numbers(7, start_numbers(5))
    assert read_start(start_numbers(5)) == 5


def test_every_name_is_one_that_a_coordinator_takes_and_no_two_are_equal():
    names = {TASK.claim_id(0), TASK.claim_id(1), step_id("9f2c-1", 57), start_id("9f2c-1")}
    assert len(names) == 4
    assert all(each.replace("-", "").replace("_", "").isalnum() for each in names)


@pytest.mark.parametrize("run", ["", "a b", "a.b", "x" * 121, "é"])
def test_a_run_with_a_name_that_no_coordinator_takes_is_refused(run):
    with pytest.raises(InvalidValueError, match="name no task"):
        Task(run=run, step=0, part=0)


def test_writer_ids_depend_on_run_epoch_part_and_generation_alone():
    ids = {
        Task(run=run, step=step, part=part).writer_id(epoch, generation)
        for run in ("a", "b")
        for step in (8, 9)
        for part in range(20)
        for epoch in range(5)
        for generation in range(3)
    }
    assert len(ids) == 2 * 20 * 5 * 3  # the step itself is in none of them
    assert all(2**62 <= each < 2**63 for each in ids)  # beyond those that servers give out
    assert TASK.writer_id(57) == 0x56C0B83FA96E1619  # and they are the same tomorrow


def _step(**facts):
    return Step(
        **({"table_id": 7, "epoch": 50, "began_ms": 1_000, "claims": {}, "ends": {}} | facts)
    )


def test_an_epoch_goes_on_for_some_minutes():
    assert decide_epoch(TASK, _step(), now_ms=1_000 + EPOCH_MS_MAX - 1) == (50, 1_000)
    now_ms = 1_000 + EPOCH_MS_MAX
    assert decide_epoch(TASK, _step(), now_ms=now_ms) == (57, now_ms)
    assert decide_epoch(TASK, None, now_ms=5) == (57, 5)


def test_a_clock_that_went_back_begins_a_new_epoch():
    assert decide_epoch(TASK, _step(), now_ms=999) == (57, 999)


def test_a_step_sums_its_tasks_up():
    a, b = TableBucket(7, 0), TableBucket(7, 1)
    receipts = [
        Receipt(rows=5, part=0, claims=1, epoch=50, began_ms=1_000, ends={a: 10, b: 7}),
        Receipt(rows=0, part=1, ends={}),
        Receipt(rows=9, part=2, claims=3, epoch=57, began_ms=2_000, ends={a: 8, b: 9}),
    ]
    done = Step.of_receipts(7, 57, receipts, _step())
    assert done.claims == {0: 1, 2: 3}
    assert done.ends == {a: 10, b: 9}
    assert (done.epoch, done.began_ms) == (57, 2_000)


def test_a_step_without_rows_goes_on_with_the_epoch_before():
    empty = [Receipt(rows=0, part=0, ends={})]
    done = Step.of_receipts(7, 57, empty, _step())
    assert (done.epoch, done.began_ms) == (50, 1_000)
    first = Step.of_receipts(7, 0, empty, None)
    assert decide_epoch(Task(run="r", step=1, part=0), first, now_ms=10**12) == (1, 10**12)
