"""`pl.scan_fluss` and `pl.read_fluss`: a table as a LazyFrame, asked for at every collect.

Polars tells a resolver which columns, filters and rows a query needs; the resolver plans a scan of
just that, pins where it ends, and gives Polars one source for each of its splits. What Fluss was
asked stands in `explain()`. Filters that Fluss can know are pushed (`pushdown`), and applied again
by Polars, whose word counts.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import polars as pl
from polars.io.plugins import register_io_source
from polars.lazyframe.resolver import (
    FilterExpr,
    LazyFrameResolver,
    ResolvedLazyFrameProps,
)

from fluss.doors import at_door
from fluss.errors import SchemaMismatchError
from fluss.hints import Door
from fluss.model.metadata_columns import metadata_types
from fluss.model.options.bounds import Bound, BoundKind, Cursor
from fluss.model.options.scan_options import Mode, Order, ScanOptions
from fluss.model.predicates.binding import column_types
from fluss.model.predicates.predicate import Predicate, columns_in, conjoined
from fluss.model.tables.partitions import LOSSLESS_IN_PARTITION_NAME
from fluss.scan import ScanSplit
from fluss.session import Scan, Table, TableName, TableSource, source_of
from fluss.waiting import InterruptibleLock
from fluss_polars.pushdown import pushed
from fluss_polars.query_plan import Plan, ask
from fluss_polars.split_source import SplitSource, schema_of

# More sources than these would only be more threads; splits beyond share them.
SOURCES_MAX: Final = 16
PLACES_SHOWN_MAX: Final = 4
# Nobody can interrupt a resolver, and Ctrl-C must be noticed within a second.
PLAN_S_MAX: Final = 0.5
_versions = itertools.count()


@at_door(Door.POLARS)
def scan_fluss(
    table: TableName, *, config: Any = None, pinned: bool = False, **options: Any
) -> pl.LazyFrame:
    """Scan a Fluss table lazily: a log, or the rows of a primary-key table.

    Each collect reads up to where the table ends at that moment; a pinned frame always to where it
    ended when the frame was made. Only the columns, partitions, buckets and keys that a query needs
    are read.

    Args:
        table: `"database.table"`, with `$changelog` or `$binlog` behind it if those are wanted, a
            `fluss://` URL, or a `Table`.
        config: How to reach the cluster; the URL, the active session, the environment or the
            profile otherwise.
        pinned: Whether every collect is to see the table as it is now.
        **options: columns, filter, start, end, tail, limit, partitions, mode, as_of,
            with_metadata, order, …: `fluss.model.options.scan_options.SCAN_OPTIONS` says what each
            does.

    Raises:
        ConfigError: There is no option of a name; the hint names the nearest.
        InvalidValueError: A value is not one its option takes, or two contradict each other.
        UnsupportedOperationError: The scan would have no end.

    Example:
        >>> pl.scan_fluss("sales.orders").filter(pl.col("id") > 5).collect()  # doctest: +SKIP
    """
    source = source_of(table, options, config=config)
    if pinned:
        source = _pinned(source)
    return FlussScan(source).lazy()


@at_door(Door.POLARS)
def read_fluss(table: TableName, *, config: Any = None, **options: Any) -> pl.DataFrame:
    """Read a Fluss table: `scan_fluss(...).collect()`, with the same arguments.

    Raises:
        TableNotFoundError: There is no such table; the hint names the nearest.
    """
    return scan_fluss(table, config=config, **options).collect()


@at_door(Door.POLARS)
class FlussScan(LazyFrameResolver):
    """A table in a query of Polars. Holds no connection, and can be pickled."""

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._schema: pl.Schema | None = None
        self._lock = InterruptibleLock()

    def schema(self) -> pl.Schema:
        """The columns, asked for once: a frame keeps those it began with."""
        with self._lock:
            if self._schema is None:
                table = ask(self._source.open)
                self._schema = schema_of(Scan(table.core, self._source.options).schema)
            return self._schema

    def resolve_lazyframe(
        self,
        *,
        projection: list[str] | None,
        limit: int | None,
        filters: list[FilterExpr],
        filter_columns: list[str],  # noqa: ARG002 - they are in the projection
        filter_drop_columns_idx: int | None,
        existing_resolved_version_key: str | None,  # noqa: ARG002 - never the same twice
    ) -> tuple[pl.LazyFrame, ResolvedLazyFrameProps]:
        """The sources of one collect."""
        table = ask(self._source.open)
        wanted = _PushdownPlan.of(table, self._source.options, [each.expr for each in filters])
        names = self.schema().names() if projection is None else projection
        if projection is not None and filter_drop_columns_idx is not None:
            # What only filters look at that the partitions have decided is not read at all.
            behind = frozenset(projection[filter_drop_columns_idx:]) - wanted.looked_at
            names = [each for each in projection if each not in behind]
        options = _asked(self._source.options, names, wanted, limit)
        frame = self._union(Scan(table.core, options), options, names)
        if limit is not None:
            frame = frame.filter(*wanted.left) if wanted.left else frame
            frame = frame.head(limit)
        # A stream has moved on at the next collect, so no answer is the same as the last.
        return frame, ResolvedLazyFrameProps(
            version_key=str(next(_versions)), applied_filters=wanted.decided
        )

    def _union(self, scan: Scan, options: ScanOptions, names: list[str]) -> pl.LazyFrame:
        given = schema_of(scan.schema)
        self._refuse_other_types(given, names)
        plan = Plan(scan.splits)
        splits = plan.splits(PLAN_S_MAX)
        if splits == ():
            return pl.LazyFrame(schema={name: given[name] for name in names})
        count = _sources(options, splits)
        sources = [
            register_io_source(
                SplitSource(
                    plan=plan,
                    number=number,
                    count=count,
                    config=self._source.config,
                    order=options.repeatable_order,
                    max_parallel=options.max_parallel,
                    columns=given,
                ),
                schema=given,
                validate_schema=True,
                explain_name="fluss",
                explain_detail=_detail(scan, splits, number, count),
            )
            for number in range(count)
        ]
        frame = pl.union(sources) if len(sources) > 1 else sources[0]
        return frame if given.names() == names else frame.select(names)

    def _refuse_other_types(self, given: pl.Schema, names: list[str]) -> None:
        schema = self.schema()
        for name in names:
            if given[name] != schema[name]:
                raise SchemaMismatchError(
                    f"The column {name!r} of {self._source.path} was {schema[name]} when the frame "
                    f"was made, and is {given[name]} now.",
                    hint="the table has been made anew: scan it again",
                    column=name,
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return FlussScan, (self._source,)

    def __repr__(self) -> str:
        return f"FlussScan({self._source.path})"


# --- what Fluss is asked --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _PushdownPlan:
    """What the filters of a query come to.

    Attributes:
        predicate: What Fluss is asked for; None for all rows.
        decided: Which of the filters the choice of partitions decides by itself.
        left: The filters that Polars applies.
    """

    predicate: Predicate | None
    decided: tuple[int, ...]
    left: tuple[pl.Expr, ...]

    @property
    def looked_at(self) -> frozenset[str]:
        """The columns of the filters that Polars applies."""
        return frozenset(name for each in self.left for name in each.meta.root_names())

    @classmethod
    def of(cls, table: Table, given: ScanOptions, filters: Sequence[pl.Expr]) -> Self:
        if not given.takes_filter:
            return cls(predicate=None, decided=(), left=tuple(filters))
        type_of = column_types(table.fluss_schema, metadata_types(given.metadata_names))
        keys = frozenset(
            name
            for name in table.partition_by
            if isinstance(type_of(name), LOSSLESS_IN_PARTITION_NAME)
        )
        found = [pushed(each, type_of) for each in filters]
        decided = tuple(
            number
            for number, each in enumerate(found)
            if each is not None and each.is_exact and columns_in(each.predicate) <= keys
        )
        said = [each.predicate for each in found if each is not None]
        left = tuple(each for number, each in enumerate(filters) if number not in decided)
        return cls(predicate=conjoined(said), decided=decided, left=left)


def _asked(
    given: ScanOptions, names: Sequence[str], wanted: _PushdownPlan, limit: int | None
) -> ScanOptions:
    if given.mode is Mode.BINLOG:
        return given
    said: Any = wanted.predicate
    if given.filter is not None:
        said = given.filter if said is None else given.filter & said
    options = replace(given, columns=tuple(names), with_metadata=(), filter=said)
    if limit is not None and not wanted.left:
        options = replace(options, limit=limit if given.limit is None else min(limit, given.limit))
    return options


def _sources(options: ScanOptions, splits: Sequence[ScanSplit] | None) -> int:
    """How many sources share the splits: one where there is an order, and never too many.

    Where it is not known how many splits there are, the sources beyond them end at once.
    """
    if options.repeatable_order is not Order.NONE:
        return 1
    return SOURCES_MAX if splits is None else min(len(splits), SOURCES_MAX)


def _detail(scan: Scan, splits: Sequence[ScanSplit] | None, number: int, count: int) -> str:
    """What Fluss was asked, in the one line that a plan of Polars has for it."""
    if splits is None:
        return "still being planned"
    places = _places(splits[number::count])
    if number:
        return places
    said = [each.strip() for each in scan.explain().splitlines()]
    said = said[: next(n for n, each in enumerate(said) if each.startswith("splits:")) + 1]
    return " | ".join([*said, places])


def _places(splits: Sequence[ScanSplit]) -> str:
    shown = [
        f"{'' if each.partition_name is None else each.partition_name + ' '}"
        f"bucket {each.bucket.bucket_id} [{each.start}, {each.stop})"
        for each in splits[:PLACES_SHOWN_MAX]
    ]
    left = len(splits) - len(shown)
    more = f", and {left} more" if left else ""
    return ", ".join(shown) + more


# --- pinning --------------------------------------------------------------------------------------


def _pinned(source: TableSource) -> TableSource:
    """The same, ending for ever where it ends now."""
    options = source.options
    table = source.open()
    splits = Scan(table.core, options).splits()
    if any(each.keys is not None for each in splits):
        # A lookup has no end of its own; the state that it would ask has one.
        splits = Scan(table.core, replace(options, filter=None)).splits()
    offsets = {each.bucket: each.stop for each in splits}
    end = Bound(kind=BoundKind.CURSOR, cursor=Cursor.of(table.info.table_id, offsets))
    is_state = bool(splits) and splits[0].mode is Mode.STATE
    names = tuple({each.partition_name: None for each in splits if each.partition_name is not None})
    now_ms = time.time_ns() // 1_000_000
    return replace(
        source,
        options=replace(
            options,
            start=None if options.start is None else options.start.at(now_ms),
            end=None if is_state or options.as_of is not None else end,
            as_of=end if is_state and options.as_of is None else options.as_of,
            partitions=names if table.partition_by else options.partitions,
        ),
    )
