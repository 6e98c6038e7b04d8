"""What has landed of a task in a bucket: single answers, and any number of attempts at once."""

import random
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from fluss.errors import WriterStateError
from fluss.model.paths import TableBucket
from fluss.plan.once import ClaimedBucket, Task
from fluss.plan.once_ledger import WAIT, BucketLedger, Landed, Send

BUCKET = TableBucket(7, 0)
TASK = Task(run="r", step=5, part=0)
IDS = [TASK.writer_id(5, generation) for generation in range(4)]


def _ledger(*, anchor=100, first=0):
    claimed = ClaimedBucket(anchor=anchor, first=first)
    return BucketLedger(BUCKET, claimed, partial(TASK.writer_id, 5))


def _landed(sequence, *, generation=0, base_offset=None, rows=10):
    return Landed(
        writer_id=IDS[generation],
        sequence=sequence,
        base_offset=100 + sequence * 10 if base_offset is None else base_offset,
        row_count=rows,
        crc=sequence,
    )


def _seen(ledger, *found, end=10_000, earliest=0, last_known=None):
    ledger.look_again(earliest=earliest, end=end, found=found)
    ledger.ask_again(last_known)
    return ledger


def _sent(ledger, count):
    return [
        each.sequence if isinstance(each := ledger.place(i), Send) else each for i in range(count)
    ]


def test_a_first_attempt_sends_everything_from_the_number_of_its_claim_on():
    assert _sent(_ledger(), 3) == [0, 1, 2]
    assert _sent(_ledger(first=40), 3) == [40, 41, 42]
    assert _ledger().place(0).writer_id == IDS[0]


def test_what_has_landed_is_not_sent_again():
    ledger = _seen(_ledger(), _landed(0), _landed(1), last_known=1)
    assert _sent(ledger, 4) == [_landed(0), _landed(1), 2, 3]
    assert ledger.end == 120


def test_batches_that_landed_twice_over_do_not_count_twice():
    ledger = _seen(_ledger(first=3), _landed(3), _landed(3), last_known=3)
    assert _sent(ledger, 2) == [_landed(3), 4]


def test_what_the_server_knows_and_the_log_does_not_show_yet_is_waited_for():
    ledger = _seen(_ledger(), _landed(0), last_known=2)
    assert _sent(ledger, 4) == [_landed(0), WAIT, WAIT, 3]
    # It was never certain, and is gone when another leader takes over: then it is sent.
    assert _sent(_seen(ledger, _landed(0), last_known=0), 3) == [_landed(0), 1, 2]


def test_a_log_that_ends_before_the_anchor_stops_everything():
    with pytest.raises(WriterStateError, match="has been at 100: rows that the servers"):
        _seen(_ledger(), end=99)


def test_a_log_that_was_trimmed_behind_the_anchor_stops_everything():
    with pytest.raises(WriterStateError, match="begins at 101"):
        _seen(_ledger(), earliest=101)


def test_a_hole_in_what_landed_stops_everything():
    with pytest.raises(WriterStateError, match="batch 1 is missing, and 2 is there"):
        _seen(_ledger(), _landed(0), _landed(2), last_known=2)


def test_acknowledged_batches_that_are_gone_stop_everything():
    ledger = _ledger()
    ledger.written(1, 120)
    with pytest.raises(WriterStateError, match="2 batches were acknowledged and 1 are there"):
        _seen(ledger, _landed(0), last_known=0)


def test_a_server_that_knows_less_than_the_log_holds_stops_everything():
    with pytest.raises(WriterStateError, match="the server knows 0"):
        _seen(_ledger(), _landed(0), _landed(1), last_known=0)


def test_a_forgotten_writer_goes_on_under_another_id_and_never_at_0_again():
    ledger = _seen(_ledger(), _landed(0), _landed(1), last_known=-1)
    placed = [ledger.place(each) for each in range(4)]
    assert placed[2:] == [Send(writer_id=IDS[1], sequence=0), Send(writer_id=IDS[1], sequence=1)]
    # The next attempt finds both.
    again = _landed(0, generation=1, base_offset=500)
    other = _seen(_ledger(), _landed(0), _landed(1), again, last_known=0)
    assert [other.place(each) for each in range(4)] == [
        _landed(0),
        _landed(1),
        again,
        Send(writer_id=IDS[1], sequence=1),
    ]


def test_a_writer_that_was_forgotten_before_its_first_batch_of_this_step_gets_another_id():
    ledger = _seen(_ledger(first=40), last_known=-1)
    assert ledger.place(0) == Send(writer_id=IDS[1], sequence=0)


