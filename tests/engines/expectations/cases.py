"""The table of expectations: the rows that every engine must return for a query.

A case says in Python which of its table's rows are expected (`keep`, over rows as dicts), or which
of them by their `id` (`ids`, where metadata columns are read as well), or how many (`count`), or
exactly what (`exactly`), or which error (`error`, `text`). Rows are compared by value to the last
bit of a float, in any order where the case asks for none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

from fluss import col
from fluss.errors import (
    ConfigError,
    FlussError,
    InvalidNameError,
    InvalidSchemaError,
    InvalidValueError,
    PartitionNotFoundError,
    TableNotFoundError,
)
from fluss.model.predicates.predicate import Predicate
from tests.engines.expectations.tables import DAYS, EVENTS, TYPES

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One expectation.

    Attributes:
        name: Unique; an engine's marks name it.
        table: A table of `tables.py`, with `$changelog` or `$binlog` behind it.
        address: How the table is named: by `name`, `url` (with `query` behind it), or a `Table`.
        filter: Which rows the engine is asked for, in its own way; may depend on the moment in the
            middle of the table's writes.
        keep: Which rows; all by default.
        keep_greatest_nan: Which rows where a NaN is the greatest number and equals itself; None
            where that is the same.
    """

    name: str
    table: str = "events"
    address: Literal["name", "url", "table"] = "name"
    query: str = ""
    columns: tuple[str, ...] | None = None
    filter: Predicate | Callable[[datetime], Predicate] | None = None
    limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    keep: Callable[[Row], bool] = lambda _: True
    keep_greatest_nan: Callable[[Row], bool] | None = None
    ids: set[int] | None = None
    count: int | None = None
    exactly: tuple[Row, ...] | None = None
    is_ordered: bool = False
    error: type[Exception] | None = None
    text: str = ""


def _each_type() -> list[Case]:
    return [
        Case(name=f"type {name} of a {kind}", table=table, columns=("id", name))
        for kind, table in (("log", "types"), ("state", "typed_state"))
        for name in TYPES.names
        if name != "id"
    ]


def _null(name: str) -> Callable[[Row], bool]:
    return lambda row: row[name] is None


_WHOLE = [
    *_each_type(),
    Case(name="whole, a log"),
    Case(name="whole, named by a URL", address="url"),
    Case(name="whole, named by a Table", address="table"),
    Case(name="whole, an empty table of every type", table="empty"),
    Case(name="whole, a state", table="keyed"),
    Case(name="whole, partitions", table="parted"),
    Case(name="whole, columns added in between", table="evolved"),
    Case(name="whole, odd names", table="odd_names"),
]

_COLUMNS = [
    Case(name="columns, one", columns=("x",)),
    Case(name="columns, in another order", columns=("name", "id")),
    Case(name="columns, of a state", table="keyed", columns=("name", "id")),
    Case(name="columns, odd names", table="odd_names", columns=("Ä", 'quo"te', "a b", "select")),
    Case(name="columns, partition keys", table="parted", columns=("day", "id")),
    Case(name="columns, added ones only", table="evolved", columns=("y",)),
    Case(name="columns, unknown", columns=("nam",), error=Exception, text="nam"),
    Case(name="columns, as the scan's option", options={"columns": ["id", "x"]}),
]

