"""The rows that `benchmarks/peer.py` writes and reads one by one, in three shapes.

`plain` is the six columns of the bulk data. The other two keep an optimisation honest that would
help only these: `wide` has thirty columns of eight types, long texts, and NULL in every second
value; `nested` has a list, a map and a row in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

import pyarrow as pa

from benchmarks._peer_bench import SCHEMA, data_of

Rows: TypeAlias = Callable[[int], list[dict[str, Any]]]

WIDTH: Final = 30
_TEXT: Final = "a text of some length, as logs have it; " * 8
_BEGIN: Final = datetime(2024, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
# Of each type: its Arrow type, and the value of row n.
_KINDS: Final[Sequence[tuple[pa.DataType, Callable[[int], Any]]]] = (
    (pa.int64(), lambda n: n * 1_000_003),
    (pa.string(), lambda n: f"{n:08d} {_TEXT}"),
    (pa.float64(), lambda n: n / 7),
    (pa.int32(), lambda n: n % 100),
    (pa.timestamp("us"), lambda n: _BEGIN + timedelta(milliseconds=n)),
    (pa.bool_(), lambda n: n % 3 == 0),
    (pa.date32(), lambda n: date(2024, 1, 1) + timedelta(days=n % 1_000)),
    (pa.timestamp("us", "UTC"), lambda n: _BEGIN.replace(tzinfo=UTC) + timedelta(seconds=n)),
)
NESTED: Final = pa.schema(
    [
        pa.field("kind", pa.int32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("counts", pa.map_(pa.string(), pa.int32())),
        pa.field("place", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
    ]
)


def plain_rows(count: int) -> list[dict[str, Any]]:
    """Return the bulk data as dicts."""
    rows: list[dict[str, Any]] = data_of(count).to_pylist()
    return rows


def wide_rows(count: int) -> list[dict[str, Any]]:
    """Return rows of thirty columns, with NULL in every second value."""
    return [
        {
            f"c{column}": None if (row + column) % 2 else _KINDS[column % len(_KINDS)][1](row)
            for column in range(WIDTH)
        }
        for row in range(count)
    ]


def nested_rows(count: int) -> list[dict[str, Any]]:
    """Return rows that hold a list, a map and a row."""
    return [
        {
            "kind": row % 100,
            "tags": ["new", f"tag-{row % 1_000}", "seen"],
            "counts": {"clicks": row % 7, "views": row},
            "place": {"x": row / 3, "y": row / 7},
        }
        for row in range(count)
    ]


def _wide() -> tuple[pa.Schema, Rows]:
    fields = [pa.field(f"c{each}", _KINDS[each % len(_KINDS)][0]) for each in range(WIDTH)]
    return pa.schema(fields), wide_rows


SHAPES: Final[dict[str, Callable[[], tuple[pa.Schema, Rows]]]] = {
    "plain": lambda: (SCHEMA, plain_rows),
    "wide": _wide,
    "nested": lambda: (NESTED, nested_rows),
}
