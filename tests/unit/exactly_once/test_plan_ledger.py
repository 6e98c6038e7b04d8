"""What has landed of a task in a bucket: single answers, and any number of concurrent attempts."""

import random
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from fluss.errors import WriterStateError
from fluss.exactly_once.plan_claims import ClaimedBucket, Task
from fluss.exactly_once.plan_ledger import WAIT, AlreadyWritten, BucketLedger, LoggedBatch, SendNext
from fluss.model.paths import TableBucket

BUCKET = TableBucket(7, 0)
TASK = Task(run="r", step=5, part=0)
IDS = [TASK.writer_id(5, generation) for generation in range(4)]


def _ledger(*, anchor=100, first=0):
    claimed = ClaimedBucket(anchor=anchor, first=first)
    return BucketLedger(BUCKET, claimed, partial(TASK.writer_id, 5))


def _landed(sequence, *, generation=0, base_offset=None, rows=10):
    return LoggedBatch(
        writer_id=IDS[generation],
        sequence=sequence,
        base_offset=100 + sequence * 10 if base_offset is None else base_offset,
        row_count=rows,
        crc=sequence,
        schema_id=1,
    )


def _seen(ledger, *found, end=10_000, earliest=0, last_known=None):
    ledger.look_again(earliest=earliest, end=end, found=found)
    ledger.ask_again(last_known)
    return ledger


def _placed(ledger, count, *, first=0):
    """What becomes of batches of ten rows: what is there of them, the number to send, or WAIT."""
    placed = []
    for start in range(first * 10, count * 10, 10):
        match ledger.place(start, 10):
            case AlreadyWritten(pieces=pieces):
                placed.append([(each.offset, each.row_count) for each in pieces])
            case SendNext(sequence=sequence):
                placed.append(sequence)
            case other:
                placed.append(other)
    return placed


def _written(ledger, index, *, rows=10):
    ledger.written(index * 10, _landed(index, rows=rows))


def test_a_first_attempt_sends_everything_from_the_number_of_its_claim_on():
    assert _placed(_ledger(), 3) == [0, 1, 2]
    assert _placed(_ledger(first=40), 3) == [40, 41, 42]
    assert _ledger().place(0, 10).writer_id == IDS[0]


def test_what_has_landed_is_not_sent_again():
    ledger = _seen(_ledger(), _landed(0), _landed(1), last_known=1)
    assert _placed(ledger, 4) == [[(100, 10)], [(110, 10)], 2, 3]
    assert ledger.end == 120


def test_rows_behind_a_batch_that_was_cut_short_have_the_next_numbers():
    short = [_landed(0), _landed(1, rows=3), _landed(2, base_offset=300, rows=2)]
    ledger = _seen(_ledger(), *short, last_known=2)
    there = ledger.place(10, 10)
    assert [(each.landed, each.skipped, each.row_count) for each in there.pieces] == [
        (short[1], 0, 3),
        (short[2], 0, 2),
    ]
    assert there.row_count == 5
    assert ledger.place(15, 5) == SendNext(writer_id=IDS[0], sequence=3)
    assert ledger.place(20, 10) == SendNext(writer_id=IDS[0], sequence=4)


def test_a_batch_that_was_cut_otherwise_is_there_in_pieces():
    ledger = _seen(_ledger(), _landed(0, rows=15), _landed(1, base_offset=200, rows=15))
    assert _placed(ledger, 4) == [[(100, 10)], [(110, 5), (200, 5)], [(205, 10)], 2]


def test_batches_that_landed_twice_over_do_not_count_twice():
    ledger = _seen(_ledger(first=3), _landed(3), _landed(3), last_known=3)
    assert _placed(ledger, 2) == [[(130, 10)], 4]


