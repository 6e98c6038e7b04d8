"""The shape of a scan: its kind of rows, its columns and its filter, worked out once per scan.

The shape follows from the options and the table alone; no server is asked. `scan.scan_planner`
finds where the rows are, and `scan.narrow` narrows a shape to a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fluss.errors import InvalidValueError, SchemaMismatchError, UnsupportedOperationError
from fluss.hints import Hint, HintKey
from fluss.model.did_you_mean import did_you_mean
from fluss.model.metadata_columns import metadata_types
from fluss.model.options.scan_options import (
    BUCKET,
    PARTITION,
    Mode,
    Order,
    ScanOptions,
    is_arrow_expression,
)
from fluss.model.predicates.binding import column_types
from fluss.model.predicates.filter_text import SqlFilter
from fluss.model.predicates.predicate import Predicate, columns_in
from fluss.model.tables.partitions import PartitionInfo
from fluss.model.tables.table_info import TableInfo
from fluss.records.filter.arrow_expressions import from_arrow
from fluss.scan.metadata_arrays import output_schema
from fluss.scan.plan_filters import FilterPlan, ScanFilter
from fluss.scan.plan_scan import Output, decide_mode, decide_output
from fluss.scan.split import ScanSplit, change_columns
from fluss.state.changelog import binlog_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanShape:
    """The rows that a scan gives, as far as they are known without asking where logs end.

    Attributes:
        table: The table.
        options: The options; its filter is that of `predicate`.
        mode: The kind of its rows.
        output: The columns that are read; of a binlog, those of the rows before and after.
        chosen: Which columns of a binlog are given; None for all.
        schema: The columns that are given.
        filter: The filter, bound to the table's columns; None for all rows.
    """

    table: TableInfo
    options: ScanOptions
    mode: Mode
    output: Output
    chosen: tuple[str, ...] | None = None
    schema: pa.Schema
    filter: ScanFilter | None = None

    @property
    def order(self) -> Order:
        """The order of the rows; where a limit cuts, it must be one that can be repeated."""
        if self.options.limit is not None and self.options.order is Order.NONE:
            return Order.BUCKET
        return self.options.order

    @property
    def predicate(self) -> Predicate | None:
        """The filter, whatever it was written as; None for all rows."""
        return None if self.filter is None else self.filter.predicate

    @property
    def filter_prunes(self) -> bool:
        """Whether the filter may decide which partitions, buckets and offsets are read.

        Not with a tail: which rows the tail has is decided before the filter.
        """
        return self.options.tail is None

    def plan_filter(self, partitions: Sequence[PartitionInfo] | None = None) -> FilterPlan:
        """Plan the parts of the table, or of these partitions, that the filter leaves."""
        if self.filter is None:
            return FilterPlan()
        return self.filter.plan(partitions, prunes=self.filter_prunes)

    def with_filter(self, predicate: Any) -> ScanShape:
        """The same scan with another filter.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
            InvalidValueError: A value is not one of its column's type.
            UnsupportedOperationError: The rows cannot be filtered by this.
        """
        options = self.options
        if is_arrow_expression(predicate):
            metadata = metadata_types(options.metadata_names)
            predicate = from_arrow(predicate, self.table.schema, metadata)
        elif isinstance(predicate, SqlFilter):
            predicate = self.predicate_of(predicate)
        if predicate is not None and self.mode is Mode.BINLOG:
            raise UnsupportedOperationError(
                "A change in a binlog has a row before and a row after it, so a filter= of rows "
                "does not say which of them it means.",
                hint=Hint(HintKey.FILTER_BINLOG),
            )
        bound = None
        if predicate is not None:
            bound = ScanFilter.of(predicate, self.table, options.metadata_names)
            if self.mode is Mode.STATE:
                own = self.table.schema.column_names
                looked_at = columns_in(predicate).difference(own)
                _check_state_metadata(looked_at, options.metadata_names)
        return replace(self, options=replace(options, filter=predicate), filter=bound)

    def predicate_of(self, given: SqlFilter) -> Predicate:
        """The predicate of a filter in SQL, which may look at any column of the table.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
            InvalidValueError: A literal is not a value of its column's type.
        """
        metadata = metadata_types(self.options.metadata_names)
        return given.predicate(column_types(self.table.schema, metadata))

    def with_columns(self, names: tuple[str, ...]) -> ScanShape:
        """The same scan with these columns, which may be metadata columns.

        Raises:
            SchemaMismatchError: There is no such column; the hint names the nearest.
            InvalidValueError: The rows do not have such a metadata column.
        """
        if self.mode is Mode.BINLOG:  # whole rows are read, and columns of them left out
            whole = _binlog_schema(self.table, self.output, self.options.metadata_prefix)
            return replace(self, chosen=names, schema=_selected(whole, names))
        options = replace(self.options, columns=names, with_metadata=())
        return replace(_with_output(self.table, options, self.mode), filter=self.filter)


def shape_of(table: TableInfo, options: ScanOptions) -> ScanShape:
    """Work out the shape of a scan.

    Raises:
        FlussError: The table has no such columns, or no such rows.
    """
    mode = decide_mode(options, table)
    unfiltered = replace(options, filter=None)
    shape_in_mode = _binlog_shape if mode is Mode.BINLOG else _with_output
    shape = shape_in_mode(table, unfiltered, mode)
    return shape if options.filter is None else shape.with_filter(options.filter)


def split_schema(table: TableInfo, split: ScanSplit) -> pa.Schema:
    """The Arrow schema of a split's rows."""
    if split.mode is not Mode.BINLOG:
        return output_schema(split.output, table.schema.to_arrow())
    whole = _binlog_schema(table, split.output, split.metadata_prefix)
    return whole if split.chosen is None else _selected(whole, split.chosen)


