"""Decides by statistics which row groups of a Parquet file are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.parquet as pq

from fluss.model.predicates.binding import BoundPredicate
from fluss_lake.file_plan import OFFSET
from fluss_lake.iceberg_parts import Bounds
from fluss_lake.pruning import may_match

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - values are taken as they are, in UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Consecutive row groups.

    Attributes:
        groups: Their indexes.
        first_row: The index of their first row in the file.
        rows: How many rows they have.
    """

    groups: range
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """The row groups of a file that are read.

    Attributes:
        runs: The row groups, as runs of consecutive ones.
        left_out_by_condition: How many row groups have no row that fulfils the condition.
    """

    runs: tuple[Run, ...]
    left_out_by_condition: int


def row_groups(
    metadata: pq.FileMetaData,
    names: Mapping[str, str],
    condition: BoundPredicate | None,
    offsets: range | None,
) -> RowGroups:
    """Decide which row groups are read.

    Args:
        metadata: The metadata of the file.
        names: The columns' names in the file, by their present names.
        condition: A condition on the rows; None for all rows.
        offsets: The requested offsets; None for all.
    """
    places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    columns = {name: places[stored] for name, stored in names.items() if stored in places}
    runs: list[Run] = []
    first_row = left_out = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        # Statistics are read only if they can decide something.
        bounds = {} if condition is None and offsets is None else _bounds(group, columns)
        is_in_reach = offsets is None or _reaches(bounds.get(OFFSET, Bounds()), offsets)
        if is_in_reach and condition is not None:
            is_in_reach = may_match(condition, bounds, group.num_rows)
            left_out += not is_in_reach
        if is_in_reach:
            if runs and runs[-1].groups.stop == number:
                before = runs.pop()
                groups = range(before.groups.start, number + 1)
                rows = before.rows + group.num_rows
                runs.append(Run(groups=groups, first_row=before.first_row, rows=rows))
            else:
                groups = range(number, number + 1)
                runs.append(Run(groups=groups, first_row=first_row, rows=group.num_rows))
        first_row += group.num_rows
    return RowGroups(runs=tuple(runs), left_out_by_condition=left_out)


def _reaches(known: Bounds, offsets: range) -> bool:
    if known.lowest is None or known.highest is None:
        return True
    return bool(known.lowest < offsets.stop and known.highest >= offsets.start)


def _bounds(group: pq.RowGroupMetaData, columns: Mapping[str, int]) -> dict[str, Bounds]:
    return {name: _bounds_of(group.column(at)) for name, at in columns.items()}


def _bounds_of(column: Any) -> Bounds:
    if not column.is_stats_set:
        return Bounds()
    known = column.statistics
    nulls = known.null_count if known.has_null_count else None
    if not known.has_min_max:
        return Bounds(nulls=nulls)
    try:
        return Bounds(lowest=_as_iceberg(known.min), highest=_as_iceberg(known.max), nulls=nulls)
    except (ValueError, OverflowError):  # a time that Python's classes cannot hold
        return Bounds(nulls=nulls)


def _as_iceberg(value: Any) -> Any:
    """A value in the form of Iceberg's bounds: dates and times as integers."""
    match value:
        case dt.datetime():
            since = value.replace(tzinfo=None) - _EPOCH
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        case dt.date():
            return (value - _EPOCH.date()).days
        case dt.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return seconds * 1_000_000 + value.microsecond
        case _:
            return value
