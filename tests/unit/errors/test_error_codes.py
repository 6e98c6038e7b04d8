"""The codes: pyfluss's names, the protocol's numbers, and what may be tried again."""

import csv
from pathlib import Path

import pytest

from fluss.error_codes import ErrorCode

TABLE = Path(__file__).resolve().parents[3] / "tools" / "tables" / "error_codes.csv"

# What Fluss's own Java classes derive from RetriableException and InvalidMetadataException, and the
# three that its clients retry by other means: authentication (51), the coordinator in waiting (65)
# and the opening of a scan (69). Java's client gives up on a wrong bucket count (74); this one
# asks for the count and tries again.
RETRIABLE = {1, 3, 9, 10, 11, 12, 14, 21, 25, 26, 28, 29, 44, 70, 72, 73} | {51, 65, 69} | {74}
REFRESH_METADATA = {1, 12, 21, 44} | {65} | {74}


def test_the_codes_run_without_a_gap_from_the_clients_own_to_the_newest():
    assert [code.value for code in ErrorCode] == list(range(-2, 75))


def test_the_codes_of_09_end_at_63():
    assert {code for code in ErrorCode if code.since == "1.0"} == set(range(64, 75))


def test_retriable_codes_are_those_of_the_protocol():
    assert {code for code in ErrorCode if code.is_retriable} == RETRIABLE


def test_codes_that_ask_for_fresh_metadata_are_retriable_ones():
    assert {code for code in ErrorCode if code.refreshes_metadata} == REFRESH_METADATA
    assert REFRESH_METADATA <= RETRIABLE


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_has_a_sentence(code):
    assert code.sentence[0].isupper()
    assert code.sentence.endswith(".")


def test_a_code_compares_and_prints_as_the_number_that_pyfluss_has():
    assert ErrorCode.TABLE_NOT_EXIST == 7
    assert f"{ErrorCode.CLIENT_ERROR}" == "-2"
    assert isinstance(ErrorCode.STORAGE_BACKPRESSURE_EXCEPTION, int)


def test_the_enum_says_what_the_table_says():
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [
        (str(code.value), code.name, _yes(code.is_retriable), _yes(code.refreshes_metadata),
         code.since, code.sentence)
        for code in ErrorCode
    ] == [tuple(row.values()) for row in rows]  # fmt: skip


def _yes(flag):
    return "yes" if flag else "no"
