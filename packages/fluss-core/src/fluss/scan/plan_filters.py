"""Decides what a filter leaves out: partitions, buckets, offsets, and the log where keys are known.

A plan only ever leaves out what cannot hold a row that fulfils the filter. Which rows fulfil it is
decided after the read, by the whole filter (`records.filter.row_filter`). `log.server_filter`
writes the filter by which servers prune. Whether a lookup may answer (it gives the state at the
moment of reading and no other) is decided by `scan.scan_planner`.

The values of a partition are taken from its name. The name of a TIMESTAMP does not tell years
before and after Christ apart (`rows.keys.partition_text`); it is taken for the latter. The name of
a TIME ends at milliseconds, so nothing is derived from it where rows are finer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from fluss.errors import FlussError
from fluss.model.metadata_columns import METADATA_TYPES, metadata_types
from fluss.model.predicates import binding
from fluss.model.predicates.predicate import Predicate, columns_in, conjoined, conjuncts
from fluss.model.tables.partitions import (
    LOSSLESS_IN_PARTITION_NAME,
    PartitionInfo,
    parse_partition_name,
)
from fluss.model.tables.table_info import TableInfo
from fluss.model.types import data_type as t
from fluss.model.values.conversion import from_physical
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import bucket_key_encoder
from fluss.rows.keys.partition_text import partition_value
from fluss.scan.plan_filter_domains import Row, TypedColumn, interval_of, keys_of, matching_rows

# More lookups than these cost more than reading the buckets they would spare.
LOOKUPS_MAX: Final = 10_000
BUCKET_KEYS_MAX: Final = 10_000

Range = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterPlan:
    """The parts of a table that a filter leaves to be read.

    Attributes:
        partition_names: The partitions that can hold rows; None for all.
        bucket_ids: The buckets that can hold rows, by how many buckets their partition has;
            None for all.
        offset_range: The offsets that rows can have, the second excluded; None for all.
        timestamp_range_ms: The commit timestamps that rows can have, the second excluded; None for
            all.
        lookups: The primary keys that rows can have, as people write them, in the order of the
            table's primary key; None for any key, and for too many keys.
        prefixes: The beginnings of primary keys that rows can have, where whole keys are not known:
            the partition keys and the bucket keys (`prefix_columns`).
        prefix_columns: The columns of a prefix.
        pushed: The conditions on the table's own columns, without those that every row of the
            kept partitions fulfils. Readers of a log may apply it while they decode, and servers
            prune by it; where changes become a state, it is applied afterwards.
        metadata_residual: The part of the filter that is left where `pushed` was applied.
        reasons: The parts that are left out and why, for people.
    """

    partition_names: tuple[str, ...] | None = None
    bucket_ids: Mapping[int, tuple[int, ...] | None] | None = None
    offset_range: Range | None = None
    timestamp_range_ms: Range | None = None
    lookups: tuple[Row, ...] | None = None
    prefixes: tuple[Row, ...] | None = None
    prefix_columns: tuple[str, ...] = ()
    pushed: Predicate | None = None
    metadata_residual: Predicate | None = None
    reasons: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no row can fulfil the filter."""
        found = (self.partition_names, self.lookups, self.prefixes)
        buckets = self.bucket_ids
        has_no_bucket = buckets is not None and all(each == () for each in buckets.values())
        return has_no_bucket or any(each == () for each in found)

    def buckets_kept(self, count: int) -> Sequence[int]:
        """The buckets that can hold rows, of a partition with so many buckets."""
        if self.is_empty:
            return ()
        kept = None if self.bucket_ids is None else self.bucket_ids.get(count)
        return range(count) if kept is None else kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFilter:
    """A filter that has met the columns of its table: checked and bound once per scan.

    Attributes:
        predicate: The condition as it was given.
        table: The table.
        bound: The same condition over the physical values of columns.
        metadata: For each metadata column, the name that this scan gives it; without those that a
            column of the table hides.
    """

    predicate: Predicate
    table: TableInfo
    bound: binding.BoundPredicate
    metadata: Mapping[str, str]

    @classmethod
    def of(
        cls,
        predicate: Predicate,
        table: TableInfo,
        metadata_names: Mapping[str, str] | None = None,
    ) -> Self:
        """Check a filter against the columns that it may look at.

        Args:
            predicate: Which rows are requested.
            table: The table.
            metadata_names: For the names that metadata columns have in this scan, their own names;
                None where they are called by those.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
            InvalidValueError: A value is not one of its column's type.
            UnsupportedOperationError: A column of this type cannot be compared like this.
        """
        names = (
            {each: each for each in METADATA_TYPES} if metadata_names is None else metadata_names
        )
        bound = binding.bind(predicate, binding.column_types(table.schema, metadata_types(names)))
        own = frozenset(table.schema.column_names)
        visible = {own_name: name for name, own_name in names.items() if name not in own}
        return cls(
            predicate=predicate, table=table, bound=binding.simplified(bound), metadata=visible
        )

    def plan(
        self, partitions: Sequence[PartitionInfo] | None = None, *, prunes: bool = True
    ) -> FilterPlan:
        """Plan what is left to be read.

        Args:
            partitions: The table's partitions, or those that the scan chooses; None where they are
                not known, so that none is left out.
            prunes: Whether the filter may leave anything out before rows are read. Where it may
                not, because the rows are chosen first, the plan holds only the conditions for
                their reader.
        """
        planning = _Planning(self, partitions)
        return planning.plan() if prunes else planning.without_pruning()


