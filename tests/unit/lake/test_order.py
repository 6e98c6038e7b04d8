"""Rows of files whose offsets overlap come in the order of offsets, a batch of each at a time."""

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import LimitExceededError, UnsupportedOperationError
from fluss_lake.file_plan import DataFile
from fluss_lake.order import FILES_MAX, in_order, overlapping


def file(first, last):
    return DataFile(
        path=f"{first}", rows=1, size_bytes=1, sequence=1, offsets=(first, last), deletes=()
    )


def batches(offsets, size=7):
    whole = pa.record_batch({"__offset": pa.array(offsets, pa.int64()), "n": pa.array(offsets)})
    return iter([whole.slice(at, size) for at in range(0, len(offsets), size)])


def merged(*files):
    return [each for batch in in_order(list(files)) for each in batch["__offset"].to_pylist()]


def test_runs_are_files_that_overlap():
    files = [file(0, 9), file(5, 20), file(21, 30), file(30, 40), file(50, 60)]
    assert [[each.path for each in run] for run in overlapping(files)] == [
        ["0", "5"],
        ["21", "30"],
        ["50"],
    ]


def test_files_are_merged():
    rng = np.random.default_rng(1)
    owner = rng.integers(0, 3, 200)
    files = [batches(np.flatnonzero(owner == each).tolist()) for each in range(3)]
    assert merged(*files) == list(range(200))


def test_a_batch_that_is_not_in_order_is_sorted():
    mixed = np.random.default_rng(2).permutation(7).tolist()
    assert merged(batches(mixed), batches([7, 8])) == list(range(9))


def test_a_file_that_is_not_in_order_is_refused():
    swapped = [*range(50, 57), *range(7)]  # each batch is in order, the second before the first
    with pytest.raises(UnsupportedOperationError, match="order"):
        merged(batches(swapped), batches([60, 61]))


def test_a_file_without_rows_is_no_hindrance():
    assert merged(batches([]), batches([3, 4])) == [3, 4]
    assert merged() == []


def test_too_many_files_are_refused():
    with pytest.raises(LimitExceededError, match=str(FILES_MAX)):
        list(in_order([iter(())] * (FILES_MAX + 1)))
