"""The function in C that takes rows: which rows it takes, and what it leaves behind.

`test_row_taker` compares both functions with the plain steps; here are the traps of C: references,
memory, interrupts, values that run Python code, and threads.
"""

from __future__ import annotations

import gc
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import tracemalloc
import weakref
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from fluss import native
from fluss.errors import FlussError, InvalidValueError
from fluss.model.types.factory import DataTypes
from fluss.model.values.conversion import from_physical
from fluss.write.native_taker import native_taker
from fluss.write.open_rows import OpenRows
from fluss.write.write_result import WriteResultHandle
from tests.support.fix_native import needs_native
from tests.support.generators.random_values import ALL_TYPES, random_rows
from tests.unit.write.test_row_taker import appender, outcome, row_type, same, sent, table, upserter
from tools.build_packages import ROOT, has_compiler

pytestmark = needs_native

ROW = {"id": 1, "name": "ü", "at": datetime(2024, 5, 6, 7, 8, 9, 10)}  # noqa: DTZ001
COLUMNS = {"id": DataTypes.bigint(), "name": DataTypes.string(), "at": DataTypes.timestamp()}
NESTED = {
    "tags": DataTypes.array(DataTypes.string()),
    "counts": DataTypes.map(DataTypes.string(), DataTypes.int()),
    "place": row_type(x=DataTypes.double(), tags=DataTypes.array(DataTypes.date())),
    "prices": DataTypes.array(DataTypes.decimal(10, 2)),
    "deep": DataTypes.array(DataTypes.array(DataTypes.int())),
}
NESTED_ROW = {
    "tags": ["a", None, "ü"],
    "counts": {"a": 1, "b": None},
    "place": {"x": 1.5, "tags": [date(2024, 1, 1)]},
    "prices": [Decimal("1.25"), None],
    "deep": [[1], None, []],
}


class Left:
    """The function in Python, which counts its rows."""

    def __init__(self, take):
        self._take = take
        self.rows = []

    def __call__(self, row):
        self.rows.append(row)
        return self._take(row)


def taker(core):
    """The function in C of a writer whose chunk is begun, and what it leaves to Python."""
    core.take(first_of(core))
    left = Left(core.take_plainly)
    made = native_taker(core._row_reader, core, left, large_row_bytes=core._large_row_bytes)
    return made, left


def first_of(core):
    return dict.fromkeys(core._row_reader.names) | (
        {"id": 0} if "id" in core._row_reader.names else {}
    )


def test_a_writer_uses_it_unless_it_is_turned_off(monkeypatch):
    assert type(appender(table(COLUMNS)).taker).__name__ == "RowTaker"
    monkeypatch.setenv(native.VARIABLE, " Off ")
    assert type(appender(table(COLUMNS)).taker).__name__ == "function"
    assert native.describe_native() == "turned off by FLUSS_NATIVE"


