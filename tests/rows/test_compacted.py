"""Compacted rows and keys: hand-worked bytes, both paths against each other, there and back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fluss.model.types import DoubleType, IntType, StringType
from fluss.rows.compacted import read_compacted_rows, write_compacted_rows
from tests.support.random_columns import columns_of, rows_in
from tests.support.random_values import exact, random_rows, random_types


def test_the_worked_example_of_the_handbook_has_these_bytes():
    types = (IntType(), StringType(), DoubleType())
    encoded = write_compacted_rows(columns_of(types, [(1, "part", None)]))
    assert encoded[0].hex() == "04010470617274"


@pytest.mark.parametrize("seed", range(60))
def test_columns_come_back_as_they_were(seed):
    rng = Random(seed)
    types = random_types(rng, rng.randint(1, 10))
    rows = random_rows(rng, types, rng.choice([1, 2, 5, 40]))
    encoded = write_compacted_rows(columns_of(types, rows))
    back = read_compacted_rows(encoded.data, encoded.offsets[:-1], encoded.offsets[1:], types)
    assert exact(rows_in(back, length=len(rows))) == exact(rows)


def test_rows_without_columns_are_empty():
    encoded = write_compacted_rows([], rows=3)
    assert encoded.offsets.tolist() == [0, 0, 0, 0]
    assert read_compacted_rows(encoded.data, np.zeros(3, np.int64), np.zeros(3, np.int64), []) == []