def test_what_the_server_knows_and_the_log_does_not_show_yet_is_waited_for():
    ledger = _seen(_ledger(), _landed(0), last_known=2)
    # How many rows it has cannot be seen, so that nothing is known of what comes behind it.
    assert _placed(ledger, 4) == [[(100, 10)], WAIT, WAIT, WAIT]
    assert _placed(_seen(ledger, _landed(0), _landed(1), last_known=2), 3, first=1) == [
        [(110, 10)],
        WAIT,
    ]
    # It was never certain, and is gone when another leader takes over: then it is sent.
    assert _placed(_seen(ledger, _landed(0), _landed(1), last_known=1), 4, first=2) == [2, 3]


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
    _written(ledger, 0)
    _written(ledger, 1)
    assert ledger.end == 120
    with pytest.raises(WriterStateError, match="20 rows were acknowledged and 10 are there"):
        _seen(ledger, _landed(0), last_known=0)


def test_rows_that_have_been_seen_and_are_gone_stop_everything():
    ledger = _seen(_ledger(), _landed(0), _landed(1), last_known=1)
    ledger.place(10, 10)
    with pytest.raises(WriterStateError, match="20 rows were acknowledged and 10 are there"):
        _seen(ledger, _landed(0), last_known=0)


def test_an_acknowledged_batch_in_whose_place_another_attempt_has_written_is_noticed():
    for others in (_landed(0, rows=3), _landed(5, base_offset=100)):
        ledger = _ledger(first=others.sequence)
        _written(ledger, 0, rows=others.row_count if others.crc else 10)
        behind = _landed(others.sequence + 1, rows=30)
        with pytest.raises(WriterStateError, match="in place of 10 of this one"):
            _seen(ledger, others, behind, last_known=behind.sequence)


def test_a_server_that_knows_less_than_the_log_holds_stops_everything():
    with pytest.raises(WriterStateError, match="the server knows 0"):
        _seen(_ledger(), _landed(0), _landed(1), last_known=0)


def test_a_forgotten_writer_goes_on_under_another_id_and_never_at_0_again():
    ledger = _seen(_ledger(), _landed(0), _landed(1), last_known=-1)
    placed = [ledger.place(each * 10, 10) for each in range(4)]
    assert placed[2:] == [
        SendNext(writer_id=IDS[1], sequence=0),
        SendNext(writer_id=IDS[1], sequence=1),
    ]
    # The next attempt finds both.
    again = _landed(0, generation=1, base_offset=500)
    other = _seen(_ledger(), _landed(0), _landed(1), again, last_known=0)
    assert _placed(other, 3) == [[(100, 10)], [(110, 10)], [(500, 10)]]
    assert other.place(30, 10) == SendNext(writer_id=IDS[1], sequence=1)


def test_a_writer_that_was_forgotten_before_its_first_batch_of_this_step_gets_another_id():
    ledger = _seen(_ledger(first=40), last_known=-1)
    assert ledger.place(0, 10) == SendNext(writer_id=IDS[1], sequence=0)


def test_a_writer_that_no_server_knows_is_new():
    assert _placed(_seen(_ledger(), last_known=-1), 2) == [0, 1]


def test_a_server_that_does_not_say_is_believed_to_know_what_is_there():
    assert _placed(_seen(_ledger(), _landed(0), last_known=None), 2) == [[(100, 10)], 1]


def test_rows_after_the_last_of_a_task_are_noticed():
    ledger = _seen(_ledger(first=3), _landed(3), _landed(4), _landed(5), last_known=5)
    assert _placed(ledger, 2) == [[(130, 10)], [(140, 10)]]
    # An attempt with twenty is late, or had thirty before; either way it has nothing more to say.
    assert ledger.surplus(20).offset == 150
    assert ledger.surplus(27).offset == 157
    assert ledger.surplus(30) is None


# --- any number of concurrent attempts ------------------------------------------------------------