# --- which rows it takes ------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_it_takes_every_row_of_the_classes_that_are_read_back(data_type):
    back = from_physical(data_type)
    rows = []
    for (value,) in random_rows(Random(5), [data_type], 50):
        try:
            rows.append({"n": 1, "c": back(value)})
        except InvalidValueError:
            continue
    take, left = taker(appender(table({"n": DataTypes.int(), "c": data_type.as_nullable()})))
    refused = [row for row in rows if isinstance(outcome(take, row)[0], str)]
    # Maps are read back as lists of pairs, for whatever their keys are. Few times of nanoseconds
    # do not fit after their last digits were cut off.
    assert "MAP" in str(data_type) or left.rows == refused
    assert len(refused) < len(rows) / 2


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (DataTypes.int(), [-(2**31), 2**31 - 1, None]),
        (DataTypes.bigint(), [-(2**63), 2**63 - 1]),
        (DataTypes.double(), [1.5, float("nan"), 1, -(2**53)]),
        (DataTypes.float(), [0.1, float("-inf"), 2**24]),
        (DataTypes.char(2), ["ab", "üb", ""]),
        (DataTypes.binary(2), [b"ab"]),
        (DataTypes.time(3), [time(1, 2, 3, 4_000)]),
        (DataTypes.timestamp(3), [datetime(1, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31)]),  # noqa: DTZ001
        (DataTypes.timestamp_ltz(9), [datetime(2024, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)]),  # noqa: DTZ001
        (DataTypes.array(DataTypes.int()), [[1, None], (1, 2), []]),
        (DataTypes.map(DataTypes.int(), DataTypes.string()), [{1: "a"}, {}]),
        (row_type(a=DataTypes.int()), [{"a": 1}, {}, (1,), [None]]),
        (DataTypes.decimal(5, 2), [Decimal("1.25"), 7]),
    ],
    ids=str,
)
def test_it_takes_values_of_plain_classes(data_type, values):
    take, left = taker(appender(table({"c": data_type})))
    for value in values:
        take({"c": value})
        take([value])
        take((value,))
    assert left.rows == []


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (DataTypes.int(), True),
        (DataTypes.int(), 2**31),
        (DataTypes.bigint(), 2**63),
        (DataTypes.bigint(), 10**4_000),
        (DataTypes.int(), IntEnum("E", ["a"]).a),
        (DataTypes.int().not_null(), None),
        (DataTypes.double(), 2**53 + 1),
        (DataTypes.float(), 1e300),
        (DataTypes.float(), 2**24 + 1),
        (DataTypes.boolean(), 1),
        (DataTypes.string(), "\ud800"),
        (DataTypes.string(), "𝄞\udfff"),
        (DataTypes.string(), Text("a")),
        (DataTypes.string(), StrEnum("E", ["a"]).a),
        (DataTypes.char(2), "abc"),
        (DataTypes.binary(2), b"a"),
        (DataTypes.bytes(), bytearray(b"a")),
        (DataTypes.date(), datetime(2024, 1, 1)),  # noqa: DTZ001
        (DataTypes.time(0), time(0, 0, 0, 1)),
        (DataTypes.time(3), time(0, 0, 0, 0, UTC)),
        (DataTypes.timestamp(), datetime(2024, 1, 1, tzinfo=UTC)),
        (DataTypes.timestamp(9), datetime(1, 1, 1)),  # noqa: DTZ001
        (DataTypes.timestamp_ltz(), datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        (DataTypes.array(DataTypes.int()), range(3)),
        (DataTypes.array(DataTypes.int().not_null()), [1, None]),
        (DataTypes.map(DataTypes.int(), DataTypes.int()), [(1, 2)]),
        (DataTypes.map(DataTypes.int(), DataTypes.int()), {"a": 1}),
        (row_type(a=DataTypes.int()), {"b": 1}),
        (row_type(a=DataTypes.int()), [1, 2]),
        (DataTypes.decimal(5, 2), Decimal("1.255")),
    ],
    ids=lambda each: f"{type(each).__name__} {ascii(each)[:40]}",
)
def test_it_leaves_all_other_values_to_python(data_type, value):
    core, plain = appender(table({"c": data_type})), appender(table({"c": data_type}))
    rows = [{"c": value}, [value], (value,)]
    if data_type.nullable:
        take, left = taker(core)
        plain.take_plainly([None])
        for row in rows:
            assert outcome(take, row) == outcome(plain.take_plainly, row)
        assert left.rows == rows
        assert sent(core) == sent(plain)
    else:
        same(core, plain, rows)


class Dict(dict):
    pass


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "nmae": "a"},
        {"id": 1, "name": "a", "at": None, "more": 1},
        {1: 1, "name": "a"},
        {Text("id"): 1},
        Dict(id=2),
        [1, "a"],
        [1, "a", None, 4],
        "abc",
        7,
    ],
    ids=str,
)
def test_it_leaves_rows_of_other_shapes_to_python(row):
    core, plain = appender(table(COLUMNS)), appender(table(COLUMNS))
    take, left = taker(core)
    plain.take_plainly(first_of(plain))
    for _ in range(2):
        assert outcome(take, row) == outcome(plain.take_plainly, row)
    assert left.rows == [row, row]
    assert sent(core) == sent(plain)


def test_other_calls_are_those_of_the_function_in_python():
    core = appender(table(COLUMNS))
    assert core.taker(row=ROW)._first == 0
    for call in (core.taker, lambda: core.taker(ROW, ROW), lambda: core.taker(line=ROW)):
        with pytest.raises(TypeError, match="read"):
            call()
    assert core.rows_taken == 1


