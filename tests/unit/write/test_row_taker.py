"""Single rows that are taken by the compiled function, compared with the steps it stands for."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import reduce
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from fluss.errors import ClosedError, FlussError, InvalidValueError
from fluss.model.paths import TablePath
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.factory import DataTypes
from fluss.model.values.conversion import from_physical, to_physical
from fluss.native import VARIABLE
from fluss.write import write_targets
from fluss.write.placement import Placement
from fluss.write.row_function import RowReader
from fluss.write.write_batch import WriterSettings
from fluss.write.write_encoding import KvTarget, LogTarget
from fluss.write.write_memory import WriteMemory
from fluss.write.writer_cores import AppendCore, UpsertCore
from tests.support.generators.random_values import ALL_TYPES, as_lists, random_rows

# Every test runs twice: with the function in Python, and with the one in C before it.
pytestmark = pytest.mark.usefixtures("row_functions")


def row_type(**fields):
    return DataTypes.row([DataTypes.field(name, each) for name, each in fields.items()])


NESTED = row_type(
    a=DataTypes.int(),
    b=row_type(c=DataTypes.string(), d=DataTypes.array(DataTypes.string())),
    e=DataTypes.map(DataTypes.string(), row_type(f=DataTypes.timestamp())),
)
COLUMNS = {
    "id": DataTypes.bigint().not_null(),
    "name": DataTypes.string(),
    "day": DataTypes.date(),
    "at": DataTypes.timestamp(),
    "ltz": DataTypes.timestamp_ltz(),
    "tags": DataTypes.array(DataTypes.string()),
    "whens": DataTypes.array(DataTypes.date()),
    "counts": DataTypes.map(DataTypes.string(), DataTypes.int()),
    "nested": NESTED,
    "deep": reduce(lambda inner, _: row_type(a=inner), range(30), DataTypes.int()),
}
# Values that pass, that are converted, that are NULL, and that are refused.
ODD = [
    None, 0, -(2**31), 2**31, 2**63, True, 1.5, "", "a", "ü", "\ud800", b"b", [], ["a", None, "ü"], ["a", "bc"], ["ü"], ["a", "\ud800"], ["a", StrEnum("E", ["b"]).b],
    ("a", "b"), [1], [date(1969, 12, 31)], [None], {}, {"a": 1}, {"a": None, "ü": 2}, {"a": 2**31},
    {1: 1}, {"a": 1, 2: 3}, {"\ud800": 1}, {StrEnum("E", ["k"]).k: 1}, {None: 1}, [("a", 1)], [("a",)], date(2024, 2, 29), datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001
    datetime(2024, 1, 1, tzinfo=UTC), {"a": 1, "b": None, "e": None},
    {"a": 1, "b": {"c": "x", "d": ["y", None]}, "e": {"k": {"f": datetime(2024, 1, 1)}}},  # noqa: DTZ001
    {"a": 1, "b": {"c": "x"}, "e": {"k": None}}, {"a": 1, "b": {"c": 5, "d": []}, "e": {}},
    {"a": 1, "b": (None, ["z"]), "e": []}, {"a": 1, "b": {"c": "x", "x": []}, "e": {}}, (1, None, {}),
]  # fmt: skip


class FakeEngine:
    """Keeps what is posted to the engine thread."""

    def __init__(self):
        self.posted = []

    def post(self, job):
        self.posted.append(job)


class FakeSender:
    """Keeps the batches that are queued."""

    def __init__(self, **settings):
        self.settings = WriterSettings(**settings)
        self.engine = FakeEngine()
        self.memory = WriteMemory(1 << 40, wait_ms_max=10)
        self.queued = []
        self.done = []

    def check_open(self):
        pass

    def queue(self, batches, *, queued):
        self.queued += batches
        self.done.append(queued)


def table(columns, keys=None, **facts):
    schema = Schema([Column(name, each) for name, each in columns.items()], keys)
    descriptor = TableDescriptor(schema, bucket_count=3, **facts)
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=1, schema_id=1)


def appender(info, **settings):
    sender = FakeSender(**settings)
    layout = write_targets.whole_layout(info)
    placement = Placement(
        info, layout, has_leader=lambda *_: True, is_round_robin=False, choose=lambda _: 0
    )
    target = LogTarget(placement, sender.settings, has_statistics=False)
    return AppendCore(sender, Recorded(target))


def upserter(info, *, writer=None, **facts):
    sender = FakeSender(**(writer or {}))
    layout = write_targets.nullable_layout(info)
    placement = Placement(info, layout, has_leader=lambda *_: True, is_round_robin=False)
    return UpsertCore(sender, Recorded(KvTarget(placement, sender.settings, **facts)))


class Recorded:
    """A target that keeps what it is asked to encode."""

    def __init__(self, target):
        self._target = target
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._target, name)

    def encode(self, rows, deletes, *, is_frame):
        marks = None if deletes is None else deletes.tolist()
        self.asked.append((bytes(rows.batch.serialize()), marks, is_frame))
        return self._target.encode(rows, deletes, is_frame=is_frame)


def sent(core):
    """What the writer has encoded and queued, after sealing the rest."""
    core.seal()
    for done in core._sender.done:
        done()
    queued = [(each.bucket_id, each.row_count) for each in core._sender.queued]
    return core._target.asked, queued


def outcome(take, row):
    try:
        handle = take(row)
    except FlussError as error:
        return str(error), error.facts.get("row"), error.facts.get("column")
    return handle._first, handle._stop


def places(handles):
    """The batch that each handle waits for, as (bucket, size of the batch)."""
    return [
        [(each.bucket_id, each.row_count) for each in h._chunk.batches_of(h._first, h._stop)]
        for h in handles
    ]


def same(core, plain, rows):
    """Both ways take the same rows, refuse the same ones in the same words, and send the same."""
    for row in rows:
        assert outcome(core.take, row) == outcome(plain.take_plainly, row), row
    assert (core.rows_taken, core.open_rows.bytes) == (plain.rows_taken, plain.open_rows.bytes)
    assert sent(core) == sent(plain)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_value_is_taken_or_refused_as_by_the_plain_steps(name):
    info = table({"n": DataTypes.int(), name: COLUMNS[name]})
    rows = [shape for odd in ODD for shape in ({"n": 1, name: odd}, [1, odd], (1, odd))]
    same(appender(info), appender(info), rows)
    read, convert = RowReader.of(info, range(2)).read, to_physical(COLUMNS[name], name)
    for odd in ODD:
        assert physical(lambda odd=odd: read([1, odd])[0][1]) == physical(
            lambda odd=odd: convert(odd)
        )


def physical(call):
    try:
        return repr(as_lists(call()))
    except InvalidValueError as error:
        return error.message, error.facts


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_every_type_is_taken_as_by_the_plain_steps(data_type):
    back = from_physical(data_type)
    rows = []
    for (value,) in random_rows(Random(11), [data_type], 50):
        try:
            rows.append({"n": len(rows), "c": back(value)})
        except InvalidValueError:
            continue
    info = table({"n": DataTypes.int(), "c": data_type})
    same(appender(info), appender(info), rows)


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["row", "list", "frame", "delete", "large", "seal"]), max_size=30))
def test_handles_and_batches_are_those_of_the_plain_steps_in_any_order(steps):
    # Few bytes per chunk, so that chunks fill up in the middle.
    small = {"batch_bytes_max": 300, "batch_bytes_min": 300, "request_bytes_max": 4_000}
    info = table({"id": DataTypes.bigint(), "name": DataTypes.string()}, ["id"])
    fast, plain = upserter(info, writer=small), upserter(info, writer=small)
    taken = []
    for core, take in ((fast, fast.take), (plain, plain.take_plainly)):
        handles = []
        for number, step in enumerate(steps):
            row = {"id": number, "name": "x" * (1_500 if step == "large" else number)}
            match step:
                case "row" | "large":
                    handles.append(take(row))
                case "list":
                    handles.append(take([number, None]))
                case "frame":
                    handles.append(core.take_frame(pa.RecordBatch.from_pylist([row, row])))
                case "delete":
                    handles.append(core.delete({"id": number // 2}))
                case "seal":
                    core.seal()
        assert core.rows_taken == sum(step != "seal" for step in steps) + steps.count("frame")
        taken.append((sent(core), places(handles), [(h._first, h._stop) for h in handles]))
    assert taken[0] == taken[1]


def test_rows_of_a_partial_update_are_those_of_the_plain_steps():
    info = table({"id": DataTypes.bigint(), "a": DataTypes.int(), "b": DataTypes.string()}, ["id"])
    cores = [upserter(info, target_columns=(0, 2)) for _ in range(2)]
    same(*cores, [{"id": 1, "b": "x"}, (2, "y"), [3, None], {"id": 4}, {"id": 5, "a": 1}])


def test_rows_of_several_threads_are_all_taken_and_each_handle_has_a_place_of_its_own():
    info = table({"thread": DataTypes.int(), "n": DataTypes.int()})
    core = appender(info, batch_bytes_max=2_000, batch_bytes_min=2_000)
    found = [[] for _ in range(4)]

    def work(number):
        for n in range(2_000):
            handle = core.take((number, n))
            found[number].append((id(handle._chunk), handle._chunk, handle._first))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(count for _, count in sent(core)[1]) == core.rows_taken == 8_000
    assert len({(chunk, first) for rows in found for chunk, _, first in rows}) == 8_000


def test_a_row_that_is_refused_leaves_no_trace_and_counts_in_no_message():
    core = appender(table({"n": DataTypes.int()}))
    core.take([1])
    for _ in range(2):
        with pytest.raises(InvalidValueError) as caught:
            core.take(["one"])
        assert caught.value.facts["row"] == 1
    core.take([2])
    assert sent(core) == sent_of([[1], [2]])


def sent_of(rows):
    core = appender(table({"n": DataTypes.int()}))
    for row in rows:
        core.take_plainly(row)
    return sent(core)


def test_a_closed_writer_takes_no_row_into_a_chunk_that_was_open():
    core = appender(table({"n": DataTypes.int()}))
    core.take([1])
    core.take([2])
    with core._lock:
        core._closed = ClosedError("closed")
        core.open_rows.takes_values = False
    with pytest.raises(ClosedError):
        core.take([3])
    assert core.rows_taken == 2


def test_an_interrupt_leaves_the_lock_free(monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")  # the lists of the function in C are no subclasses
    core = appender(table({"n": DataTypes.int()}))
    core.take([1])
    handles = [core.take([2])]

    class Interrupting(list):
        def extend(self, _):
            raise KeyboardInterrupt

    core.open_rows.values = Interrupting(core.open_rows.values)
    del vars(core)["taker"]
    with pytest.raises(KeyboardInterrupt):
        core.take([3])
    assert core._lock.acquire(blocking=False)
    core._lock.release()
    assert handles[0]._first == 1