class _Planning:
    def __init__(self, bound: ScanFilter, partitions: Sequence[PartitionInfo] | None) -> None:
        self._predicate = bound.predicate
        self._table = bound.table
        self._partitions = partitions
        self._bound = bound.bound
        self._names = bound.metadata
        self._reasons: list[str] = []

    def plan(self) -> FilterPlan:
        if self._bound == binding.ALL:
            return FilterPlan(reasons=("every row fulfils the filter",))
        if self._bound == binding.NONE:
            return self._nothing()
        kept, partition_rows = self._partitions_kept()
        buckets = {each: self._buckets_kept(each) for each in self._bucket_counts()}
        offsets = self._range("_log_offset", "offsets")
        timestamps = self._range("_commit_timestamp", "commit timestamps (ms)")
        if _is_void(offsets) or _is_void(timestamps):
            return self._nothing()
        keys, prefix = self._table.primary_keys, self._prefix_columns
        lookups = self._keys(keys, partition_rows, "primary keys")
        prefixes = None
        if lookups is None:
            prefixes = self._keys(prefix, partition_rows, "beginnings of primary keys")
        pushed, rest = self._parts(decided=self._decided(partition_rows))
        return FilterPlan(
            partition_names=kept,
            bucket_ids=None if set(buckets.values()) == {None} else buckets,
            offset_range=offsets,
            timestamp_range_ms=timestamps,
            lookups=lookups,
            prefixes=prefixes,
            prefix_columns=prefix if prefixes is not None else (),
            pushed=pushed,
            metadata_residual=rest,
            reasons=tuple(self._reasons),
        )

    def without_pruning(self) -> FilterPlan:
        if self._bound == binding.ALL:
            return FilterPlan(reasons=("every row fulfils the filter",))
        pushed, rest = self._parts(decided=frozenset())
        return FilterPlan(pushed=pushed, metadata_residual=rest)

    def _nothing(self) -> FilterPlan:
        return FilterPlan(
            partition_names=() if self._table.is_partitioned() else None,
            bucket_ids={},
            reasons=("no row can fulfil the filter",),
        )

    # --- partitions and buckets -------------------------------------------------------------------

    def _partitions_kept(self) -> tuple[tuple[str, ...] | None, list[Row] | None]:
        """The partitions that can hold rows, None for all; and their values, None if not known."""
        if not self._table.is_partitioned():
            return None, [()]
        if self._partitions is None:
            return None, None
        columns = [*self._typed(self._table.partition_keys), *self._metadata("_partition")]
        read = {each.partition_name: self._values_of(each) for each in self._partitions}
        known = [(*values, name) for name, values in read.items() if values is not None]
        unread = [name for name, values in read.items() if values is None]
        matching = matching_rows(self._bound, columns, known)
        rows = None if unread else [row[:-1] for row in matching]
        kept = frozenset([*unread, *(row[-1] for row in matching)])
        if len(kept) == len(read) and kept:
            return None, rows
        named = self._columns_named([name for name, _ in columns])
        self._reasons.append(f"{len(kept)} of {len(read)} partitions, by {named}")
        return tuple(name for name in read if name in kept), rows

    def _values_of(self, partition: PartitionInfo) -> Row | None:
        if self._has_finer_rows:
            return None
        try:
            spec = parse_partition_name(partition.partition_name, self._table.partition_keys)
            return tuple(
                partition_value(spec.spec_map[name], data_type)
                for name, data_type in self._typed(self._table.partition_keys)
            )
        except FlussError:
            return None  # the name follows other rules: nothing is derived from it

    @property
    def _has_finer_rows(self) -> bool:
        """Whether rows have digits of a TIME that are missing from the names of partitions."""
        kinds = [kind for _, kind in self._typed(self._table.partition_keys)]
        is_fine = any(isinstance(each, t.TimeType) and _millis(each) > 1 for each in kinds)
        return is_fine and not self._table.keeps_millis

    def _bucket_counts(self) -> list[int]:
        """The bucket counts of the partitions; they differ if the table was rescaled."""
        if not self._partitions:
            return [self._table.num_buckets]
        return sorted({self._table.bucket_count_of(each) for each in self._partitions})

    def _buckets_kept(self, count: int) -> tuple[int, ...] | None:
        columns = self._metadata("_bucket")
        matching = matching_rows(self._bound, columns, [(each,) for each in range(count)])
        hashed = self._buckets_of_keys(count)
        kept = tuple(each for (each,) in matching if hashed is None or each in hashed)
        if len(kept) == count:
            return None
        names = [name for name, _ in columns]
        named = self._columns_named(
            [*names, *(self._table.bucket_keys if hashed is not None else ())]
        )
        self._reasons.append(f"{len(kept)} of {count} buckets, by {named}")
        return kept

    def _buckets_of_keys(self, count: int) -> frozenset[int] | None:
        if not self._table.has_bucket_key:
            return None
        columns = self._typed(self._table.bucket_keys)
        keys = keys_of(self._bound, columns, count_max=BUCKET_KEYS_MAX)
        if keys is None:
            return None
        lake = self._table.options.datalake_format
        encoder = bucket_key_encoder([each for _, each in columns], lake_format=lake)
        function = bucket_function(lake)
        found: set[int] = set()
        for key in keys:
            try:
                found.add(function.bucket(encoder.encode_row(key), count))
            except FlussError:
                return None  # no writer could place this key, or another rule places it
            if len(found) == count:
                return None
        return frozenset(found)

    # --- offsets and times ------------------------------------------------------------------------

    def _range(self, own_name: str, what: str) -> Range | None:
        column = self._names.get(own_name)
        if column is None:
            return None
        low, high = interval_of(self._bound, column)
        if low is None and high is None:
            return None
        stop = None if high is None else high + 1
        shown = [f"from {low}" * (low is not None), f"before {stop}" * (stop is not None)]
        self._reasons.append(f"{what} {' '.join(filter(None, shown))}")
        return low, stop

    # --- keys -------------------------------------------------------------------------------------

    @property
    def _prefix_columns(self) -> tuple[str, ...]:
        """The columns of a prefix lookup; none where the table has no prefix lookups."""
        bucket_keys, physical = self._table.bucket_keys, self._table.physical_primary_keys
        begins = len(bucket_keys) < len(physical) and physical[: len(bucket_keys)] == bucket_keys
        if not self._table.has_primary_key() or not bucket_keys or not begins:
            return ()
        return (*self._table.partition_keys, *bucket_keys)

    def _keys(
        self, names: Sequence[str], partition_rows: list[Row] | None, what: str
    ) -> tuple[Row, ...] | None:
        if not names or partition_rows is None:
            return None
        partition_keys = self._table.partition_keys
        rest = [name for name in names if name not in partition_keys]
        found = keys_of(
            self._bound,
            self._typed(rest),
            count_max=LOOKUPS_MAX,
            heads=partition_rows,
            head_columns=self._typed(partition_keys),
        )
        if found is None:
            return None
        order = [[*partition_keys, *rest].index(name) for name in names]
        typed = self._typed([*partition_keys, *rest])
        # No row has a TIME finer than rows keep it; the bytes of such a key would be another key's.
        found = [each for each in found if not _has_fine_time(each, typed)]
        keys = _for_people(found, order, typed)
        if keys is not None:
            self._reasons.append(f"{len(keys)} {what}, by {', '.join(names)}")
        return keys

    # --- the rest ---------------------------------------------------------------------------------

    def _decided(self, partition_rows: list[Row] | None) -> frozenset[str]:
        """The partition keys of which every row of the kept partitions fulfils the conditions."""
        if partition_rows is None or not self._table.is_partitioned():
            return frozenset()
        typed = self._typed(self._table.partition_keys)
        return frozenset(
            name for name, kind in typed if isinstance(kind, LOSSLESS_IN_PARTITION_NAME)
        )

    def _parts(self, decided: frozenset[str]) -> tuple[Predicate | None, Predicate | None]:
        """The conditions on the table's own columns, and those on metadata columns."""
        further = frozenset(self._names.values())
        parts = conjuncts(self._predicate)
        on_rows = [
            each
            for each in parts
            if not columns_in(each) & further and not _is_decided(each, decided)
        ]
        on_metadata = [each for each in parts if columns_in(each) & further]
        return conjoined(on_rows), conjoined(on_metadata)

    def _typed(self, names: Sequence[str]) -> list[TypedColumn]:
        schema = self._table.schema
        return [(name, schema.column(name).data_type.not_null()) for name in names]

    def _metadata(self, own_name: str) -> list[TypedColumn]:
        column = self._names.get(own_name)
        return [] if column is None else [(column, METADATA_TYPES[own_name])]

    def _columns_named(self, names: Sequence[str]) -> str:
        looked_at = binding.columns_of(binding.weakened(self._bound, names))
        return ", ".join(each for each in names if each in looked_at) or "the filter"


