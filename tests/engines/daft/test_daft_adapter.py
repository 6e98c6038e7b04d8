"""The example of `docs/guide/write-an-adapter.md`: Daft reads what it needs, in parallel."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

import fluss
from fluss.errors import TableNotFoundError
from tests.support.servers.stalled_wire import INTERRUPTED_S_MAX, StallingWire, interrupt

daft = pytest.importorskip("daft")

from tests.engines.expectations.engines.daft import ADAPTER, adapter  # noqa: E402 - needs Daft

LINES_MAX = 150
ROWS = 60_000


@pytest.fixture(scope="module")
def daft_fluss():
    return adapter()


@pytest.fixture
def table(session):
    rows = pa.table(
        {
            "id": pa.array(range(1_000), pa.int64()),
            "day": [f"2026-01-0{1 + each % 3}" for each in range(1_000)],
            "x": [each / 8 for each in range(1_000)],
        }
    )
    made = session.create_table("parted", rows, partition_by=["day"], buckets=2)
    made.append(rows)
    return made


def splits_of(source, frame_of):
    """The splits that Daft reads for a query."""
    seen = []
    plan = source._plan

    def note(pushdowns, cancellation):
        tasks = plan(pushdowns, cancellation)
        seen.extend(tasks)
        return tasks

    source._plan = note
    rows = frame_of(source.read()).to_arrow()
    return rows, seen


def test_it_is_short_and_imports_the_door_and_nothing_beneath():
    text = ADAPTER.read_text()
    assert text.count("\n") <= LINES_MAX
    imported = [
        line for line in text.splitlines() if line.startswith(("import fluss", "from fluss"))
    ]
    assert [line.split()[1] for line in imported] == ["fluss.scan"]


def test_filters_choose_partitions_and_columns_are_pruned(daft_fluss, table):
    source = daft_fluss.FlussSource(fluss.scan.source_of(table))
    day = daft.col("day") == "2026-01-02"
    rows, tasks = splits_of(source, lambda frame: frame.where(day).select("id"))
    assert rows.num_rows == 333
    assert {split.partition_name for task in tasks for split in task.splits} == {"2026-01-02"}
    assert {tuple(task.arrow_schema.names) for task in tasks} == {("id", "day")}
    assert len(tasks) == 2  # one for each bucket, read concurrently


def test_a_part_that_differs_in_daft_does_not_spoil_the_rest(daft_fluss, table):
    source = daft_fluss.FlussSource(fluss.scan.source_of(table))
    both = (daft.col("x") > 50.0) & (daft.col("day") == "2026-01-02")
    rows, tasks = splits_of(source, lambda frame: frame.where(both).limit(5))
    assert rows.num_rows == 5
    assert {split.partition_name for task in tasks for split in task.splits} == {"2026-01-02"}
    neither = ~((daft.col("x") > 50.0) & (daft.col("day") == "2026-01-02"))
    rows, tasks = splits_of(source, lambda frame: frame.where(neither))
    assert rows.num_rows == 1_000 - sum(each / 8 > 50 and each % 3 == 1 for each in range(1_000))


def test_a_limit_is_pushed(daft_fluss, table):
    source = daft_fluss.FlussSource(fluss.scan.source_of(table))
    rows, tasks = splits_of(source, lambda frame: frame.limit(7))
    assert rows.num_rows == 7
    [task] = tasks
    assert {split.limit for split in task.splits} == {7}


def test_splits_are_read_concurrently(daft_fluss, table, monkeypatch):
    source = daft_fluss.FlussSource(fluss.scan.source_of(table))
    together = threading.Barrier(2, timeout=60)
    opened = daft_fluss.open_split

    def wait_for_another(*given, **named):
        together.wait()
        return opened(*given, **named)

    monkeypatch.setattr(daft_fluss, "open_split", wait_for_another)
    day = daft.col("day") == "2026-01-02"
    rows, _ = splits_of(source, lambda frame: frame.where(day))
    assert rows.num_rows == 333


def test_a_source_and_its_tasks_can_be_pickled(daft_fluss, table):
    source = pickle.loads(pickle.dumps(daft_fluss.FlussSource(fluss.scan.source_of(table))))  # noqa: S301 - our own
    _, tasks = splits_of(source, lambda frame: frame)
    again = pickle.loads(pickle.dumps(tasks))  # noqa: S301 - our own
    assert [task.splits for task in again] == [task.splits for task in tasks]


def test_an_unknown_table_is_an_error_of_its_own_type(daft_fluss, session, table):
    with pytest.raises(TableNotFoundError, match="did you mean 'parted'"):
        daft_fluss.scan_fluss(table.name.replace("parted", "partd"), config=session.config)


# Daft says on the standard output that it was interrupted.
SETUP = f"""
import os, sys
sys.path.insert(0, {str(ADAPTER.parent)!r})
import daft_fluss
def quietly(query):
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        return query()
    finally:
        os.dup2(kept, 1)
"""


@pytest.mark.slow  # starts a process, and waits until it waits
@pytest.mark.one_server
def test_ctrl_c_ends_a_stalled_query_within_a_second(cluster, session):
    large = session.create_table("large", pa.schema([("id", pa.int64())]), buckets=2)
    numbers = np.random.default_rng(11).integers(0, 2**62, ROWS)
    for start in range(0, ROWS, 2_000):
        large.append(pa.table({"id": numbers[start : start + 2_000]}))
    with StallingWire(cluster.bootstrap) as wire:
        reading = "quietly(daft_fluss.scan_fluss(TABLE).to_arrow)"
        interrupted = interrupt(wire, large.name, reading, setup=SETUP)
    assert interrupted.after_s < INTERRUPTED_S_MAX
    assert interrupted.rows == ROWS


def test_importing_it_imports_no_other_engine():
    program = f"{SETUP}\nprint([m for m in ('polars', 'duckdb', 'pyspark') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
