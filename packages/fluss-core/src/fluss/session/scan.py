"""A scan as people hold it: described, pinned when it is first needed, and then the same each time.

A scan is one plan: `to_arrow()` twice gives the same rows twice, whatever is written in between.
A new `table.scan(...)` sees what is new; `start=scan.cursor()` sees only that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.hints import Door
from fluss.model.options.bounds import BoundKind, Cursor
from fluss.model.options.scan_options import Mode, Order, ScanOptions
from fluss.net.cancellation import Cancellation
from fluss.scan.batch_headers import count_rows
from fluss.scan.explain import explained
from fluss.scan.scan_planner import ScanPlan, ScanShape, narrowed, plan_scan, shape_of
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit
from fluss.scan.split_reader import SplitReader
from fluss.session.capsules import requested_of
from fluss.session.show import Explanation, scan_html
from fluss.waiting import InterruptibleLock

if TYPE_CHECKING:
    import pandas as pd

    from fluss.session.dataset import FlussDataset


@at_door(Door.SESSION)
class Scan:
    """What is to be read of a table; `table.scan(...)` makes it. Any thread may use it."""

    def __init__(self, core: TableHandle, options: ScanOptions) -> None:
        self._core = core
        self._shape: ScanShape = shape_of(core, options)
        self._options = self._shape.options
        self._plan: ScanPlan | None = None
        self._lock = InterruptibleLock()
        self._cancellation = Cancellation()

    # --- what it will give --------------------------------------------------------------------

    @property
    def name(self) -> str:
        """`database.table`."""
        return str(self._core.info.table_path)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows. Asks nobody."""
        return self._shape.schema

    @property
    def stats(self) -> ScanStats:
        """What it has done so far; `rows_max` is no fewer than it has rows."""
        return self._pinned().stats

    def splits(self) -> list[ScanSplit]:
        """The pieces it reads, pinned; `fluss.scan.open` opens them, here or elsewhere."""
        return list(self._pinned().splits)

    def explain(self) -> Explanation:
        """What is read and what is not, and why, as text."""
        return Explanation(explained(self._core.info, self._pinned()))

    def cursor(self) -> Cursor:
        """Where this scan ends: `table.scan(start=cursor)` reads what came later.

        Keep it together with the rows, so that a job that is run again reads every row once.

        Raises:
            InvalidValueError: The scan does not read to its end.
        """
        if self._options.limit is not None or self._shape.mode is Mode.STATE:
            why = "its limit may leave rows out" if self._options.limit is not None else "a state"
            raise InvalidValueError(
                f"There is no cursor behind this scan: {why}.",
                hint="scan a log, or mode='changelog', without a limit",
            )
        return self._pinned().cursor()

    # --- rows ---------------------------------------------------------------------------------

    def count(self) -> int:
        """How many rows it gives; where nothing is filtered, from the headers of batches alone."""
        plan = self._to_read()
        if self._shape.mode in {Mode.LOG, Mode.CHANGELOG} and self._options.filter is None:
            count = count_rows(self._core, plan.splits, plan.stats)
            return count if self._options.limit is None else min(count, self._options.limit)
        return sum(each.batch.num_rows for each in self._open(self._shape.order, plan))

    def to_reader(self) -> pa.RecordBatchReader:
        """Its rows as a stream, read ahead within bounds; batches have a useful size."""
        return self._open(self._shape.order).reader()

    def to_arrow(self) -> pa.Table:
        """Its rows as a table, bucket by bucket where no other order was asked for."""
        order = self._shape.order
        pieces = list(self._open(order))
        if order is Order.NONE:
            pieces.sort(key=lambda each: each.index)  # stable: a bucket's rows keep their order
        return pa.Table.from_batches([each.batch for each in pieces], schema=self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """Its rows as a DataFrame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_dataset(self) -> FlussDataset:
        """It as a `pyarrow.dataset.Dataset`, for libraries that read those."""
        from fluss.session.dataset import FlussDataset

        return FlussDataset(self._core, self._options)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if requested_schema is None:
            stream: object = self.to_reader().__arrow_c_stream__()
            return stream
        requested = requested_of(requested_schema, self.schema)
        reader = self._reader_of(tuple(requested.names))
        return reader.__arrow_c_stream__(requested.__arrow_c_schema__())

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        # Otherwise pandas and numpy would take a scan for a list of batches.
        raise UnsupportedOperationError(
            "A scan is no array.",
            hint="pd.read_fluss(scan), pd.DataFrame.from_arrow(scan), scan.to_pandas()",
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.to_reader())

    def cancel(self) -> None:
        """End whatever is reading it, from any thread; it can then be read no more."""
        self._cancellation.cancel()

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value}" for name, value in self._asked_for().items())
        return f"Scan({self.name}{shown})"

    def _repr_html_(self) -> str:
        return scan_html(self.name, self.schema, self._asked_for(), self._plan)

    def _asked_for(self) -> dict[str, str]:
        return {
            name: _shown(getattr(self._options, name))
            for name, field in ScanOptions.__dataclass_fields__.items()
            if getattr(self._options, name) != field.default
        }

    # --- shared -------------------------------------------------------------------------------

    def _pinned(self) -> ScanPlan:
        with self._lock:
            if self._plan is None:
                self._plan = plan_scan(self._core, self._options)
            return self._plan

    def _to_read(self) -> ScanPlan:
        """The plan; what is trimmed right after planning is no error of the reading that planned.

        Later readings give the same rows, or the error.
        """
        with self._lock:
            is_first = self._plan is None
            plan = self._pinned()
        start = self._options.start
        is_bound = start is not None and start.kind is not BoundKind.EARLIEST
        if not is_first or is_bound or self._options.as_of is not None:
            return plan
        return replace(
            plan, splits=tuple(replace(each, begins_at_earliest=True) for each in plan.splits)
        )

    def _reader_of(self, names: tuple[str, ...]) -> pa.RecordBatchReader:
        """The same rows with some of their columns; the others are not read."""
        if names == tuple(self.schema.names):
            return self.to_reader()
        if self._shape.mode is Mode.BINLOG:  # which is whole rows
            return pa.RecordBatchReader.from_batches(
                pa.schema([self.schema.field(each) for each in names]),
                (each.select(list(names)) for each in self.to_reader()),
            )
        plan = self._to_read()
        options = replace(self._options, columns=names, with_metadata=())
        shape = shape_of(self._core, options)
        splits = tuple(narrowed(self._core, options, each)[1] for each in plan.splits)
        return self._open(self._shape.order, replace(plan, shape=shape, splits=splits)).reader()

    def _open(self, order: Order, plan: ScanPlan | None = None) -> SplitReader:
        plan = plan or self._to_read()
        return SplitReader(
            self._core,
            plan.splits,
            schema=plan.shape.schema,
            order=order,
            max_parallel=self._options.max_parallel,
            stats=plan.stats,
            cancellation=self._cancellation,
        )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)
