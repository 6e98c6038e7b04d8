"""One scan: which rows of a table are read, and how. The whole interface of engines.

A scan works out its columns and its filter when it is made, asks the leaders where its buckets
begin and end when it is first needed (it is *planned* then), and gives the same rows from then on.
An engine narrows it to what a query needs, takes its splits to where they are read, and reads them.
This room decides what is narrowed, read and refused; an engine decides only what it does with the
batches.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Unpack

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.hints import Door
from fluss.model.metadata_columns import metadata_types
from fluss.model.options.bounds import Bound, BoundKind, Cursor
from fluss.model.options.scan_arguments import ScanArguments
from fluss.model.options.scan_options import Mode, Order, ScanOptions, with_options
from fluss.model.options.signatures import shows_options
from fluss.model.paths import TablePath
from fluss.model.predicates.binding import column_types
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.partitions import LOSSLESS_IN_PARTITION_NAME
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import DataType
from fluss.model.types.type_to_arrow import to_arrow_type
from fluss.net.cancellation import Cancellation
from fluss.progress import Progress, ProgressDisplay
from fluss.records.arrow.dictionaries import dictionary_schema, with_dictionaries
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.filter.row_filter import RowFilter
from fluss.scan.batch_headers import count_rows
from fluss.scan.explain import explained
from fluss.scan.lake_planner import may_read_files
from fluss.scan.narrow import narrow, narrow_splits
from fluss.scan.query_snapshot import QuerySnapshot
from fluss.scan.scan_planner import ScanPlan, plan_scan, plan_unless_changed
from fluss.scan.scan_stats import ScanStats
from fluss.scan.shape import ScanShape, shape_of
from fluss.scan.split import ScanSplit
from fluss.scan.split_reader import SplitReader
from fluss.scan.table_source import TableSource
from fluss.waiting import InterruptibleLock


@at_door(Door.SESSION)
class Scan:
    """A scan of a table; `open_scan` and `table.scan(...)` make it. Any thread may use it."""

    def __init__(
        self,
        table: TableHandle,
        asked: ScanOptions | ScanShape,
        *,
        plan: ScanPlan | None = None,
        snapshot: QuerySnapshot | None = None,
    ) -> None:
        self._table = table
        self._shape = asked if isinstance(asked, ScanShape) else shape_of(table.info, asked)
        self._plan = plan
        self._snapshot = snapshot
        self._lock = InterruptibleLock()
        self._cancellation = Cancellation()

    # --- what it gives --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`database.table`."""
        return str(self.table_path)

    @property
    def table_path(self) -> TablePath:
        """The table."""
        return self.table_info.table_path

    @property
    def table_info(self) -> TableInfo:
        """The table as it was when the scan was made: its ids, keys, partitions and schema."""
        return self._table.info

    @property
    def source(self) -> TableSource:
        """The table, how to reach it, and the options: small and picklable; `scan()` opens it."""
        config = self._table.connection.config
        return TableSource(path=self.table_path, config=config, options=self.options)

    @property
    def options(self) -> ScanOptions:
        """The options, checked."""
        return self._shape.options

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._shape.schema

    @property
    def known_schema(self) -> pa.Schema:
        """All columns that options and filters may name: the table's and the metadata columns."""
        schema = self.table_info.schema.to_arrow()
        metadata = metadata_types(self.options.metadata_names)
        added = [
            pa.field(name, to_arrow_type(data_type))
            for name, data_type in metadata.items()
            if name not in schema.names
        ]
        return pa.schema([*schema, *added])

    @property
    def mode(self) -> Mode:
        """The kind of its rows."""
        return self._shape.mode

    @property
    def order(self) -> Order:
        """In which order rows come."""
        return self._shape.order

    def column_type(self, name: str) -> DataType:
        """The type of a column that a filter may look at.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
        """
        metadata = metadata_types(self.options.metadata_names)
        return column_types(self.table_info.schema, metadata)(name)

    @property
    def exact_partition_keys(self) -> frozenset[str]:
        """The partition keys by which the choice of partitions decides a condition exactly.

        Every row of the partitions that are read fulfils a condition on these keys alone.
        """
        keys = self.table_info.partition_keys
        return frozenset(
            key for key in keys if isinstance(self.column_type(key), LOSSLESS_IN_PARTITION_NAME)
        )

    @property
    def dictionary_schema(self) -> pa.Schema:
        """Its columns, as dictionaries where the files of a lake may have strings as such.

        `read(dictionaries=...)` gives them so. Rows that are needed in an order are read without.
        """
        info, options = self.table_info, self.options
        if self.order is not Order.NONE or not may_read_files(info, options.lake, self.mode):
            return self.schema
        return dictionary_schema(self.schema, info.schema.column_names)

    # --- other scans ----------------------------------------------------------------------------

    def narrowed(
        self,
        *,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        limit: int | None = None,
    ) -> Narrowed:
        """The scan of what a query needs. All rules of what may be left out are applied here.

        A scan that has been planned, or is a part of one, stays at its offsets.

        Args:
            columns: The columns that the query needs, of those in `schema`; None for all.
            predicate: Which of its rows the query needs: a `Predicate`, a pyarrow expression or
                a condition in SQL.
            limit: How many of those rows the query needs at most.

        Raises:
            InvalidValueError: The scan has no such column; the hint names the nearest.
            FlussError: The predicate does not fit the columns.
        """
        found = narrow(self._shape, columns=columns, predicate=predicate, limit=limit)
        plan = self._plan
        if plan is not None:
            splits = narrow_splits(found.shape, plan.splits)
            plan = replace(plan, shape=found.shape, splits=splits)
        return Narrowed(
            scan=self._with(found.shape, plan),
            columns=tuple(self.schema.names if columns is None else dict.fromkeys(columns)),
            residual=found.residual,
            limit=limit,
            takes_limit=found.takes_limit,
        )

    @shows_options()
    def with_options(
        self, given: ScanOptions | None = None, /, **options: Unpack[ScanArguments]
    ) -> Scan:
        """A new scan of the same table with these options changed; None sets one back.

        Args:
            given: The options to change; by default those of this scan.
            **options: The changes.

        Raises:
            ConfigError: There is no option of a name; the hint names the nearest.
            InvalidValueError: A value is not one its option takes, or two contradict each other.
        """
        base = self.options if given is None else given
        changed = shape_of(self.table_info, with_options(base, options))
        if (
            given is None
            and self._shape.chosen is not None
            and changed.mode is self.mode
            and "columns" not in options
        ):
            changed = changed.with_columns(self._shape.chosen)
        return self._with(changed)

    def again(self) -> Scan:
        """The same scan, not planned yet: it sees the rows that are new."""
        return self._with(self._shape)

    def at(self, snapshot: QuerySnapshot) -> Scan:
        """The same scan, not planned yet, at the offsets of the other scans of one query."""
        return Scan(self._table, self._shape, snapshot=snapshot)

    def part(self, splits: Sequence[ScanSplit]) -> Scan:
        """The same scan of some of its splits, which stay pinned where they are."""
        return self._with(self._shape, replace(self._planned(), splits=tuple(splits)))

    def pinned(self) -> Scan:
        """A new scan that ends for ever where this one does, by its options; asks the leaders."""
        options, splits = self.options, self.splits()
        if any(split.keys is not None for split in splits):
            # A lookup has no end of its own; the state that it would ask has one.
            splits = self.with_options(filter=None).splits()
        offsets = {split.bucket: split.stop for split in splits}
        end = Bound(kind=BoundKind.CURSOR, cursor=Cursor.of(self.table_info.table_id, offsets))
        ends_in_log = self.mode is not Mode.STATE and options.as_of is None
        is_now = self.mode is Mode.STATE and options.as_of is None
        names = tuple(dict.fromkeys(each.partition_name for each in splits if each.partition_name))
        now_ms = time.time_ns() // 1_000_000
        pinned = replace(
            options,
            start=None if options.start is None else options.start.at(now_ms),
            end=end if ends_in_log else None,
            as_of=end if is_now else options.as_of,
            partitions=names if self.table_info.is_partitioned() else options.partitions,
        )
        return self._with(replace(self._shape, options=pinned))

    # --- planning -------------------------------------------------------------------------------

    def splits(self, *, cancellation: Cancellation | None = None) -> list[ScanSplit]:
        """The pieces it reads, pinned: frozen, picklable, without connections and secrets.

        Args:
            cancellation: Ends the planning from another thread.

        Raises:
            FlussError: A partition, an offset or a state that the scan names is not there.
        """
        return list(self._planned(cancellation).splits)

    def splits_unless_changed(
        self, *, cancellation: Cancellation | None = None
    ) -> list[ScanSplit] | None:
        """The same, for a scan of a table as it was once (`TableSource.scan_as_known`).

        Args:
            cancellation: Ends the planning from another thread.

        Returns:
            None where the table has changed: the scan is not planned then, and must be opened
            again.

        Raises:
            TableNotFoundError: There is no such table any more.
            FlussError: See `splits`.
        """
        token = cancellation or self._cancellation
        with self._lock:
            if self._plan is None and self._snapshot is None:
                self._plan = plan_unless_changed(self._table, self._shape, cancellation=token)
            return None if self._plan is None else list(self._plan.splits)

    def explain(self) -> str:
        """Describe what is read and what is left out, and why, as text."""
        return explained(self._planned())

    @property
    def stats(self) -> ScanStats:
        """Its counters; `rows_max` is an upper bound of its rows."""
        return self._planned().stats

    def cursor(self) -> Cursor:
        """Where this scan ends: `table.scan(start=cursor)` reads the rows that came later.

        Stored together with the rows, it lets a job that is run again read every row once.

        Raises:
            InvalidValueError: The scan does not read to its end.
        """
        if self.options.limit is not None or self.mode is Mode.STATE:
            is_cut = self.options.limit is not None
            why = "its limit may leave rows out" if is_cut else "a state is not a stretch of a log"
            raise InvalidValueError(
                f"This scan has no cursor: {why}.",
                hint="scan a log, or mode='changelog', without a limit",
            )
        return self._planned().cursor()

    # --- rows -----------------------------------------------------------------------------------

    def read(
        self,
        splits: Sequence[ScanSplit] | None = None,
        *,
        order: Order | str | None = None,
        cancellation: Cancellation | None = None,
        may_stop_soon: bool = False,
        dictionaries: Collection[str] = (),
    ) -> pa.RecordBatchReader:
        """The rows as a stream in the columns of `schema`, read ahead within bounds.

        Args:
            splits: Which of its splits; None for all. A limit cuts over all that are read together.
            order: In which order rows come; that of the scan by default.
            cancellation: Ends the planning and the reading from another thread.
            may_stop_soon: Whether you may stop after the first rows, for engines that do not pass
                their limit on. Little is fetched first then.
            dictionaries: The columns of strings that you take as dictionaries
                (`dictionary<int32, string>`). Where the files of a lake have them so, this saves
                making texts; other texts get an entry each.
        """
        plan = self._plan_to_read(cancellation)
        if splits is not None:
            plan = replace(plan, splits=tuple(splits))
        ordered = self.order if order is None else Order(order)
        reader = self._split_reader(
            plan,
            ordered,
            cancellation=cancellation,
            may_stop_soon=may_stop_soon,
            dictionaries=dictionaries,
        )
        return reader.reader()

    def to_arrow(self, *, progress: Progress = False) -> pa.Table:
        """Its rows as a table, bucket by bucket where no other order was requested.

        Args:
            progress: Whether a bar is shown; None for in terminals and notebooks. Or a function of
                the rows read and their upper bound.
        """
        plan = self._plan_to_read()
        with ProgressDisplay(self.name, plan.stats.amount, progress):
            pieces = list(self._split_reader(plan, self.order, takes_all=True))
        if self.order is Order.NONE:
            pieces.sort(key=lambda piece: piece.index)  # stable: a bucket's rows keep their order
        return pa.Table.from_batches([piece.batch for piece in pieces], schema=self.schema)

    def count(self) -> int:
        """Count its rows; without a filter, by the headers of batches alone."""
        plan, limit = self._plan_to_read(), self.options.limit
        if self.mode in {Mode.LOG, Mode.CHANGELOG} and self.options.filter is None:
            count = count_rows(self._table, plan.splits, plan.stats)
            return count if limit is None else min(count, limit)
        pieces = self._split_reader(plan, self.order, takes_all=True)
        return sum(each.batch.num_rows for each in pieces)

    def cancel(self) -> None:
        """End all reading of it, from any thread; it cannot be read afterwards."""
        self._cancellation.cancel()

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value}" for name, value in self._options_given().items())
        return f"{type(self).__name__}({self.name}{shown})"

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperationError(
            "A scan of Fluss holds a connection, and cannot be pickled.",
            hint="scan.source and scan.splits() can; fluss.scan.open_split reads those elsewhere",
        )

    # --- shared ---------------------------------------------------------------------------------

    def _with(self, shape: ScanShape, plan: ScanPlan | None = None) -> Scan:
        return Scan(self._table, shape, plan=plan, snapshot=self._snapshot)

    def _options_given(self) -> dict[str, str]:
        return {
            name: _shown(getattr(self.options, name))
            for name, field in ScanOptions.__dataclass_fields__.items()
            if getattr(self.options, name) != field.default
        }

    def _planned(self, cancellation: Cancellation | None = None) -> ScanPlan:
        token = cancellation or self._cancellation
        with self._lock:
            if self._plan is None:
                plan = plan_scan if self._snapshot is None else self._snapshot.plan
                self._plan = plan(self._table, self._shape, cancellation=token)
            return self._plan

    def _plan_to_read(self, cancellation: Cancellation | None = None) -> ScanPlan:
        """The plan; rows that are trimmed right after planning are no error of the first reading.

        Later readings give the same rows, or the error.
        """
        with self._lock:
            is_first = self._plan is None
            plan = self._planned(cancellation)
        start = self.options.start
        is_bound = start is not None and start.kind is not BoundKind.EARLIEST
        if not is_first or is_bound or self.options.as_of is not None:
            return plan
        return replace(
            plan, splits=tuple(replace(split, begins_at_earliest=True) for split in plan.splits)
        )

    def _split_reader(
        self,
        plan: ScanPlan,
        order: Order,
        *,
        cancellation: Cancellation | None = None,
        may_stop_soon: bool = False,
        takes_all: bool = False,
        dictionaries: Collection[str] = (),
    ) -> SplitReader:
        return SplitReader(
            self._table,
            plan.splits,
            schema=self.schema,
            order=order,
            max_parallel=self.options.max_parallel,
            stats=plan.stats,
            cancellation=cancellation or self._cancellation,
            may_stop_soon=may_stop_soon,
            takes_all=takes_all,
            dictionaries=dictionaries,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """A scan of the rows that a query needs, and the rest that the engine applies.

    Attributes:
        scan: The scan that is read. It has the columns that were requested, and after them those
            that the residual looks at.
        columns: The columns that were requested, each once.
        residual: The part of the predicate that the engine applies to the batches, in the form in
            which it was given; None where the scan applies all of it.
        limit: The limit that was requested; None for none.
        takes_limit: Whether the scan applies that limit; it does where nothing is residual.
    """

    scan: Scan
    columns: tuple[str, ...]
    residual: Any
    limit: int | None
    takes_limit: bool

    def read(
        self,
        splits: Sequence[ScanSplit] | None = None,
        *,
        cancellation: Cancellation | None = None,
        may_stop_soon: bool = False,
        dictionaries: Collection[str] = (),
    ) -> pa.RecordBatchReader:
        """The rows that were requested and no others, in the columns that were requested.

        For engines that leave everything to the scan: the residual and the limit are applied here.
        """
        # Arrow cannot evaluate every condition on dictionaries.
        first_read = dictionaries if self.residual is None else ()
        reader = self.scan.read(
            splits,
            cancellation=cancellation,
            may_stop_soon=may_stop_soon,
            dictionaries=first_read,
        )
        names = list(self.columns)
        if self.residual is None and reader.schema.names == names:
            return reader
        schema = pa.schema([reader.schema.field(name) for name in names])
        kept = self._kept(reader)
        if self.residual is not None and dictionaries:
            schema = dictionary_schema(schema, dictionaries)
            kept = (with_dictionaries(each, schema) for each in kept)
        return pa.RecordBatchReader.from_batches(schema, kept)

    def _kept(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        residual = self.residual
        if isinstance(residual, Predicate):
            info, options = self.scan.table_info, self.scan.options
            rows = RowFilter(residual, info.schema, metadata_types(options.metadata_names))
        else:
            rows = None
        left = None if self.takes_limit else self.limit
        for batch in reader:
            kept = batch
            if rows is not None:
                kept = batch.take(from_numpy(rows.matching(batch)))
            elif residual is not None:
                kept = batch.filter(residual)
            if left is not None:
                kept = kept.slice(0, left)
                left -= kept.num_rows
            yield kept.select(list(self.columns))
            if left == 0:
                return


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)