_FILTERS = [
    Case(name="filter, equal", filter=col("id") == 77, keep=lambda row: row["id"] == 77),
    Case(name="filter, greater", filter=col("id") > 900, keep=lambda row: row["id"] > 900),
    Case(name="filter, two sides", filter=(col("id") >= 10) & (col("id") < 20),
         keep=lambda row: 10 <= row["id"] < 20),
    Case(name="filter, either", filter=(col("id") == 3) | (col("name") == "n5"),
         keep=lambda row: row["id"] == 3 or row["name"] == "n5"),
    Case(name="filter, of another column than those requested", filter=col("name") == "n1",
         columns=("x",), keep=lambda row: row["name"] == "n1"),
    Case(name="filter, not equal leaves NULL out", filter=col("name") != "n1",
         keep=lambda row: row["name"] not in {None, "n1"}),
    Case(name="filter, negated equality leaves NULL out", filter=~(col("name") == "n1"),
         keep=lambda row: row["name"] not in {None, "n1"}),
    Case(name="filter, is NULL", filter=col("name").is_null(), keep=_null("name")),
    Case(name="filter, is not NULL", filter=col("name").is_not_null(),
         keep=lambda row: row["name"] is not None),
    Case(name="filter, in a list", filter=col("name").is_in(["n0", "n3"]),
         keep=lambda row: row["name"] in {"n0", "n3"}),
    Case(name="filter, not in a list leaves NULL out", filter=~col("name").is_in(["n0", "n3"]),
         keep=lambda row: row["name"] not in {None, "n0", "n3"}),
    Case(name="filter, in a long list", filter=col("id").is_in(list(range(0, 2_000, 3))),
         keep=lambda row: row["id"] % 3 == 0),
    Case(name="filter, starts with", filter=col("name").starts_with("n"),
         keep=lambda row: row["name"] is not None),
    Case(name="filter, contains", filter=col("name").contains("4"),
         keep=lambda row: row["name"] == "n4"),
    Case(name="filter, decimal", filter=col("price") >= Decimal("9.95"),
         keep=lambda row: row["price"] >= Decimal("9.95")),
    Case(name="filter, decimal finer than the column", filter=col("price") > Decimal("9.945"),
         keep=lambda row: row["price"] > Decimal("9.945")),
    Case(name="filter, nothing is left", filter=col("name") == "absent", keep=lambda _: False),
    Case(name="filter, contradiction", filter=(col("id") > 5) & (col("id") < 5),
         keep=lambda _: False),
    Case(name="filter, big integers", table="types", columns=("id", "big"),
         filter=col("big") == 2**60 + 1, keep=lambda row: row["big"] == 2**60 + 1),
    Case(name="filter, date", table="types", columns=("id", "day"),
         filter=col("day") < date(2026, 1, 1), keep=lambda row: row["id"] == 1),
    Case(name="filter, microseconds", table="types", columns=("id", "at_us"),
         filter=col("at_us") > datetime(2026, 1, 1), keep=lambda row: row["id"] == 0),  # noqa: DTZ001
    Case(name="filter, zoned", table="types", columns=("id", "zoned_us"),
         filter=col("zoned_us") > datetime(2026, 1, 1, tzinfo=UTC),
         keep=lambda row: row["id"] == 0),
    Case(name="filter, truth", table="types", columns=("id", "truth"),
         filter=col("truth") == True, keep=lambda row: row["id"] == 0),  # noqa: E712 - a predicate
    Case(name="filter, bytes", table="types", columns=("id", "raw"),
         filter=col("raw") == b"\x00\xff", keep=lambda row: row["id"] == 0),
    Case(name="filter, a key of a state", table="keyed", filter=col("id") == 5,
         keep=lambda row: row["id"] == 5),
    Case(name="filter, a deleted key of a state", table="keyed", filter=col("id") == 15,
         keep=lambda _: False),
    Case(name="filter, keys and more of a state", table="keyed",
         filter=col("id").is_in([1, 2, 3, 15, 500]) & (col("x") > 0),
         keep=lambda row: row["id"] == 500),
    Case(name="filter, values of a state", table="keyed", filter=col("x") < 0,
         keep=lambda row: row["x"] is not None and row["x"] < 0),
    Case(name="filter, a partition", table="parted", filter=col("day") == DAYS[1],
         keep=lambda row: row["day"] == DAYS[1]),
    Case(name="filter, an added column", table="evolved", filter=col("y") == 30,
         keep=lambda row: row["y"] == 30),
    Case(name="filter, an added column is NULL", table="evolved", filter=col("y").is_null(),
         keep=_null("y")),
    Case(name="filter, as the scan's option", options={"filter": col("id") < 7},
         keep=lambda row: row["id"] < 7),
    Case(name="filter, as the scan's option in SQL",
         options={"filter": "id < 7 OR (name = 'n5' AND NOT id BETWEEN 10 AND 500)"},
         keep=lambda row: row["id"] < 7 or (row["name"] == "n5" and not 10 <= row["id"] <= 500)),
    Case(name="filter, as the scan's option in SQL, with a date", table="types",
         columns=("id", "day"), options={"filter": "day < DATE '2026-01-01'"},
         keep=lambda row: row["id"] == 1),
    Case(name="filter, as the scan's option in SQL, after a tail",
         options={"filter": "id >= 0", "tail": 3}, count=3),
    Case(name="filter, as the scan's option in SQL, not understood",
         options={"filter": "id >> 5"}, error=InvalidValueError, text="filter"),
    Case(name="filter, odd names", table="odd_names", filter=col('quo"te') == 4,
         keep=lambda row: row["id"] == 2),
]  # fmt: skip