def test_names_are_found_whatever_the_order_and_the_objects_of_the_keys():
    def fresh(name):
        return "".join(list(name))  # equal, and another object

    rows = [
        {"id": 1, "name": "a", "at": None},
        {"at": None, "name": "b", "id": 2},
        {fresh("name"): "c", fresh("id"): 3},
        {"at": datetime(2024, 1, 1)},  # noqa: DTZ001
        {},
        {"id": 4, "name": "a", "at": None},
        {"name": "d"},
        {fresh("name"): "e", "id": 5},
    ]
    same(appender(table(COLUMNS)), appender(table(COLUMNS)), rows * 2)


def test_wide_rows_are_taken_without_the_stack():
    columns = {f"c{number}": DataTypes.int() for number in range(100)}
    inner = row_type(**columns)
    rows = [{name: number for number, name in enumerate(columns)} | {"r": {"c7": 1}}, {"c99": 1}]
    info = table(columns | {"r": inner})
    core = appender(info)
    take, left = taker(core)
    for row in rows:
        take(row)
    assert left.rows == []
    same(appender(info), appender(info), [*rows, {"c100": 1}, {"r": {"c100": 1}}])


# Values of every type, and some that no type, or few, take.
ODD = [
    None, True, 0, -1, 2**31, 2**63, 0.5, float("nan"), "", "abc", "ü", "\ud800", b"", b"ab", date(2024, 1, 1),
    time(1, 2, 3, 456), datetime(2024, 1, 1, 2, 3, 4, 5), datetime(2024, 1, 1, tzinfo=UTC), Decimal("1.5"),  # noqa: DTZ001
    [], [None], ["a"], (1,), {}, {"a": 1}, {"f0": None}, object(), Text("t"), IntEnum("N", ["one"]).one,
]  # fmt: skip


@st.composite
def tables_and_rows(draw):
    types = draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=6))
    columns = {f"c{index}": each for index, each in enumerate(types)}
    random = Random(draw(st.integers(0, 2**32)))
    rows = []
    for values in random_rows(random, types, draw(st.integers(1, 8))):
        row = {}
        for (name, data_type), value in zip(columns.items(), values, strict=True):
            try:
                row[name] = from_physical(data_type)(value)
            except InvalidValueError:
                row[name] = None
        for _ in range(draw(st.integers(0, 2))):
            name = draw(st.sampled_from([*columns, "unknown", 1]))
            match draw(st.sampled_from(["odd", "missing", "order"])):
                case "odd":
                    row[name] = draw(st.sampled_from(ODD))
                case "missing":
                    row.pop(name, None)
                case "order":
                    row = dict(reversed(row.items()))
        rows.append(draw(st.sampled_from([row, list(row.values()), tuple(row.values())])))
    return columns, rows


@settings(max_examples=150)
@given(tables_and_rows())
def test_any_rows_of_any_types_are_taken_or_refused_as_by_the_plain_steps(found):
    columns, rows = found
    same(appender(table(columns)), appender(table(columns)), rows)


@settings(max_examples=40)
@given(tables_and_rows(), st.randoms(use_true_random=False))
def test_partial_updates_are_those_of_the_plain_steps(found, random):
    columns, rows = found
    columns = {name: each.as_nullable() for name, each in columns.items()}
    info = table({"id": DataTypes.bigint(), **columns}, ["id"])
    some = sorted(random.sample(range(1, len(columns) + 1), random.randint(0, len(columns))))
    cores = [upserter(info, target_columns=(0, *some)) for _ in range(2)]
    names = {"id", *(info.schema.column_names[each] for each in some)}
    partial = [
        {"id": number} | {name: each for name, each in row.items() if name in names}
        for number, row in enumerate(row for row in rows if isinstance(row, dict))
    ]
    same(*cores, [*partial, *rows, {"id": None}])


# --- what it leaves behind ----------------------------------------------------------------------