class Server:
    """One bucket as 0.9.1 keeps it: appended, and visible a little later."""

    def __init__(self) -> None:
        self.log: list[tuple[int, int, range]] = []  # writer id, sequence, which rows of the task
        self.visible = 0
        self._known: dict[int, list[int]] = {}

    def append(self, writer_id: int, sequence: int, rows: range) -> bool:
        known = self._known.get(writer_id, [-1])
        if sequence in known[-5:]:
            return True  # whatever rows it has
        if sequence != known[-1] + 1:
            return False
        self._known[writer_id] = [*known, sequence]
        self.log.append((writer_id, sequence, rows))
        return True

    def last_known(self, writer_id: int) -> int:
        return self._known.get(writer_id, [-1])[-1]

    def end_of(self, writer_id: int, sequence: int) -> int:
        return 1 + next(at for at, each in enumerate(self.log) if each[:2] == (writer_id, sequence))

    def forget_writers(self) -> None:
        self._known.clear()


class RefusedError(Exception):
    """An attempt has found rows that are not its own, and does not go on."""


def attempt(server: Server, registered: dict, count: int, size: int):
    """One attempt at a task, which may be left at every `yield` for good.

    Its rows are cut into batches of one size; where it has fewer than the task, they broke off.
    """
    anchor, first = server.visible, server.last_known(IDS[0]) + 1
    yield
    is_shared = "claim" in registered
    claimed = registered.setdefault("claim", ClaimedBucket(anchor=anchor, first=first))
    ledger = BucketLedger(BUCKET, claimed, partial(TASK.writer_id, 5))
    yield

    def look():
        visible = server.visible
        found = [
            LoggedBatch(
                writer_id=w,
                sequence=s,
                base_offset=at,
                row_count=len(rows),
                crc=hash(rows),
                schema_id=1,
            )
            for at, (w, s, rows) in enumerate(server.log[:visible])
            if at >= claimed.anchor and w in ledger.writer_ids
        ]
        yield
        ledger.look_again(earliest=0, end=visible, found=found)
        yield
        ledger.ask_again(server.last_known(ledger.writer_id))

    if is_shared:
        registered["shared"] = True
        yield
        yield from look()
    batches = [range(first, min(first + size, count)) for first in range(0, count, size)]
    while batches:
        rows = batches[0]
        match ledger.place(rows.start, len(rows)):
            case AlreadyWritten() as there:
                for piece in there.pieces:
                    stored = server.log[piece.landed.base_offset][2][piece.skipped :]
                    if stored[: piece.row_count] != rows[: piece.row_count]:
                        raise RefusedError
                    rows = rows[piece.row_count :]
                batches[:1] = [rows] if rows else []
            case SendNext(writer_id=writer_id, sequence=sequence):
                yield
                if server.append(writer_id, sequence, rows):
                    yield  # what follows may never happen, though the batch is there
                    while server.end_of(writer_id, sequence) > server.visible:
                        yield
                    end = server.end_of(writer_id, sequence)
                    sent = LoggedBatch(
                        writer_id=writer_id,
                        sequence=sequence,
                        base_offset=end - 1,
                        row_count=len(rows),
                        crc=hash(rows),
                        schema_id=1,
                    )
                    if is_shared and server.log[end - 1][2] != rows:
                        yield from look()
                    else:
                        ledger.written(rows.start, sent)
                        batches.pop(0)
                else:
                    yield from look()
            case _:
                yield
                yield from look()
    yield
    if is_shared or "shared" in registered:
        yield from look()
        if ledger.surplus(count) is not None:
            raise RefusedError