_NAN = [
    Case(name="nan, greater", table="floats", filter=col("x") > 1.0,
         keep=lambda row: row["x"] is not None and row["x"] > 1.0,
         keep_greatest_nan=lambda row: row["x"] is not None and not row["x"] <= 1.0),
    Case(name="nan, less", table="floats", filter=col("x") < 1.0,
         keep=lambda row: row["x"] is not None and row["x"] < 1.0),
    Case(name="nan, equal to itself", table="floats", filter=col("x").equal(math.nan),
         keep=lambda _: False,
         keep_greatest_nan=lambda row: row["x"] is not None and math.isnan(row["x"])),
    Case(name="nan, not equal", table="floats", filter=col("x") != 1.5,
         keep=lambda row: row["x"] is not None and row["x"] != 1.5),
    Case(name="nan, zero is minus zero", table="floats", filter=col("x") == 0.0,
         keep=lambda row: row["x"] == 0),
    Case(name="nan, minus zero is zero", table="floats", filter=col("x") == -0.0,
         keep=lambda row: row["x"] == 0),
    Case(name="nan, not greater", table="floats", filter=~(col("x") > 1.0),
         keep=lambda row: row["x"] is not None and not row["x"] > 1.0,
         keep_greatest_nan=lambda row: row["x"] is not None and row["x"] <= 1.0),
    Case(name="nan, whole", table="floats"),
]  # fmt: skip

_BOUNDS = [
    Case(name="limit, few", limit=10, count=10),
    Case(name="limit, none", limit=0, count=0),
    Case(name="limit, more than there are", limit=5_000),
    Case(name="limit, of a state", table="keyed", limit=7, count=7),
    Case(name="limit, behind a filter", limit=5, filter=col("id") >= 990, count=5),
    Case(name="limit, more than the filter leaves", limit=50, filter=col("id") >= 990,
         keep=lambda row: row["id"] >= 990),
    Case(name="limit, as the scan's option", options={"limit": 12}, count=12),
    Case(name="tail", options={"tail": 100}, count=100),
    Case(name="tail, in a URL", address="url", query="?tail=100", count=100),
    Case(name="start, latest", options={"start": "latest"}, count=0),
    Case(name="start, a time ago", options={"start": "-1h"}),
    Case(name="end, a time ago", options={"end": "-1h"}, count=0),
    Case(name="start and end, offsets", options={"start": 0, "end": 10}, count=40),
    Case(name="partitions, one", table="parted", options={"partitions": [DAYS[0]]},
         keep=lambda row: row["day"] == DAYS[0]),
    Case(name="partitions, by key", table="parted", options={"partitions": {"day": DAYS[2]}},
         keep=lambda row: row["day"] == DAYS[2]),
    Case(name="partitions, missing and skipped", table="parted", count=334,
         options={"partitions": [DAYS[0], "1999-01-01"], "missing_partitions": "skip"}),
    Case(name="order, by bucket", options={"order": "bucket"}),
    Case(name="order, by time", options={"order": "timestamp"}),
    Case(name="as_of, latest", table="keyed", options={"as_of": "latest"}),
]  # fmt: skip

# Eight rows, written one after the other; a tail of 4 has the ids 4 to 7. A condition that prunes
# before the tail is cut gives rows with other ids. Each: the condition, and the ids that it leaves
# of the tail of a log and of a changelog.
_OF_A_TAIL: dict[str, tuple[Predicate | Callable[[datetime], Predicate], set[int], set[int]]] = {
    "an ordinary column": (col("name") == "n1", {4, 7}, {4, 7}),
    "a partition key": (col("day") == DAYS[0], {4}, {4}),
    "a key": (col("id") == 3, set(), set()),
    "several keys": (col("id").is_in([3, 6]), {6}, {6}),
    "_bucket": (col("_bucket") == 1, {6}, {4}),
    "_log_offset": (col("_log_offset") < 3, {5, 6, 7}, {4, 5}),
    "_commit_timestamp": (lambda moment: col("_commit_timestamp") < moment, {4}, {4}),
}


def _tail(kind: str, what: str) -> Case:
    condition, of_log, of_changes = _OF_A_TAIL[what]
    is_log = kind == "log"
    metadata = (what,) if what.startswith("_") else ()
    return Case(
        name=f"tail of a {kind}, then a filter on {what}",
        table="tailed" if is_log else "tailed_changes$changelog",
        columns=("id", *metadata),
        filter=condition,
        options={"tail": 4, **({"with_metadata": metadata} if metadata else {})},
        ids=of_log if is_log else of_changes,
    )


