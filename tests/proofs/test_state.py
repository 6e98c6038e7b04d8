"""The state of a table at any offset, by every strategy, against dicts after random operations.

A normal run has a few hundred operations; `./dev prove state` has ten thousand, and checks fifty
offsets among them.
"""

import importlib.util
import time

import pytest

from fluss.errors import SnapshotNotFoundError
from fluss.model.change_type import ChangeType
from fluss.state.log_rows import read_changes
from fluss_testkit.cluster_profiles import FAST_SNAPSHOTS
from tests.support.differential.state_model import StateTable
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE

OPERATIONS = 10_000 if IS_EXHAUSTIVE else 600
MOMENTS = 50 if IS_EXHAUSTIVE else 6
ROUND_MAX = OPERATIONS // 40
STRATEGIES = (None, "changelog", "limit_scan", "snapshot")
SNAPSHOT_WAIT_S = 30
needs_rocksdb = pytest.mark.skipif(
    importlib.util.find_spec("rocksdict") is None, reason="needs fluss-core[snapshot]"
)
pytestmark = [
    pytest.mark.slow,  # snapshots are taken every two seconds
    pytest.mark.timeout(1_800),
    needs_rocksdb,
]


@pytest.fixture(scope="module")
def history(start_cluster):
    """A table of two partitions with four buckets each, to which columns were added in between."""
    with start_cluster(FAST_SNAPSHOTS) as running:
        table = StateTable(
            running.bootstrap_servers, "history", partitioned=True, bucket_count=4, seed=11
        )
        written = 0
        for share, column in ((0.4, "first"), (0.7, "second")):
            written = _write_until(table, written, int(share * OPERATIONS))
            table.add_column(column)
            written = _write_until(table, written, written + 20)  # without knowing the column
            table.open()
        written = _write_until(table, written, int(0.9 * OPERATIONS))
        _wait_for_snapshots(table)
        _write_until(table, written, OPERATIONS)  # changes after the last snapshot
        yield table
        table.close(drops=False)  # its cluster is removed with it


def _write_until(table, written, target):
    while written < target:
        count = min(table.rng.randint(1, ROUND_MAX), target - written)
        table.write(count)
        written += count
    return written


def _wait_for_snapshots(table):
    deadline = time.monotonic() + SNAPSHOT_WAIT_S
    pins = {bucket: pin for bucket, pin in table.moments[-1].pins.items() if pin}
    while True:
        try:
            return table.plans(pins, "snapshot")
        except SnapshotNotFoundError:
            assert time.monotonic() < deadline, "no snapshot was taken"
            time.sleep(0.2)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_the_state_after_any_operation_is_that_of_a_dict(history, strategy):
    moments = history.rng.sample(history.moments, min(MOMENTS, len(history.moments)))
    assert len(moments) == MOMENTS
    for moment in [*moments, history.moments[-1]]:
        pins = {bucket: pin for bucket, pin in moment.pins.items() if pin or strategy is None}
        plans = history.plans(pins, strategy, is_past=moment is not history.moments[-1])
        assert history.read(plans) == history.expected(moment)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_the_state_at_any_offset_is_that_of_its_changes_one_by_one(history, strategy):
    """Check offsets inside of batches, and between the halves of an update."""
    bucket = max(history.moments[-1].pins, key=lambda each: history.moments[-1].pins[each])
    end = history.moments[-1].pins[bucket]
    changes = _changes(history, bucket, end)
    for pin in sorted(history.rng.sample(range(1, end + 1), MOMENTS)):
        found = history.read(history.plans({bucket: pin}, strategy))
        assert found == _replayed(changes, pin), pin


def _changes(table, bucket, end):
    columns = range(len(table.table.info.schema.columns))
    return [
        (offset, ChangeType(kind), row)
        for batch in read_changes(table.table, bucket, 0, end, columns)
        for offset, kind, row in zip(
            batch.row_offsets(), batch.change_types, batch.batch.to_pylist(), strict=True
        )
    ]


def _replayed(changes, pin):
    state = {}
    for offset, kind, row in changes:
        if offset < pin:
            key = row["place"], row["id"]
            if kind is ChangeType.Delete:
                del state[key]
            elif kind is not ChangeType.UpdateBefore:
                state[key] = row
    return state
