"""What an engine is to the table of expectations, and what it may say that it cannot do.

To add an engine: write `tests/engines/expectations/engines/<name>.py` with a class that has what
`Engine` lists, and name it in `ENGINES` below. `read` calls the engine as its users would, with the
case's options under the names of a scan, and returns what came as an Arrow table. Nothing else is
to be written: every case of `cases.py` runs with it. Columns may come in the engine's own types
(large strings, times in nanoseconds): they are cast safely to the table's before they are compared.

Where an engine differs, `marks` says so, by the name of the case (or the beginning of several, with
a `*` behind it), as one of three things, each with its reason:

- `notimpl`: it could, and we have not written it;
- `notyet`: the engine cannot today, and may one day;
- `never`: it is against what the engine is.

A marked case must fail: one that passes is a mark too many, and fails the run.
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
    "fsspec": "fsspec:Fsspec",
    "duckdb": "duckdb:DuckDB",
    "pandas": "pandas:Pandas",
    "polars": "polars:Polars",
    "spark": "spark:Spark",
}
PLACE = "tests.engines.expectations.engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why a case fails in an engine, and whose fault it is."""

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
        marks: What fails, by case.
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
            config: How to reach the cluster; None where `table` says it.
            columns: The columns wanted, in this order; to be said in the engine's own way.
            filter: Which rows are wanted; to be said in the engine's own way.
            limit: At most so many rows; to be said in the engine's own way.
            options: Options of the scan, to be given under their names.
        """
        ...


def engine_of(name: str) -> Engine:
    module, _, cls = ENGINES[name].partition(":")
    made: Engine = getattr(importlib.import_module(f"{PLACE}.{module}"), cls)()
    return made


def mark_of(marks: Mapping[str, Mark], case: str) -> Mark | None:
    """What an engine says of a case."""
    for name, mark in marks.items():
        if name == case or (name.endswith("*") and case.startswith(name[:-1])):
            return mark
    return None
