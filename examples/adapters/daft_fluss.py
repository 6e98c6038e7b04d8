"""Fluss tables in Daft: `scan_fluss("db.table")` is a lazy Daft DataFrame.

This is a complete adapter for an engine for which this repository has no package. It imports only
`fluss.scan`, the interface for engines, which `docs/guide/write-an-adapter.md` explains.
`Scan.narrowed` decides what a scan reads for a query, so this file only translates.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import daft
import pyarrow as pa
import pyarrow.compute as pc
from daft.expressions import Expression, ExpressionVisitor
from daft.io.pushdowns import Pushdowns
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import RecordBatch
from daft.schema import Schema

from fluss.scan import Cancellation, Order, ScanSplit, TableName, TableSource, open_split, source_of


def scan_fluss(table: TableName, *, config: Any = None, **options: Any) -> daft.DataFrame:
    """Scan a table lazily; each `collect()` reads up to where the table ends at that moment.

    Args:
        table: `"database.table"`, `"database.table$changelog"`, a `fluss://` URL, or a `Table`.
        config: How to reach the cluster.
        **options: Options of the scan, `tail=100` for example; `fluss.scan.SCAN_OPTIONS` has them.
    """
    return FlussSource(source_of(table, options, config=config)).read()


class FlussSource(DataSource):
    """The data source of a table, which Daft plans. It holds no connection and can be pickled."""

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._arrow_schema = pa.schema([_known_to_daft(field) for field in source.scan().schema])

    @property
    def name(self) -> str:
        return f"Fluss({self._source.path})"

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self._arrow_schema)

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        cancellation = Cancellation()
        try:
            tasks = await asyncio.to_thread(self._plan, pushdowns, cancellation)
        finally:
            cancellation.cancel()  # ends the planning if Daft stops waiting for it
        for task in tasks:
            yield task

    def _plan(self, pushdowns: Pushdowns, cancellation: Cancellation) -> list[FlussTask]:
        schema = self._arrow_schema
        if pushdowns.columns is not None:  # Daft expects the columns of its filter, too
            needed = {*pushdowns.columns, *pushdowns.filter_required_column_names()}
            schema = pa.schema([field for field in schema if field.name in needed])
        to_arrow = _ToArrow(self._arrow_schema)
        predicate = None if pushdowns.filters is None else to_arrow.visit(pushdowns.filters)
        # Daft applies the filter and the limit again, so the residual is not needed. But a limit
        # must not cut before a part of the filter that only Daft applies.
        limit = pushdowns.limit if to_arrow.is_whole else None
        scan = self._source.scan()
        scan = scan.narrowed(columns=schema.names, predicate=predicate, limit=limit).scan
        splits = scan.splits(cancellation=cancellation)
        # Rows that have an order or a limit are one stream; other splits are read in parallel.
        parts = [[split] for split in splits] if scan.order is Order.NONE else [splits]
        return [FlussTask(self._source, part, scan.order, schema) for part in parts if part]


@dataclass(frozen=True)
class FlussTask(DataSourceTask):
    """A task of Daft, which reads some splits in this process or on another machine."""

    source: TableSource
    splits: list[ScanSplit]
    order: Order
    arrow_schema: pa.Schema

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self.arrow_schema)

    async def read(self) -> AsyncIterator[RecordBatch]:
        cancellation = Cancellation()
        how: dict[str, Any] = {"config": self.source.config, "order": self.order}
        try:
            # Daft reads all tasks on one event loop, so each one waits for its rows on a thread.
            reader = await asyncio.to_thread(
                open_split, self.splits, **how, cancellation=cancellation
            )
            while (batch := await asyncio.to_thread(next, reader, None)) is not None:
                rows = batch.select(self.arrow_schema.names).cast(self.arrow_schema)
                yield RecordBatch.from_arrow_record_batches([rows], self.arrow_schema)
        finally:
            cancellation.cancel()  # also if Daft has enough rows


def _known_to_daft(field: pa.Field) -> pa.Field:
    return field.with_type(pa.time64("us")) if pa.types.is_time32(field.type) else field


class _ToArrow(ExpressionVisitor[Any]):
    """Translates a filter to Arrow; the result is None for a part that only Daft can apply.

    These are conditions on floats: in Daft, NaN is above all numbers, and 0.0 is not -0.0.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.is_whole = True

    def visit_col(self, name: str) -> Any:
        is_float = pa.types.is_floating(self._schema.field(name).type)
        return self._unknown() if is_float else pc.field(name)

    def visit_lit(self, value: Any) -> Any:
        return self._unknown() if isinstance(value, float) else pc.scalar(value)

    def visit_function(self, name: str, args: list[Expression]) -> Any:
        known = [each for each in map(self.visit, args) if each is not None]
        if name == "and" and len(known) == 1:
            return known[0]  # one side alone keeps more rows, which Daft filters
        if len(known) < len(args) or (name == "not" and not self.is_whole):
            return self._unknown()
        return _OPERATORS[name](*known) if name in _OPERATORS else self._unknown()

    def _unknown(self, *_: Any) -> None:
        self.is_whole = False

    visit_alias = visit_cast = visit_coalesce = visit_is_in = _unknown


_OPERATORS: dict[str, Callable[..., Any]] = {
    "and": operator.and_, "or": operator.or_, "not": operator.invert,
    "equal": operator.eq, "not_equal": operator.ne,
    "less_than": operator.lt, "less_than_or_equal": operator.le,
    "greater_than": operator.gt, "greater_than_or_equal": operator.ge,
    "is_null": lambda column: column.is_null(), "not_null": lambda column: column.is_valid(),
}  # fmt: skip
