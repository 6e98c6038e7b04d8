import pytest

from fluss.errors import FlussError, LeaderChangedError, WriterStateError, error_from_code
from fluss.write.plan_idempotence import BucketSequences, SequenceVerdict, is_certainly_unwritten
from fluss.write.write_batch import WriteBatch
from tests.support.scripted.write_plan import PATH, ROUTE, out_of_order


def batch() -> WriteBatch:
    return WriteBatch(route=ROUTE, path=PATH, bucket_id=0, body=None, row_count=1, size_bytes=1)


def numbered(sequences: BucketSequences, count: int) -> list[WriteBatch]:
    batches = [batch() for _ in range(count)]
    for each in batches:
        sequences.number(each)
    return batches


@pytest.fixture
def sequences() -> BucketSequences:
    made = BucketSequences()
    made.begin(4)
    return made


def test_numbers_count_up_from_zero_under_one_writer_id(sequences):
    batches = numbered(sequences, 3)
    assert [each.sequence for each in batches] == [0, 1, 2]
    assert {each.writer_id for each in batches} == {4}


def test_a_writer_id_never_starts_again_in_a_bucket(sequences):
    with pytest.raises(AssertionError):
        sequences.begin(4)


def test_acknowledgements_may_come_out_of_order(sequences):
    first, second, third = numbered(sequences, 3)
    sequences.acknowledge(second)
    assert sequences.has_passed(first)
    sequences.acknowledge(first)
    assert sequences.last_acked == 1
    assert not sequences.has_passed(third)


def test_gaps_are_closed_after_the_last_acknowledged_batch(sequences):
    first, _, third, fourth = numbered(sequences, 4)
    sequences.acknowledge(first)
    sequences.close_gaps([third, fourth])
    assert (third.sequence, fourth.sequence, sequences.next_sequence) == (1, 2, 3)


def test_an_answer_of_an_old_writer_id_moves_nothing(sequences):
    (old,) = numbered(sequences, 1)
    sequences.begin(5)
    sequences.acknowledge(old)
    assert sequences.last_acked == -1


@pytest.mark.parametrize(
    ("acked", "number", "in_doubt", "last", "verdict"),
    [
        (3, 2, False, 3, SequenceVerdict.LANDED),
        (1, 3, False, 1, SequenceVerdict.TOO_EARLY),
        (1, 2, False, -1, SequenceVerdict.UNKNOWN_WRITER),
        (1, 2, True, -1, SequenceVerdict.IN_DOUBT),
        (3, 4, False, 1, SequenceVerdict.DATA_LOST),
        (3, 4, True, 1, SequenceVerdict.IN_DOUBT),
    ],
)
def test_error_31_is_judged_by_what_was_acknowledged(
    sequences, acked, number, in_doubt, last, verdict
):
    sequences.last_acked = acked
    late = batch()
    late.writer_id, late.sequence, late.in_doubt = 4, number, in_doubt
    late.acked_before = acked
    assert sequences.judge(late, out_of_order(number, last)) is verdict


@pytest.mark.parametrize("in_doubt", [False, True])
@pytest.mark.parametrize(("last", "is_outdated"), [(2, True), (1, True), (0, False)])
def test_an_answer_from_before_the_last_acknowledgement_is_no_loss(
    sequences, last, is_outdated, in_doubt
):
    sequences.last_acked = 3
    late = batch()
    late.writer_id, late.sequence, late.in_doubt, late.acked_before = 4, 4, in_doubt, 1
    found = sequences.judge(late, out_of_order(4, last))
    assert (found is SequenceVerdict.TOO_EARLY) is is_outdated


def test_a_forgotten_writer_is_one_whatever_the_text_says(sequences):
    (first,) = numbered(sequences, 1)
    error = WriterStateError("who?", 33)
    assert sequences.judge(first, error) is SequenceVerdict.UNKNOWN_WRITER


@pytest.mark.parametrize("code", [13, 14, 31, 36, 48, 57])
def test_a_refusal_is_certain(code):
    assert is_certainly_unwritten(error_from_code(code, "no"))


@pytest.mark.parametrize(
    "error",
    [LeaderChangedError("moved"), FlussError("?", -1), error_from_code(25), error_from_code(28)],
)
def test_what_may_come_after_the_append_is_not_certain(error):
    assert not is_certainly_unwritten(error)


def test_what_has_been_passed_keeps_its_number_when_gaps_are_closed(sequences):
    first, second, _, fourth = numbered(sequences, 4)
    sequences.acknowledge(second)
    sequences.close_gaps([first, fourth])
    assert (first.sequence, fourth.sequence) == (0, 2)
