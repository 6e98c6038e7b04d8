"""The types of arguments for scans, for editors and type checkers.

What is accepted in fact is decided where an option is parsed (`model.options.scan_options`).
Objects of other libraries are described by a method that they have, so that no library is loaded
and a value of a wrong type is found also where a library has no types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias

from fluss.model.offsets import OffsetSpec
from fluss.model.options.bounds import Bound, Cursor
from fluss.model.predicates.filter_text import SqlFilter
from fluss.model.predicates.predicate import Predicate


class ArrowExpression(Protocol):
    """An expression of pyarrow, `pyarrow.compute.field("id") > 5`."""

    def to_substrait(self, *args: Any, **options: Any) -> Any: ...


class ArrowRows(Protocol):
    """A table of Arrow, as `table.offsets()` gives one."""

    def to_pylist(self) -> list[Any]: ...


class PolarsRows(Protocol):
    """A DataFrame of Polars."""

    def to_dicts(self) -> list[dict[str, Any]]: ...


Condition: TypeAlias = str | Predicate | SqlFilter | ArrowExpression
Place: TypeAlias = (
    Bound
    | Cursor
    | OffsetSpec
    | str
    | int
    | datetime
    | timedelta
    | Mapping[Any, int]
    | ArrowRows
    | PolarsRows
    | Sequence[Mapping[str, Any]]
)
Names: TypeAlias = str | Sequence[str]
Partitions: TypeAlias = str | Mapping[str, object] | Sequence[str | Mapping[str, object]]
ModeName: TypeAlias = Literal["state", "log", "changelog", "binlog"]
OrderName: TypeAlias = Literal["none", "bucket", "timestamp"]
LakeName: TypeAlias = Literal["union", "only", "off"]
StrategyName: TypeAlias = Literal["scan_kv", "limit_scan", "snapshot", "changelog"]