_TAILS = [
    *(_tail(kind, what) for kind in ("log", "changelog") for what in _OF_A_TAIL),
    Case(name="tail, then a filter as the scan's option", table="tailed", columns=("id",),
         options={"tail": 4, "filter": col("day") == DAYS[0]}, keep=lambda row: row["id"] == 4),
    Case(name="tail, then a key as the scan's option", table="tailed", columns=("id",),
         options={"tail": 4, "filter": col("id") == 3}, keep=lambda _: False),
    Case(name="tail of chosen partitions", table="tailed", columns=("id",),
         options={"tail": 2, "partitions": [DAYS[0]]}, keep=lambda row: row["id"] in {3, 4}),
    Case(name="tail, then a filter, then a limit", table="tailed", columns=("id",),
         options={"tail": 4}, filter=col("name") == "n1", limit=1, count=1),
    Case(name="tail, then a filter that leaves nothing, then a limit", table="tailed",
         options={"tail": 4}, filter=col("id") == 3, limit=1, count=0),
    Case(name="limit as the scan's option, then the engine's filter", table="tailed",
         options={"tail": 4, "order": "timestamp", "limit": 2}, columns=("id",),
         filter=col("day") == DAYS[1], keep=lambda row: row["id"] == 5),
]  # fmt: skip

_METADATA = [
    Case(name="metadata, of a log", columns=("_bucket", "_log_offset"),
         options={"with_metadata": ["_bucket", "_log_offset"]}, count=EVENTS),
    Case(name="metadata, filtered", columns=("id", "_log_offset"), filter=col("_log_offset") < 10,
         options={"with_metadata": ["_log_offset"]}, count=40),
    Case(name="metadata, of another name", columns=("id", "m_bucket"), count=EVENTS,
         options={"with_metadata": True, "metadata_prefix": "m_"}),
    Case(name="changelog, by name", table="few_changes$changelog",
         columns=("id", "x", "_change_type", "_log_offset"), is_ordered=True,
         exactly=(
             {"id": 1, "x": "a", "_change_type": "insert", "_log_offset": 0},
             {"id": 2, "x": "b", "_change_type": "insert", "_log_offset": 1},
             {"id": 1, "x": "a", "_change_type": "update_before", "_log_offset": 2},
             {"id": 1, "x": "c", "_change_type": "update_after", "_log_offset": 3},
             {"id": 2, "x": "b", "_change_type": "delete", "_log_offset": 4},
         )),
    Case(name="changelog, by option", table="few_changes", columns=("id", "_change_type"),
         options={"mode": "changelog"}, filter=col("_change_type") == "delete",
         exactly=({"id": 2, "_change_type": "delete"},)),
    Case(name="changelog, by URL", table="few_changes$changelog", address="url", count=5),
    Case(name="binlog, by name", table="few_changes$binlog", count=4),
]  # fmt: skip

_ERRORS = [
    Case(name="error, unknown table", table="events", query="nts", error=TableNotFoundError,
         text="did you mean"),
    Case(name="error, no table's name", query=".a.b", error=InvalidNameError),
    Case(name="error, unknown view", query="$changelogs", error=InvalidNameError,
         text="changelog"),
    Case(name="error, unknown option", options={"partition": "x"}, error=ConfigError,
         text="did you mean 'partitions'"),
    Case(name="error, wrong type", options={"tail": "many"}, error=InvalidValueError,
         text="tail='many'"),
    Case(name="error, unknown mode", options={"mode": "changes"}, error=InvalidValueError,
         text="mode='changes'"),
    Case(name="error, contradicting bounds", options={"start": 10, "end": 5},
         error=InvalidValueError, text="begins at"),
    Case(name="error, contradicting options", options={"as_of": 5, "tail": 5},
         error=InvalidValueError, text="both given"),
    Case(name="error, view and mode", table="few_changes$changelog", options={"mode": "binlog"},
         error=InvalidValueError, text="leave one of them out"),
    Case(name="error, missing partition", table="parted", options={"partitions": ["1999-01-01"]},
         error=PartitionNotFoundError),
    Case(name="error, partitions of a table without", options={"partitions": ["x"]},
         error=FlussError),
    Case(name="error, unknown column of the option", options={"columns": ["nam"]},
         error=FlussError, text="did you mean 'name'"),
    Case(name="error, unknown column of the filter", options={"filter": col("nam") == 1},
         error=InvalidSchemaError, text="did you mean 'name'"),
    Case(name="error, an endless scan", options={"follow": True}, error=FlussError, text="follow"),
    Case(name="error, a state has no tail", table="keyed",
         options={"mode": "state", "tail": 5}, error=InvalidValueError, text="tail="),
]  # fmt: skip

CASES = (*_WHOLE, *_COLUMNS, *_FILTERS, *_NAN, *_BOUNDS, *_TAILS, *_METADATA, *_ERRORS)
