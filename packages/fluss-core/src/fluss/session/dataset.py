"""A scan as a `pyarrow.dataset.Dataset`, for libraries that know those and not Fluss.

Each scanner plans a scan of its own: it sees what is there when it is made. Columns that are not
asked for are not read; Arrow's filters are applied by Arrow, and what our own predicates can say of
them spares reading before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fluss.client.connection import TableCore
from fluss.connector.opening import OpenSplits
from fluss.connector.planning import plan_scan, shape_of
from fluss.errors import UnsupportedOperationError
from fluss.model.metadata_columns import metadata_types
from fluss.model.predicate import columns_in
from fluss.model.scan_options import ScanOptions
from fluss.records.arrow_expressions import split_arrow


class FlussDataset(ds.Dataset):  # type: ignore[misc] # pyarrow ships no types
    """A scan as a dataset; `scan.to_dataset()` makes it."""

    def __init__(self, core: TableCore, options: ScanOptions) -> None:
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
        options = self._options
        wanted = None if columns is None or isinstance(columns, Mapping) else list(columns)
        if filter is not None:
            metadata = metadata_types(options.metadata_names)
            said, rest = split_arrow(filter, self._core.info.schema, metadata)
            if said is not None:
                mine = options.filter
                options = replace(options, filter=said if mine is None else mine & said)
            # Arrow asks again, so that the columns it asks are read, too.
            looked_at = None if rest is not None or said is None else columns_in(said)
            wanted = _together(wanted, looked_at)
        if wanted is not None:
            options = replace(options, columns=tuple(wanted), with_metadata=())
        return ds.Scanner.from_batches(
            self._reader(options),
            columns=columns if isinstance(columns, Mapping) else _listed(columns),
            filter=filter,
            **{key: value for key, value in arrow_options.items() if key in _KEPT},
        )

    def to_table(self, columns: Any = None, filter: Any = None, **more: Any) -> pa.Table:  # noqa: A002
        return self.scanner(columns, filter, **more).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        batches: Iterator[Any] = self.scanner(columns, filter, **more).to_batches()
        return batches

    def head(
        self,
        num_rows: int,
        columns: Any = None,
        filter: Any = None,  # noqa: A002 - Arrow's name
        **more: Any,
    ) -> pa.Table:
        return self.scanner(columns, filter, **more).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **more: Any) -> pa.Table:  # noqa: A002
        return self.to_table(columns, filter, **more).take(indices)

    def count_rows(self, filter: Any = None, **more: Any) -> int:  # noqa: A002
        rows: int = self.scanner(None, filter, **more).count_rows()
        return rows

    def get_fragments(self, filter: Any = None) -> Iterator[Any]:  # noqa: A002, ARG002
        raise UnsupportedOperationError(
            "A table of Fluss has no files to give out as fragments.",
            hint="scan.splits() are its pieces, and fluss.connector.open opens them",
        )

    def replace_schema(self, schema: pa.Schema) -> Any:  # noqa: ARG002 - Arrow's signature
        raise UnsupportedOperationError(
            "A scan of Fluss is laid out in the schema of its table.",
            hint="cast what to_table() gives",
        )

    def __reduce__(self) -> Any:
        raise UnsupportedOperationError(
            "A dataset of Fluss holds a connection, and does not travel.",
            hint="scan.splits() do, and fluss.connector.open opens them elsewhere",
        )

    def _reader(self, options: ScanOptions) -> pa.RecordBatchReader:
        plan = plan_scan(self._core, options)
        return OpenSplits(
            self._core,
            plan.splits,
            schema=plan.shape.schema,
            order=plan.shape.order,
            max_parallel=options.max_parallel,
            stats=plan.stats,
        ).reader()


_KEPT = frozenset({"batch_size", "use_threads", "memory_pool"})


def _together(wanted: list[str] | None, looked_at: frozenset[str] | None) -> list[str] | None:
    if wanted is None or looked_at is None:
        return None
    return [*wanted, *sorted(looked_at.difference(wanted))]


def _listed(columns: Sequence[str] | None) -> list[str] | None:
    return None if columns is None else list(columns)