def test_references_are_those_of_the_lists_and_no_others():
    core = appender(table(COLUMNS | NESTED))
    take, left = taker(core)
    objects = [2**40, "ü" * 3, {"x": 1.5, "tags": None}, ["ab", "ü", None], Decimal("1.25"), 2.5]
    row = {
        "id": objects[0], "name": objects[1], "tags": objects[3], "prices": [objects[4]],
        "place": {"x": objects[5]},
    }  # fmt: skip
    refused = [
        row | {"place": {"x": objects[5], "y": 1}}, row | {"deep": [["no number"]]},
        row | {"tags": [*objects[3], 1]}, row | {"counts": {"a": 2**31}}, row | {"unknown": 1},
    ]  # fmt: skip
    take(row)
    before = [sys.getrefcount(each) for each in (*objects, row, take, core.open_rows.chunk)]
    handles = [take(row) for _ in range(100)]
    for each in refused:
        with pytest.raises(InvalidValueError):
            take(each)
    assert len(left.rows) == len(refused)
    left.rows.clear()
    del each, handles
    core.open_rows.clear()
    gc.collect()
    after = [sys.getrefcount(each) for each in (*objects, row, take, core.open_rows.chunk)]
    # The lists had a reference of the first row to its number, its text and its float.
    assert [a - b for a, b in zip(after, before, strict=True)] == [-1, -1, 0, 0, 0, -1, 0, 0, 0]


@pytest.mark.slow  # many rows
def test_memory_does_not_grow_with_rows_that_are_taken_or_refused():
    core = appender(table(COLUMNS | NESTED), batch_bytes_max=1 << 30, batch_bytes_min=1 << 30)
    take, left = taker(core)
    rows = [ROW, NESTED_ROW, ROW | {"name": 7}, NESTED_ROW | {"deep": [["no"]]}, {"unknown": 1}]

    def work():
        for _ in range(1_000):  # of which each loses a reference, if there is a leak
            for row in rows:
                outcome(take, row)
        core.open_rows.clear()
        left.rows.clear()
        gc.collect()

    work()
    tracemalloc.start()
    try:
        work()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            work()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_a_writer_that_nothing_refers_to_is_collected():
    core = appender(table(COLUMNS | NESTED))
    core.take(NESTED_ROW)
    core.take(NESTED_ROW)
    gone = weakref.ref(core)
    del core
    gc.collect()
    assert gone() is None


# --- Python code meanwhile ----------------------------------------------------------------------


def test_a_value_whose_converter_appends_and_changes_the_row():
    core = appender(table(COLUMNS | NESTED))
    take, _ = taker(core)
    row = NESTED_ROW | {"id": 5, "prices": [], "counts": {}}

    class Price:
        """A number, as numpy has them; its conversion runs this."""

        def __index__(self):
            take(ROW)
            row.clear()
            prices.clear()
            return 1

    prices = [Price() for _ in range(5)]
    row["prices"] = prices
    take(row)
    # The elements of the list are those that it had.
    assert core.open_rows.count == 2 + 5
    core.seal()
    assert sum(batch.row_count for batch in core._sender.queued) == 7


def test_keys_with_an_equality_of_their_own_are_left_to_python():
    core = appender(table(COLUMNS))
    take, left = taker(core)
    take(ROW)

    class Key:
        def __init__(self, name):
            self.name = name

        def __hash__(self):
            return hash(self.name)

        def __eq__(self, other):
            take(ROW)
            return self.name == other

    row = {Key("id"): 1, "name": "a"}
    with pytest.raises(FlussError):
        take({Key("nothing"): 1})
    assert outcome(take, row)[0] == core.rows_taken - 1
    assert row in left.rows


def test_a_signal_handler_appends_rows_of_its_own():
    core = appender(table({"n": DataTypes.int(), "s": DataTypes.array(DataTypes.int())}))
    take, _ = taker(core)
    taken = []

    def handler(*_):
        taken.append(take([-1, [1, 2, 3]])._first)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        number = 0
        while len(taken) < 50:
            number += 1
            taken.append(take({"n": number, "s": [number]})._first) if number % 7 else take([0, ()])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(set(taken)) == len(taken)
    assert_sound(core)


def assert_sound(core):
    """Each row has its cells and its elements, and the lock is free."""
    rows = core.open_rows
    assert len(rows.values) == rows.count * core.flat_rows.width
    lengths = rows.values[1 :: core.flat_rows.width]
    assert len(rows.runs[0]) == sum(each or 0 for each in lengths)
    assert rows.lock.acquire(blocking=False)
    rows.lock.release()
    assert not rows.lock._is_owned()
    core.flat_rows.batch(rows.values, rows.runs).validate(full=True)