class Play:
    """Attempts that take turns, as the jitter fall."""

    def __init__(self, seed: int, count: int, before: int) -> None:
        self.jitter = random.Random(seed)
        self.server = Server()
        for sequence in range(before):  # the steps before, under the same id
            self.server.append(IDS[0], sequence, range(0))
        self.server.visible = len(self.server.log)
        self.count = count
        self.size = self.jitter.randint(1, 4)
        self.done = False
        self._registered: dict = {}
        self._before = before

    def begin(self, count):
        return attempt(self.server, self._registered, count, self.size)

    def go_on(self, chosen, count):
        """Let an attempt do its next thing; whether it has come to its end."""
        if self.jitter.random() < 0.3:
            self.server.visible = self.jitter.randint(self.server.visible, len(self.server.log))
        try:
            next(chosen)
        except StopIteration:
            # The receipt of one whose rows broke off is not used.
            self.done = self.done or count == self.count
            return True
        except (RefusedError, WriterStateError):
            return True
        return False

    @property
    def rows(self):
        return [row for _, _, rows in self.server.log[self._before :] for row in rows]


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 12),
    before=st.integers(0, 8),
    may_forget=st.booleans(),
)
@settings(max_examples=300)
def test_every_row_is_there_once_however_many_attempts_meet(seed, count, before, may_forget):
    play = Play(seed, count, before)
    in_flight = [play.begin(count)]
    for _ in range(3_000):
        if not in_flight or (not play.done and len(in_flight) < 3 and play.jitter.random() < 0.1):
            in_flight.append(play.begin(count))
        if play.jitter.random() < 0.03:
            in_flight.remove(play.jitter.choice(in_flight))  # it died
            if may_forget and not in_flight:
                play.server.visible = len(play.server.log)
                play.server.forget_writers()  # a week has passed
            continue
        chosen = play.jitter.choice(in_flight)
        if play.go_on(chosen, count):
            in_flight.remove(chosen)
            if play.done and not in_flight:
                break
    assert play.done
    assert play.rows == list(range(count))


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 12),
    before=st.integers(0, 3),
    broken=st.lists(st.integers(0, 12), max_size=5),
)
@settings(max_examples=300)
def test_an_attempt_goes_on_behind_others_whose_rows_broke_off(seed, count, before, broken):
    play = Play(seed, count, before)
    for each in [*(min(each, count) for each in broken), count]:
        play.server.visible = len(play.server.log)
        chosen = play.begin(each)
        while not play.go_on(chosen, each):
            if play.jitter.random() < 0.02 and each != count:
                break
    assert play.done
    assert play.rows == list(range(count))


@given(seed=st.integers(0, 2**32), count=st.integers(1, 12))
@settings(max_examples=300)
def test_an_attempt_goes_on_behind_others_beside_it_whose_rows_break_off(seed, count):
    play = Play(seed, count, before=0)
    first = (play.begin(play.jitter.randint(0, count - 1)), 0)
    next(first[0])
    next(first[0])  # it has claimed, and does not look what becomes of its batches
    in_flight = [first]
    may_break_off = play.jitter.random() < 0.5
    if may_break_off:
        in_flight = []
        while not play.go_on(*first) and play.jitter.random() < 0.9:
            pass
    while not play.done:
        whole = [each for _, each in in_flight if each == count]
        if len(in_flight) < 4 and (not whole or play.jitter.random() < 0.1):
            in_flight.append((play.begin(count), count))
            if may_break_off:
                broken = play.jitter.randint(0, count - 1)
                in_flight.append((play.begin(broken), broken))
        chosen = play.jitter.choice(in_flight)
        if play.go_on(*chosen):
            in_flight.remove(chosen)
            assert chosen[1] < count or play.done, "an attempt with all rows was refused"
    assert play.rows == list(range(count))


@given(seed=st.integers(0, 2**32), count=st.integers(1, 12))
@settings(max_examples=300)
def test_no_attempt_succeeds_where_one_beside_it_broke_off_and_rows_are_missing(seed, count):
    play = Play(seed, count, before=0)
    in_flight = [(play.begin(count), count)]
    for _ in range(400):
        if play.done:
            break
        if len(in_flight) < 3 and play.jitter.random() < 0.2:
            broken = play.jitter.choice([count, play.jitter.randint(0, count)])
            in_flight.append((play.begin(broken), broken))
        chosen = play.jitter.choice(in_flight) if in_flight else None
        if chosen and play.go_on(*chosen):
            in_flight.remove(chosen)
    if play.done:  # otherwise it has been refused, with an error
        assert play.rows[:count] == list(range(count))
        assert len(play.rows) == count
