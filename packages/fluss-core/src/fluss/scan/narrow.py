"""Narrows a scan to a query of an engine: fewer columns, a condition, a limit.

The rules are decided here and nowhere else. The condition and the limit of an engine come after all
options of the scan, its `tail`, `filter` and `limit` among them. So a condition joins the filter
unless the scan has a limit of its own, which would then cut other rows, or is a binlog, whose rows
have no columns of the table. A condition that cannot join is the residual: the engine applies it,
and the columns that it looks at are read as well. A limit is taken where nothing is residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.metadata_columns import metadata_types
from fluss.model.options.scan_options import Mode
from fluss.model.predicates.filter_text import parse_filter
from fluss.model.predicates.predicate import Predicate, columns_in, conjoined
from fluss.records.filter.arrow_expressions import split_arrow
from fluss.records.filter.expression_tree import fields_of
from fluss.scan.plan_scan import window_left_by
from fluss.scan.shape import ScanShape
from fluss.scan.split import ScanSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowedShape:
    """A shape that gives less, and what it leaves to the engine.

    Attributes:
        shape: The shape of the scan that is read.
        residual: The condition that the engine applies, a `Predicate` or a pyarrow expression as it
            was given; None for none.
        takes_limit: Whether the scan itself cuts to the limit.
    """

    shape: ScanShape
    residual: Any
    takes_limit: bool


def narrow(
    shape: ScanShape,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    limit: int | None = None,
) -> NarrowedShape:
    """Narrow a shape; see `Scan.narrowed`.

    Raises:
        InvalidValueError: The scan has no such column; the hint names the nearest.
        FlussError: The predicate does not fit the columns.
    """
    if columns is not None:
        _check_columns(shape, columns)
    if isinstance(predicate, str):
        predicate = shape.predicate_of(parse_filter(predicate))
    joins, residual = _divided(shape, predicate)
    names = _names_read(shape, columns, residual)
    narrowed = shape
    if joins is not None:
        given = shape.predicate
        narrowed = narrowed.with_filter(joins if given is None else conjoined([given, joins]))
    if names is not None and names != tuple(shape.schema.names):
        narrowed = narrowed.with_columns(names)
    takes_limit = residual is None
    if limit is not None and takes_limit:
        least = limit if shape.options.limit is None else min(limit, shape.options.limit)
        narrowed = replace(narrowed, options=replace(narrowed.options, limit=least))
    return NarrowedShape(shape=narrowed, residual=residual, takes_limit=takes_limit)


def narrow_splits(shape: ScanShape, splits: Sequence[ScanSplit]) -> tuple[ScanSplit, ...]:
    """The splits of a scan in a narrower shape; where each begins and ends is kept."""
    filtered = shape.plan_filter()
    if filtered.is_empty and shape.filter is not None:
        # The splits are pinned, so nothing can be left out: the reader filters every row away.
        filtered = shape.filter.plan(prunes=False)
    times = None if shape.mode is Mode.STATE else window_left_by(filtered)
    return tuple(
        replace(
            split,
            output=shape.output,
            chosen=shape.chosen,
            filter=filtered.pushed,
            metadata_filter=filtered.metadata_residual,
            window=split.window if times is None else times.meet(split.window),
            limit=shape.options.limit,
        )
        for split in splits
    )


def _check_columns(shape: ScanShape, columns: Sequence[str]) -> None:
    known = shape.schema.names
    for name in columns:
        if name not in known:
            raise InvalidValueError(
                f"The scan of {shape.table.table_path} has no column {name!r}.",
                hint=did_you_mean(name, known) or f"it has {', '.join(known)}",
                column=name,
            )


def _divided(shape: ScanShape, predicate: Any) -> tuple[Predicate | None, Any]:
    """The part of a condition that joins the filter, and the residual."""
    if predicate is None:
        return None, None
    if shape.options.limit is not None or shape.mode is Mode.BINLOG:
        return None, predicate
    if isinstance(predicate, Predicate):
        return predicate, None
    metadata = metadata_types(shape.options.metadata_names)
    return split_arrow(predicate, shape.table.schema, metadata)


def _names_read(
    shape: ScanShape, columns: Sequence[str] | None, residual: Any
) -> tuple[str, ...] | None:
    """The columns that are read; None for those of the scan."""
    looked_at = _columns_in(residual)
    if looked_at is None:  # it may look at any column
        return None
    known = shape.schema.names
    names = dict.fromkeys(known if columns is None else columns)
    if shape.mode is Mode.BINLOG:
        looked_at = looked_at.intersection(known)
    return (*names, *sorted(looked_at.difference(names)))


def _columns_in(residual: Any) -> frozenset[str] | None:
    if residual is None:
        return frozenset()
    return columns_in(residual) if isinstance(residual, Predicate) else fields_of(residual)