def test_an_interrupt_between_rows_leaves_whole_rows():
    core = appender(table({"n": DataTypes.int(), "s": DataTypes.array(DataTypes.int())}))
    take, _ = taker(core)
    for _ in range(20):
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                interrupted_after(0.002, take_without_end, take, {"n": 1, "s": [1, 2]})
        finally:
            signal.signal(signal.SIGALRM, before)
        assert_sound(core)
        core.open_rows.begin(core.open_rows.chunk, 1 << 30)
        core.take([1, None])


def interrupted_after(delay_s, work, *given):
    """Call a function; a slow machine may deliver the signal before the call."""
    signal.setitimer(signal.ITIMER_REAL, delay_s)
    work(*given)


def take_without_end(take, row):
    while True:
        take(row)


def test_an_interrupt_ends_the_wait_for_the_lock_and_nothing_is_taken():
    core = appender(table(COLUMNS))
    take, left = taker(core)
    held, done = threading.Event(), threading.Event()

    def hold():
        with core.open_rows.lock:
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_after(0.02, take, ROW)
    finally:
        signal.signal(signal.SIGALRM, before)
        done.set()
        thread.join()
    assert (core.open_rows.count, left.rows) == (1, [])
    assert take(ROW)._first == 1


def test_a_full_chunk_is_sealed_after_its_last_row_and_an_error_of_that_is_raised(monkeypatch):
    core = appender(table({"n": DataTypes.int()}))
    take, left = taker(core)
    core.open_rows.target_bytes = core.open_rows.bytes + 8
    take([1])
    assert core.open_rows.takes_values

    def fail():
        raise KeyboardInterrupt

    monkeypatch.setattr(core, "seal_full", fail)
    with pytest.raises(KeyboardInterrupt):
        take([2])
    assert (core.open_rows.count, core.open_rows.takes_values, left.rows) == (3, False, [])
    monkeypatch.undo()
    take([3])  # begins the next chunk
    assert (left.rows, core.open_rows.count, core.rows_taken) == ([[3]], 1, 4)


def test_rows_and_seals_of_several_threads_lose_nothing():
    core = appender(table({"thread": DataTypes.int(), "s": DataTypes.array(DataTypes.int())}))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:

        def work(number):
            for n in range(3_000):
                core.take({"thread": number, "s": [n] * (n % 3)})
                if n % 500 == number:
                    core.seal()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    assert sum(count for _, count in sent(core)[1]) == core.rows_taken == 12_000


# --- how it is made -----------------------------------------------------------------------------


def made(**changes):
    rows = OpenRows(None, 0)
    facts = {
        "names": ("a",), "columns": (("integer", True, 32),), "sources": (0,), "rows": rows,
        "streams": (rows.values,), "writer": None, "handle": WriteResultHandle, "otherwise": list,
        "row_bytes": 1, "large_row_bytes": 100,
    }  # fmt: skip
    return native.find_row_taker()(**facts | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": ()}, {"columns": (("integer", True, 65),)}, {"columns": (("integer", True),)},
        {"columns": (("nothing", True),)}, {"columns": (7,)}, {"columns": ((),)}, {"sources": (1,)},
        {"sources": (-2,)}, {"sources": ("a",)}, {"streams": ()}, {"streams": ((),)}, {"rows": 7},
        {"handle": dict}, {"names": (1,)}, {"columns": (("list", True, ("list", True, ("date", True))),)},
        {"columns": (("map", True, ("date", True)),)}, {"columns": (("row", True, ("a",), ()),)},
        {"columns": (("row", True, ("a", "b"), (("date", True), ("wrong", True))),)},
        {"columns": (("time", True, 7),)}, {"columns": (("timestamp", True, 0, True),)},
        {"columns": (("list", True, ("date", True)),)},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_description_is_refused(changes):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        made(**changes)
    with pytest.raises(TypeError):
        native.find_row_taker()()
    assert made()


@pytest.mark.skipif(not has_compiler(), reason="install a C compiler (gcc or clang)")
@pytest.mark.slow  # a compiler runs
def test_the_sources_compile_without_a_warning(tmp_path):
    source = ROOT / "packages/fluss-native"
    flags = re.search(r"STRICT = \[(.*?)\]", (source / "setup.py").read_text(), re.DOTALL).group(1)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    done = subprocess.run(
        [
            *compiler, *re.findall(r'"([^"]+)"', flags), "-Werror", "-O2", "-fsyntax-only",
            f"-I{sysconfig.get_path('include')}", *map(str, source.glob("src/*/*.c")),
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
