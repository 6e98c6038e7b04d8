"""Rows that a writer has taken stay taken when Ctrl-C interrupts a later call, and are sent once.

Python runs signal handlers after calls, when a function begins and when a loop goes round. The
tests interrupt a writer at each of these places in turn, in all functions that handle rows.
"""

from __future__ import annotations

import dis
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pyarrow as pa
import pytest

from fluss.model.types.factory import DataTypes
from fluss.net.counters import Counters
from fluss.net.plan_retry import RetryPolicy
from fluss.write.sender import Sender
from fluss.write.write_batch import BatchResult, WriterSettings
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.scripted.write_plan import PlanHarness
from tests.unit.write.test_row_taker import appender, table, upserter

COLUMNS = {
    "id": DataTypes.bigint().not_null(),
    "text": DataTypes.string(),
    "tags": DataTypes.array(DataTypes.string()),
}
SMALL = {"batch_bytes_max": 400, "batch_bytes_min": 400, "has_dynamic_batches": False}
# Functions that are compiled, as the one that takes a row, have the file name <string>.
FILES = (
    "write_buffer.py",
    "open_rows.py",
    "writer_cores.py",
    "write_tally.py",
    "waiting.py",
    "<string>",
)
BEFORE_A_HANDLER = ("CALL", "RESUME")
PLACES_MAX = 3_000
STEP = 1 if IS_EXHAUSTIVE else 7


class Interrupts:
    """Raises KeyboardInterrupt at one of the places where a signal handler may run."""

    def __init__(self, place, files=FILES):
        self.left = place
        self._files = files
        self._places = {}

    def __enter__(self):
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _enter(self, frame, event, _):
        if event != "call" or not frame.f_code.co_filename.endswith(self._files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, _):
        if event == "opcode" and frame.f_lasti in self._places_of(frame.f_code):
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._step

    def _places_of(self, code):
        """The places of a function: after each call, where it begins, and where a loop goes on."""
        if code not in self._places:
            steps = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
            after_calls = {
                after.offset
                for before, after in pairwise(steps)
                if before.opname.startswith(BEFORE_A_HANDLER)
            }
            loops = {each.argval for each in steps if each.opname.startswith("JUMP_BACKWARD")}
            self._places[code] = after_calls | loops
        return self._places[code]


class Target:
    """Encodes rows, and keeps which rows each of the encoded chunks has."""

    def __init__(self, target):
        self._target = target
        self.rows = {}

    def __getattr__(self, name):
        return getattr(self._target, name)

    def encode(self, rows, deletes, *, is_frame):
        encoded = self._target.encode(rows, deletes, is_frame=is_frame)
        ids = rows.batch.column(0).to_pylist()
        marks = [False] * len(ids) if deletes is None else deletes.tolist()
        assert len(marks) == len(ids)
        for place, row_id in enumerate(ids):
            if not marks[place]:
                assert rows.batch.column(2)[place].as_py() == tags(row_id), "values of other rows"
        self.rows[id(encoded)] = list(zip(ids, marks, strict=True)), encoded
        return encoded


def tags(row_id):
    return [str(row_id)] * (row_id % 3)


def values(row_id):
    return {"id": row_id, "text": "x" * 40, "tags": tags(row_id)}


def sent(core):
    """The rows that the engine has queued, in order, and whether each is a delete."""
    found = []
    for queued in core._sender.done:
        rows, encoded = core._target.rows[id(queued.args[1])]
        assert encoded is queued.args[1]
        if queued():
            found += rows
    return found


def rows_of_one_call(core, row_id, kind):
    """One call that writes, and what it writes."""
    if kind == "delete":
        return lambda: core.delete({"id": row_id}), [(row_id, True)]
    if kind == "frame":
        ids = [row_id, row_id + 1]
        frame = pa.table(
            {
                "id": ids,
                "text": ["x" * 40] * 2,
                "tags": pa.array([tags(each) for each in ids], pa.list_(pa.string())),
            }
        )
        return lambda: core.take_frame(frame), [(each, False) for each in ids]
    if kind == "seal":
        return core.seal, []
    return lambda: core.take(values(row_id)), [(row_id, False)]


def is_free_for_others(lock):
    """Whether another thread can have a lock."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: lock.is_free).result()


def write(core, kinds, place):
    """Make the calls, one of them interrupted; the rows that were taken, and those in doubt."""
    taken, doubtful, row_id = [], set(), 0
    with Interrupts(place) as interrupts:
        for kind in kinds:
            call, rows = rows_of_one_call(core, row_id, kind)
            row_id += 2
            try:
                call()
                taken += rows
            except KeyboardInterrupt:
                doubtful |= set(rows)
    return taken, doubtful, interrupts.left < 0


KINDS = {
    "rows": ["row"] * 9,
    "rows and deletes": ["row", "delete", "row", "row", "delete", "delete", "row", "seal", "row"],
    "rows and frames": ["row", "frame", "row", "frame", "frame", "row", "row", "seal", "frame"],
}


@pytest.mark.slow("interrupts a writer at each of some hundred places")
@pytest.mark.parametrize("name", KINDS)
def test_an_interrupt_loses_no_row_that_was_taken_and_doubles_none(name):
    keys = ["id"] if "delete" in name else None
    info = table(COLUMNS, keys)
    for place in range(0, PLACES_MAX, STEP):
        core = upserter(info, writer=SMALL) if keys else appender(info, **SMALL)
        core._target = Target(core._target)
        taken, doubtful, was_interrupted = write(core, KINDS[name], place)
        core.seal()
        found = sent(core)
        assert [each for each in found if each not in doubtful] == taken, place
        assert len(found) == len(set(found)), place
        assert is_free_for_others(core._sealing), place
        if not was_interrupted:
            assert place > len(KINDS[name]), "there were interrupts"
            return
    pytest.fail(f"there are more than {PLACES_MAX} places")


class Engine:
    """Runs what is posted on another thread: immediately, or when `run` is called."""

    def __init__(self, pool, *, is_quick):
        self.loop = SimpleNamespace(time=lambda: 0.0, call_soon=lambda _: None)
        self._pool = pool
        self._jobs = []
        self._is_quick = is_quick

    def post(self, job):
        self._jobs.append(job)
        if self._is_quick:
            self.run()

    def run(self):
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            self._pool.submit(job).result()


@pytest.mark.parametrize("is_quick", [False, True], ids=["later", "immediately"])
def test_an_interrupt_while_a_batch_is_queued_leaves_no_memory_taken(is_quick):
    cluster = SimpleNamespace(counters=Counters(), retry_policy=RetryPolicy())
    with ThreadPoolExecutor(1) as pool:
        for place in range(PLACES_MAX):
            engine = Engine(pool, is_quick=is_quick)
            sender = Sender(cluster, WriterSettings(), engine=engine)
            batch = PlanHarness.made(0)
            asked = []
            interrupts = Interrupts(place, ("sender.py", "write_memory.py"))
            with suppress(KeyboardInterrupt), interrupts:
                sender.queue([batch], queued=partial(is_first, asked))
            if interrupts.left < 0:  # the next sealing queues it again
                sender.queue([batch], queued=partial(is_first, asked))
            engine.run()
            assert sender.memory.bytes_used == batch.size_bytes, place
            assert list(sender._plan.incomplete()) == [batch], place
            sender._complete([BatchResult(batch=batch, offset=0)])
            assert sender.memory.bytes_used == 0
            if interrupts.left >= 0:
                assert place > 10, "there were interrupts"
                return
    pytest.fail(f"there are more than {PLACES_MAX} places")


def is_first(asked):
    asked.append(None)
    return len(asked) == 1