def _is_decided(part: Predicate, decided: frozenset[str]) -> bool:
    """Whether every row fulfils a condition; a constant has no columns, and may be false."""
    columns = columns_in(part)
    return bool(columns) and columns <= decided


def _is_void(bounds: Range | None) -> bool:
    if bounds is None:
        return False
    low, stop = bounds
    return stop is not None and (stop <= 0 or (low is not None and low >= stop))


def _for_people(
    keys: Sequence[Row], order: Sequence[int], columns: Sequence[TypedColumn]
) -> tuple[Row, ...] | None:
    """Keys as people write them; None where one of them has no value in Python."""
    if any(
        _is_too_fine(key[place], kind) for key in keys for place, (_, kind) in enumerate(columns)
    ):
        return None
    back = [from_physical(data_type) for _, data_type in columns]
    try:
        return tuple(tuple(back[place](key[place]) for place in order) for key in keys)
    except FlussError:
        return None  # a time beyond Python's


def _has_fine_time(values: Row, columns: Sequence[TypedColumn]) -> bool:
    return any(
        value % _millis(kind) != 0
        for value, (_, kind) in zip(values, columns, strict=True)
        if isinstance(kind, t.TimeType)
    )


def _millis(data_type: t.TimeType) -> int:
    """How many units of the type a millisecond has, at least one."""
    return max(1, t.UNITS_PER_SECOND[data_type.unit] // 1_000)


def _is_too_fine(value: Any, data_type: t.DataType) -> bool:
    if not isinstance(data_type, t.TimestampType | t.TimestampLtzType):
        return False
    per_microsecond = t.UNITS_PER_SECOND[data_type.unit] // t.UNITS_PER_SECOND["us"]
    return per_microsecond > 1 and value % per_microsecond != 0
