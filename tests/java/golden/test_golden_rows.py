"""Rows of every format against bytes that Java wrote."""

from __future__ import annotations

import pytest

from tests.support.differential.golden import answers
from tests.support.generators.golden_cases import ROW_CASES
from tests.support.generators.row_codecs import ROW_CODECS
from tests.support.generators.seeded_values import exact


def name(value):
    return str(getattr(value, "name", value))


CASES = pytest.mark.parametrize(
    ("codec", "case"),
    [
        (codec, case)
        for codec in ROW_CODECS
        for case in ROW_CASES
        if codec.row_format != "ALIGNED" or not any(each.is_nested for each in case.types)
    ],
    ids=name,
)


@CASES
def test_rows_become_the_recorded_bytes(codec, case):
    recorded = answers(f"{codec.row_format.lower()}_rows", case)
    assert codec.write(case.types, case.rows) == recorded


@CASES
def test_the_recorded_bytes_become_rows(codec, case):
    recorded = answers(f"{codec.row_format.lower()}_rows", case)
    assert exact(codec.read(case.types, recorded)) == exact(list(case.rows))
