"""A scan as a `pyarrow.dataset.Dataset`, for libraries that know those and not Fluss.

Each scanner plans a scan of its own: it sees what is there when it is made. Fragments are the
splits of one plan, and give the same rows however often they are read. Columns that are not asked
for are not read. What our own predicates can say of a filter is ours to apply, and spares reading;
only the rest of it is left to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.hints import Door
from fluss.model.did_you_mean import did_you_mean
from fluss.model.metadata_columns import metadata_types
from fluss.model.options.scan_options import Mode, ScanOptions
from fluss.model.predicates.predicate import conjoined
from fluss.records.filter.arrow_expressions import split_arrow
from fluss.scan.scan_planner import ScanPlan, narrowed, plan_scan, shape_of
from fluss.scan.split import ScanSplit
from fluss.scan.split_reader import SplitReader

# What Arrow's scanners take besides; the rest of it is for files.
_KEPT = frozenset({"batch_size", "use_threads", "memory_pool"})
# The splits' readers read ahead; Arrow's scanner need not do it again, and less is read in vain
# where whoever reads leaves early.
_READAHEAD = 1


class _Scannable:
    """What datasets and fragments share: everything follows from `scanner`."""

    scanner: Callable[..., ds.Scanner]

    def to_table(self, columns: Any = None, filter: Any = None, **more: Any) -> pa.Table:  # noqa: A002
        """The rows, as a table."""
        return self.scanner(columns=columns, filter=filter, **more).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        """The rows, batch by batch."""
        batches: Iterator[Any] = self.scanner(columns=columns, filter=filter, **more).to_batches()
        return batches

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **more: Any) -> pa.Table:  # noqa: A002
        """The rows at these places, of all."""
        return self.to_table(columns, filter, **more).take(indices)

    def count_rows(self, filter: Any = None, **more: Any) -> int:  # noqa: A002
        """How many rows there are."""
        batches = self.scanner(columns=[], filter=filter, **more).to_batches()
        return sum(each.num_rows for each in batches)

    def head(
        self,
        num_rows: int,
        columns: Any = None,
        filter: Any = None,  # noqa: A002 - Arrow's name
        **more: Any,
    ) -> pa.Table:
        """The first rows; no more are read than they need."""
        return self.scanner(columns=columns, filter=filter, rows_max=num_rows, **more).head(
            num_rows
        )


@at_door(Door.SESSION)
class FlussDataset(_Scannable, ds.Dataset):  # type: ignore[misc] # pyarrow ships no types
    """A scan as a dataset; `scan.to_dataset()` makes it."""

    def __init__(self, core: TableHandle, options: ScanOptions) -> None:
        # Arrow forbids making a Dataset by itself; its methods here are all overridden.
        self._core = core
        shape = shape_of(core, options)
        self._options = shape.options
        self._schema = shape.schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def partition_expression(self) -> ds.Expression:
        return ds.scalar(True)

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, ds.Expression] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 - Arrow's name
        **arrow_options: Any,
    ) -> ds.Scanner:
        """A scanner over what is there now.

        Args:
            columns: The columns wanted, or expressions by name.
            filter: Which rows are wanted.
            **arrow_options: What Arrow's scanners take besides; only sizes of batches matter here.
        """
        asked = _PushdownPlan.of(self._core, self._options, self._schema, columns, filter)
        options = asked.options
        rows_max = arrow_options.get("rows_max")
        if rows_max is not None and asked.rest is None:
            limit = rows_max if options.limit is None else min(rows_max, options.limit)
            options = replace(options, limit=limit)
        plan = plan_scan(self._core, options)
        return asked.scanner(_reader(self._core, plan, plan.splits), arrow_options)

    def get_fragments(self, filter: Any = None) -> Iterator[FlussFragment]:  # noqa: A002
        """Its pieces, of what is there now: one for each bucket that can have rows.

        Args:
            filter: Which rows are wanted; who reads a fragment says it again.
        """
        asked = _PushdownPlan.of(self._core, self._options, self._schema, None, filter)
        if asked.options.limit is not None:
            raise UnsupportedOperationError(
                "A scan with a limit is not given out in fragments, which would each have as many.",
                hint="leave the limit out, and apply it to what the fragments give",
            )
        plan = plan_scan(self._core, asked.options)
        for split in plan.splits:
            yield FlussFragment(self._core, self._options, self._schema, plan, split)

    def filter(self, expression: ds.Expression) -> FlussDataset:
        """The same, of the rows that fulfil an expression."""
        asked = _PushdownPlan.of(self._core, self._options, self._schema, None, expression)
        if asked.rest is not None:
            raise UnsupportedOperationError(
                f"A dataset of Fluss cannot be filtered by {expression}.",
                hint="give it to scanner(filter=...) or to_table(filter=...)",
            )
        return FlussDataset(self._core, asked.options)

    def sort_by(self, sorting: Any, **more: Any) -> ds.Dataset:
        """Its rows, in memory, in an order."""
        return ds.dataset(self.to_table()).sort_by(sorting, **more)

    def join(self, right_dataset: Any, *given: Any, **more: Any) -> ds.Dataset:
        """Its rows, in memory, joined with others."""
        return ds.dataset(self.to_table()).join(_in_memory(right_dataset), *given, **more)

    def join_asof(self, right_dataset: Any, *given: Any, **more: Any) -> ds.Dataset:
        """Its rows, in memory, joined with those of others that came last."""
        return ds.dataset(self.to_table()).join_asof(_in_memory(right_dataset), *given, **more)

    def replace_schema(self, schema: pa.Schema) -> Any:  # noqa: ARG002 - Arrow's signature
        raise UnsupportedOperationError(
            "A scan of Fluss is laid out in the schema of its table.",
            hint="cast what to_table() gives",
        )

    def __reduce__(self) -> Any:
        raise _stays_here("dataset")


@at_door(Door.SESSION)
class FlussFragment(_Scannable, ds.Fragment):  # type: ignore[misc] # pyarrow ships no types
    """One split of a dataset; `dataset.get_fragments()` makes it."""

    def __init__(
        self,
        core: TableHandle,
        options: ScanOptions,
        schema: pa.Schema,
        plan: ScanPlan,
        split: ScanSplit,
    ) -> None:
        # As for a Dataset: all of Arrow's methods are overridden.
        self._core, self._options, self._schema = core, options, schema
        self._plan, self._split = plan, split

    @property
    def physical_schema(self) -> pa.Schema:
        return self._schema

    @property
    def partition_expression(self) -> ds.Expression:
        return ds.scalar(True)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Any = None,
        filter: Any = None,  # noqa: A002 - Arrow's name
        **arrow_options: Any,
    ) -> ds.Scanner:
        """A scanner over the fragment's rows.

        Args:
            schema: The dataset's, where it is given at all.
            columns: The columns wanted, or expressions by name.
            filter: Which rows are wanted.
            **arrow_options: What Arrow's scanners take besides; only sizes of batches matter here.
        """
        if schema is not None and not schema.equals(self._schema):
            raise UnsupportedOperationError(
                "A fragment of Fluss is laid out in the schema of its dataset.",
                hint="cast what to_table() gives",
            )
        asked = _PushdownPlan.of(self._core, self._options, self._schema, columns, filter)
        shape, split = narrowed(self._core, asked.options, self._split)
        rows_max = arrow_options.get("rows_max")
        if rows_max is not None and asked.rest is None:
            split = replace(split, limit=rows_max)
        plan = replace(self._plan, shape=shape)
        return asked.scanner(_reader(self._core, plan, [split]), arrow_options)

    def __repr__(self) -> str:
        split = self._split
        partition = "" if split.partition_name is None else f", partition {split.partition_name}"
        return f"FlussFragment({split.table_path}{partition}, bucket {split.bucket.bucket_id})"

    def __reduce__(self) -> Any:
        raise _stays_here("fragment")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PushdownPlan:
    """What a scanner is asked for: what the scan does of it, and what is left to Arrow."""

    options: ScanOptions
    columns: Any
    rest: ds.Expression | None

    @classmethod
    def of(
        cls,
        core: TableHandle,
        options: ScanOptions,
        schema: pa.Schema,
        columns: Sequence[str] | Mapping[str, ds.Expression] | None,
        filter: ds.Expression | None,  # noqa: A002 - Arrow's name
    ) -> _PushdownPlan:
        rest = filter
        if filter is not None and options.takes_filter:
            metadata = metadata_types(options.metadata_names)
            said, rest = split_arrow(filter, core.info.schema, metadata)
            options = replace(options, filter=_both(options.filter, said))
        if columns is None or isinstance(columns, Mapping):
            return cls(options=options, columns=columns, rest=rest)
        wanted = list(columns)
        for name in wanted:
            if name not in schema.names:
                raise InvalidValueError(
                    f"The dataset has no column {name!r}.",
                    hint=did_you_mean(name, schema.names) or f"it has {', '.join(schema.names)}",
                )
        if rest is None and options.mode is not Mode.BINLOG:
            # What Arrow still has to filter may look at any column; a binlog's are whole rows.
            unique = tuple(dict.fromkeys(wanted))
            options = replace(options, columns=unique, with_metadata=())
        return cls(options=options, columns=wanted, rest=rest)

    def scanner(self, reader: pa.RecordBatchReader, arrow_options: Mapping[str, Any]) -> ds.Scanner:
        kept = {key: value for key, value in arrow_options.items() if key in _KEPT}
        return ds.Scanner.from_batches(
            reader, columns=self.columns, filter=self.rest, batch_readahead=_READAHEAD, **kept
        )


def _both(mine: Any, said: Any) -> Any:
    return conjoined([each for each in (mine, said) if each is not None])


def _reader(core: TableHandle, plan: ScanPlan, splits: Sequence[ScanSplit]) -> pa.RecordBatchReader:
    return SplitReader(
        core,
        splits,
        schema=plan.shape.schema,
        order=plan.shape.order,
        max_parallel=plan.shape.options.max_parallel,
        stats=plan.stats,
    ).reader()


def _in_memory(dataset: Any) -> ds.Dataset:
    return ds.dataset(dataset.to_table()) if isinstance(dataset, FlussDataset) else dataset


def _stays_here(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"A {what} of Fluss holds a connection, and does not travel.",
        hint="scan.splits() do, and fluss.scan.open opens them elsewhere",
    )
