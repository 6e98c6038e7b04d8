"""Compacted rows and keys against bytes that Java wrote."""

from __future__ import annotations

import pytest

from fluss.rows.compacted import (
    read_compacted_keys,
    read_compacted_rows,
    write_compacted_keys,
    write_compacted_rows,
)
from tests.support.encoded import joined
from tests.support.golden import answers
from tests.support.golden_cases import KEY_CASES, ROW_CASES, WIDE_KEY_CASES
from tests.support.random_columns import columns_of, rows_in
from tests.support.random_values import exact

ROWS = pytest.mark.parametrize("case", ROW_CASES, ids=lambda case: case.name)
KEYS = pytest.mark.parametrize("case", [*KEY_CASES, *WIDE_KEY_CASES], ids=lambda case: case.name)


@ROWS
def test_columns_become_the_recorded_bytes(case):
    written = write_compacted_rows(columns_of(case.types, case.rows), rows=len(case.rows))
    assert list(written) == answers("compacted_rows", case)


@ROWS
def test_the_recorded_bytes_become_columns(case):
    data, starts, ends = joined(answers("compacted_rows", case))
    read = rows_in(read_compacted_rows(data, starts, ends, case.types), length=len(case.rows))
    assert exact(read) == exact(list(case.rows))


@KEYS
def test_key_columns_become_the_recorded_bytes(case):
    written = write_compacted_keys(columns_of(case.types, case.rows))
    assert list(written) == answers("compacted_keys", case)


@KEYS
def test_the_recorded_keys_become_columns(case):
    data, starts, ends = joined(answers("compacted_keys", case))
    read = rows_in(read_compacted_keys(data, starts, ends, case.types), length=len(case.rows))
    assert exact(read) == exact(list(case.rows))
