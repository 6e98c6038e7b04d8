"""The interface between the table of expectations and an engine, and the marks for exceptions.

To add an engine: write `tests/engines/expectations/engines/<name>.py` with a class that has what
`Engine` lists, and name it in `ENGINES` below. `read` calls the engine as its users would, with the
case's options under the names of a scan, and returns the rows as an Arrow table. Nothing else is
needed: every case of `cases.py` runs with it. Columns may come in the engine's own types
(large strings, times in nanoseconds): they are cast safely to the table's before they are compared.

Where an engine differs, `marks` lists the case by name (or several by a prefix ending in `*`), as
one of three kinds, with a reason:

- `notimpl`: the engine could, and the adapter does not do it;
- `notyet`: the engine cannot today;
- `never`: it contradicts the engine's design.

A marked case must fail; one that passes fails the run.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from fluss.model.predicates.predicate import Predicate

ENGINES = {
    "core": "core:Core",
    "daft": "daft:Daft",
    "fsspec": "fsspec:Fsspec",
    "duckdb": "duckdb:DuckDB",
    "pandas": "pandas:Pandas",
    "polars": "polars:Polars",
    "spark": "spark:Spark",
}
PLACE = "tests.engines.expectations.engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why a case fails in an engine."""

    kind: Literal["notimpl", "notyet", "never"]
    reason: str


def notimpl(reason: str) -> Mark:
    return Mark(kind="notimpl", reason=reason)


def notyet(reason: str) -> Mark:
    return Mark(kind="notyet", reason=reason)


def never(reason: str) -> Mark:
    return Mark(kind="never", reason=reason)


class Engine(Protocol):
    """An engine with its adapter.

    Attributes:
        marks: The cases that fail.
        nan_is_greatest: Whether a NaN equals itself and is greater than every number, as databases
            have it; otherwise it is neither less nor greater than anything, as in IEEE 754.
    """

    marks: Mapping[str, Mark]
    nan_is_greatest: bool

    def read(
        self,
        table: Any,
        *,
        config: Mapping[str, Any] | None,
        columns: list[str] | None,
        filter: Predicate | None,  # noqa: A002 - the scan's name
        limit: int | None,
        options: Mapping[str, Any],
    ) -> pa.Table:
        """Read a table as a user of the engine would.

        Args:
            table: `"database.table"` (with `$changelog` or `$binlog`), a URL, or a `Table`.
            config: How to reach the cluster; None if `table` has it.
            columns: The requested columns, in this order; in the engine's own syntax.
            filter: Which rows are requested; in the engine's own syntax.
            limit: The most rows; in the engine's own syntax.
            options: Options of the scan, passed under their names.
        """
        ...


def engine_of(name: str) -> Engine:
    module, _, cls = ENGINES[name].partition(":")
    made: Engine = getattr(importlib.import_module(f"{PLACE}.{module}"), cls)()
    return made


def mark_of(marks: Mapping[str, Mark], case: str) -> Mark | None:
    """Return the mark of an engine for a case."""
    for name, mark in marks.items():
        if name == case or (name.endswith("*") and case.startswith(name[:-1])):
            return mark
    return None