def _with_output(table: TableInfo, options: ScanOptions, mode: Mode) -> ScanShape:
    output = decide_output(options, table, mode)
    if mode is Mode.STATE:
        named = zip(output.names, output.metadata, strict=True)
        metadata = {name: own for name, own in named if own is not None}
        _check_state_metadata(metadata, metadata)
    schema = output_schema(output, table.schema.to_arrow())
    return ScanShape(table=table, options=options, mode=mode, output=output, schema=schema)


def _binlog_shape(table: TableInfo, options: ScanOptions, mode: Mode) -> ScanShape:
    if options.with_metadata:
        raise UnsupportedOperationError(
            "A binlog has its metadata columns already: the kind of change, its offset and time.",
            hint="leave with_metadata out",
        )
    known = table.schema.column_names
    names = known if options.columns is None else options.columns
    if not names:
        raise InvalidValueError(
            "A binlog of no columns says nothing of the rows.",
            hint=Hint(HintKey.COUNT_CHANGES),
        )
    for name in names:
        if name not in known:
            raise SchemaMismatchError(
                f"There is no column {name!r} in {table.table_path}.",
                hint=did_you_mean(name, known)
                or Hint(HintKey.COLUMNS_OF_BINLOG, names=", ".join(known)),
                column=name,
            )
    output = Output(names=tuple(names), metadata=(None,) * len(names))
    schema = _binlog_schema(table, output, options.metadata_prefix)
    return ScanShape(table=table, options=options, mode=mode, output=output, schema=schema)


def _binlog_schema(table: TableInfo, output: Output, prefix: str) -> pa.Schema:
    rows = _selected(table.schema.to_arrow(), output.names)
    return binlog_schema(rows, change_columns(prefix))


def _selected(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _check_state_metadata(names: Iterable[str], metadata: Mapping[str, str]) -> None:
    """Refuse metadata columns that the rows of a state do not have, by their own names."""
    for name in sorted(names):
        if metadata[name] not in {BUCKET, PARTITION}:
            raise InvalidValueError(
                f"The rows of a state have no {name!r}: they are what many changes have left.",
                hint=Hint(HintKey.METADATA_OF_CHANGES),
            )