def test_a_new_writer_that_nobody_knows_is_just_new():
    assert _sent(_seen(_ledger(), last_known=-1), 2) == [0, 1]


def test_a_server_that_does_not_say_is_believed_to_know_what_is_there():
    assert _sent(_seen(_ledger(), _landed(0), last_known=None), 2) == [_landed(0), 1]


def test_batches_behind_the_last_of_a_task_are_noticed():
    ledger = _seen(_ledger(first=3), _landed(3), _landed(4), _landed(5), last_known=5)
    assert _sent(ledger, 2) == [_landed(3), _landed(4)]
    # Whoever has two is late, or had three before; either way it has nothing more to say.
    assert ledger.surplus(2) == _landed(5)
    assert ledger.surplus(3) is None


# --- any number of attempts at once -------------------------------------------------------------


class Server:
    """One bucket as 0.9.1 keeps it: appended, and visible a little later."""

    def __init__(self) -> None:
        self.log: list[tuple[int, int, int]] = []  # writer id, sequence, which batch of the task
        self.visible = 0
        self._known: dict[int, list[int]] = {}

    def append(self, writer_id: int, sequence: int, index: int) -> bool:
        known = self._known.get(writer_id, [-1])
        if sequence in known[-5:]:
            return True
        if sequence != known[-1] + 1:
            return False
        self._known[writer_id] = [*known, sequence]
        self.log.append((writer_id, sequence, index))
        return True

    def last_known(self, writer_id: int) -> int:
        return self._known.get(writer_id, [-1])[-1]

    def end_of(self, writer_id: int, sequence: int) -> int:
        return 1 + next(at for at, each in enumerate(self.log) if each[:2] == (writer_id, sequence))

    def forget_writers(self) -> None:
        self._known.clear()


def attempt(server: Server, claims: dict, count: int):
    """One attempt at a task, which may be left at every `yield` for good."""
    anchor, first = server.visible, server.last_known(IDS[0]) + 1
    yield
    is_first = "claim" not in claims
    claimed = claims.setdefault("claim", ClaimedBucket(anchor=anchor, first=first))
    ledger = BucketLedger(BUCKET, claimed, partial(TASK.writer_id, 5))
    yield

    def look():
        visible = server.visible
        found = [
            Landed(writer_id=w, sequence=s, base_offset=at, row_count=1, crc=index)
            for at, (w, s, index) in enumerate(server.log[:visible])
            if at >= claimed.anchor and w in ledger.writer_ids
        ]
        yield
        ledger.look_again(earliest=0, end=visible, found=found)
        yield
        ledger.ask_again(server.last_known(ledger.writer_id))

    if not is_first:
        yield from look()
    index = 0
    while index < count:
        match ledger.place(index):
            case Landed(crc=crc):
                assert crc == index, "the batch in the log is another one"
                index += 1
            case Send(writer_id=writer_id, sequence=sequence):
                yield
                if server.append(writer_id, sequence, index):
                    yield  # what follows may never happen, though the batch is there
                    while server.end_of(writer_id, sequence) > server.visible:
                        yield
                    ledger.written(index, None)
                    index += 1
                else:
                    yield from look()
            case _:
                yield
                yield from look()


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 12),
    before=st.integers(0, 8),
    may_forget=st.booleans(),
)
@settings(max_examples=300)
def test_every_batch_is_there_once_however_many_attempts_meet(seed, count, before, may_forget):
    dice = random.Random(seed)
    server = Server()
    for sequence in range(before):  # the steps before, under the same id
        server.append(IDS[0], sequence, -1)
    server.visible = len(server.log)
    claims: dict = {}
    under_way = [attempt(server, claims, count)]
    done = False
    for _ in range(3_000):
        if not under_way or (not done and len(under_way) < 3 and dice.random() < 0.1):
            under_way.append(attempt(server, claims, count))
        if dice.random() < 0.3:
            server.visible = dice.randint(server.visible, len(server.log))
        if dice.random() < 0.03:
            under_way.remove(dice.choice(under_way))  # it died
            if may_forget and not under_way:
                server.visible = len(server.log)
                server.forget_writers()  # a week has passed
            continue
        chosen = dice.choice(under_way)
        try:
            next(chosen)
        except StopIteration:
            under_way.remove(chosen)
            done = True
            if not under_way:
                break
    assert done
    assert [index for _, _, index in server.log[before:]] == list(range(count))
