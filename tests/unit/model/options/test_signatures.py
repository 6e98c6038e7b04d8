"""The options of scans in signatures, docstrings and types: all of them, from one table."""

import inspect
from typing import get_type_hints

import pandas as pd
import polars as pl
import pytest

import fluss.pandas  # noqa: F401 - gives pandas read_fluss
import fluss_duckdb.duckdb_connection
import fluss_polars  # noqa: F401 - gives Polars scan_fluss
from fluss.model.options import scan_arguments
from fluss.model.options.scan_arguments import FollowArguments, ScanArguments
from fluss.model.options.scan_options import FOLLOW_OPTIONS, SCAN_OPTIONS
from fluss.model.options.signatures import shows_options
from fluss.scan import Scan, open_scan
from fluss.session import Table

TAKES_ALL = [
    pl.scan_fluss,
    pl.read_fluss,
    pd.read_fluss,
    open_scan,
    Table.scan,
    Table.count,
    Scan.with_options,
    fluss_duckdb.duckdb_connection.Connection.fluss,
]


@pytest.mark.parametrize(
    "function", TAKES_ALL, ids=lambda each: f"{each.__module__}.{each.__qualname__}"
)
def test_every_option_is_in_the_signature_and_described(function):
    parameters = inspect.signature(function).parameters
    assert set(SCAN_OPTIONS) <= set(parameters)
    assert all(each.kind is not each.VAR_KEYWORD for each in parameters.values())
    text = " ".join(inspect.getdoc(function).split())
    for name, option in SCAN_OPTIONS.items():
        if name not in {"columns", "start"} or f"{name}: " in text:
            assert f"{name}: {' '.join(option.doc.split())}" in text, name


def test_a_follower_has_no_options_of_an_end():
    parameters = inspect.signature(Table.follow).parameters
    assert set(parameters) - {"self"} == set(FOLLOW_OPTIONS)
    assert not {"end", "tail", "limit", "as_of", "order"} & set(parameters)


def test_the_typed_arguments_are_those_of_the_table_of_options():
    assert set(ScanArguments.__annotations__) == set(SCAN_OPTIONS)
    assert set(FollowArguments.__annotations__) == set(FOLLOW_OPTIONS) - {"start"}
    assert get_type_hints(ScanArguments, vars(scan_arguments))  # every name in it exists


def test_only_the_paragraph_of_the_options_is_replaced():
    @shows_options(["tail"])
    def read(name, **options):
        """Read.

        Args:
            name: Whose.
            **options: The options, in a line
                and another.

        Returns:
            Rows.
        """

    assert inspect.getdoc(read) == (
        "Read.\n\nArgs:\n    name: Whose.\n    tail: The maximum number of rows in all: the last"
        " ones by time, bucket and offset,\n        before the filter is applied.\n\nReturns:\n    Rows."
    )
    assert str(inspect.signature(read)) == "(name, *, tail: 'int | None' = None)"
