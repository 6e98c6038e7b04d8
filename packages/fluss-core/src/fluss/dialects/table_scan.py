"""Describes what to read of a table, in both dialects.

The methods that describe change the scan and return it, so that they can be chained. No request is
sent before a scanner reads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, Generic, Self, TypeVar

from fluss.connection.arguments import positions_by_name, positions_of
from fluss.connection.connection import TableHandle
from fluss.dialects.batch_scanner import BatchScanner, BatchScannerBase
from fluss.dialects.log_scanner import LogScanner, LogScannerBase
from fluss.errors import FlussError, InvalidValueError
from fluss.log.log_scan import LogScanCore
from fluss.model.paths import TableBucket
from fluss.model.predicates.predicate import Predicate
from fluss.records.filter.row_filter import RowFilter
from fluss.state.limit_scan import LIMIT_MAX, LimitScanCore

LogScannerT = TypeVar("LogScannerT", bound=LogScannerBase)
BatchScannerT = TypeVar("BatchScannerT", bound=BatchScannerBase)


class TableScanBase(Generic[LogScannerT, BatchScannerT]):
    """The part that both dialects share."""

    _log_scanner: type[LogScannerT]
    _batch_scanner: type[BatchScannerT]

    def __init__(self, core: TableHandle) -> None:
        self._core = core
        self._columns: tuple[int, ...] | None = None
        self._predicate: Predicate | None = None
        self._limit: int | None = None

    # --- describing ---------------------------------------------------------------------------

    def project(self, indices: Iterable[int]) -> Self:
        """Read these columns only, by position, in this order.

        Raises:
            SchemaMismatchError: There is no column there, or one is named twice.
        """
        self._columns = positions_of(self._core.info, indices)
        return self

    def project_by_name(self, names: Iterable[str]) -> Self:
        """Read these columns only, in this order.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
        """
        self._columns = positions_by_name(self._core.info, names)
        return self

    def filter(self, predicate: Predicate) -> Self:
        """Read only rows that match the predicate, and the earlier filters.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
            InvalidValueError: A value does not fit its column.
        """
        RowFilter(predicate, self._core.info.schema)
        earlier = self._predicate
        self._predicate = predicate if earlier is None else earlier & predicate
        return self

    def limit(self, n: int) -> Self:
        """Read at most so many rows of a bucket; see `create_bucket_batch_scanner`."""
        given: Any = n
        if isinstance(given, bool) or not isinstance(given, int) or not 0 < n <= LIMIT_MAX:
            raise InvalidValueError(f"A limit is a number of rows from 1 on, not {n!r}.")
        self._limit = n
        return self

    def with_fixed_schema(self, fixed_schema: bool) -> Self:  # noqa: ARG002, FBT001 - pyfluss's
        """Accepted without effect: rows always have the schema of the table object.

        Rows that were written before a column was added have NULL there, and columns that were
        added later are left out.
        """
        return self

    # --- reading ------------------------------------------------------------------------------

    def create_log_scanner(self) -> Awaitable[LogScannerT]:
        """Make a scanner of single records, with their offsets, times and change types."""
        return self._core.connection.engine.submit(self._scanner(gives_batches=False))

    def create_record_batch_log_scanner(self) -> Awaitable[LogScannerT]:
        """Make a scanner of Arrow batches, tables and DataFrames."""
        return self._core.connection.engine.submit(self._scanner(gives_batches=True))

    create_batch_scanner = create_record_batch_log_scanner

    async def _scanner(self, *, gives_batches: bool) -> LogScannerT:
        if self._limit is not None:
            raise FlussError(
                f"A log scanner has no limit; this scan has one of {self._limit} rows.",
                hint="Use create_bucket_batch_scanner(bucket), or stop reading after enough rows.",
            )
        connection = self._core.connection
        return self._log_scanner(
            connection.engine,
            LogScanCore(self._core, self._columns, self._predicate),
            gives_batches=gives_batches,
            records_per_poll_max=connection.options.scanner_log_max_poll_records,
        )

    def create_bucket_batch_scanner(self, bucket: TableBucket) -> BatchScannerT:
        """Make a scanner of a few rows of one bucket, as many as `limit` allows.

        A bucket of a log table gives its last rows, one of a table with a primary key its first
        rows by key. A filter is applied before the limit.

        Raises:
            FlussError: No limit was set.
            InvalidValueError: It is not a bucket of this table.
        """
        if self._limit is None:
            raise FlussError(
                "create_bucket_batch_scanner() needs a limit, and none was set.",
                hint="Write new_scan().limit(100).create_bucket_batch_scanner(bucket).",
            )
        connection = self._core.connection
        core = LimitScanCore(self._core, bucket, self._limit, self._columns, self._predicate)
        return self._batch_scanner(connection.engine, core)

    def __repr__(self) -> str:
        shown: list[Any] = [f"table={self._core.info.table_path}"]
        if self._columns is not None:
            names = self._core.info.schema.column_names
            shown.append(f"columns=[{', '.join(names[each] for each in self._columns)}]")
        if self._predicate is not None:
            shown.append(f"filter={self._predicate}")
        if self._limit is not None:
            shown.append(f"limit={self._limit}")
        return f"{type(self).__name__}({', '.join(shown)})"


class TableScan(TableScanBase[LogScanner, BatchScanner]):
    """Describes what to read of a table."""

    _log_scanner = LogScanner
    _batch_scanner = BatchScanner
