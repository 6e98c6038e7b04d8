"""A scan as a `pyarrow.dataset.Dataset`, for libraries that know those and not Fluss.

Each scanner plans a scan of its own, and sees the rows that are there when it is made. Fragments
are the splits of one plan, and give the same rows however often they are read. Columns that are not
requested are not read. The scan applies the part of a filter that it can take, which spares
reading; Arrow applies the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from fluss.doors import at_door
from fluss.errors import UnsupportedOperationError
from fluss.hints import Door
from fluss.model.predicates.predicate import Predicate
from fluss.scan.scan import Narrowed, Scan

# Further options of Arrow's scanners that are passed on; the others are for files.
_KEPT = frozenset({"batch_size", "use_threads", "memory_pool"})
# The readers of splits read ahead. Arrow's scanner need not do so as well, and less is read in vain
# where a caller stops early.
_READAHEAD = 1


class _Scannable:
    """The methods that datasets and fragments share: all follow from `scanner`."""

    scanner: Callable[..., ds.Scanner]

    def to_table(self, columns: Any = None, filter: Any = None, **more: Any) -> pa.Table:  # noqa: A002
        """The rows, as a table."""
        return self.scanner(columns=columns, filter=filter, **more).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        """The rows, batch by batch."""
        batches: Iterator[Any] = self.scanner(columns=columns, filter=filter, **more).to_batches()
        return batches

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **more: Any) -> pa.Table:  # noqa: A002
        """The rows at these positions."""
        return self.to_table(columns, filter, **more).take(indices)

    def count_rows(self, filter: Any = None, **more: Any) -> int:  # noqa: A002
        """Count the rows."""
        batches = self.scanner(columns=[], filter=filter, **more).to_batches()
        return sum(each.num_rows for each in batches)

    def head(
        self,
        num_rows: int,
        columns: Any = None,
        filter: Any = None,  # noqa: A002 - Arrow's name
        **more: Any,
    ) -> pa.Table:
        """The first rows; the scan stops when it has them."""
        return self.scanner(columns=columns, filter=filter, rows_max=num_rows, **more).head(
            num_rows
        )


@at_door(Door.SESSION)
class FlussDataset(_Scannable, ds.Dataset):  # type: ignore[misc] # pyarrow ships no types
    """A scan as a dataset; `scan.to_dataset()` makes it."""

    def __init__(self, scan: Scan) -> None:
        # Arrow forbids making a Dataset by itself; its methods here are all overridden.
        self._scan = scan

    @property
    def schema(self) -> pa.Schema:
        return self._scan.schema

    @property
    def partition_expression(self) -> ds.Expression:
        return ds.scalar(True)

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, ds.Expression] | None = None,
        filter: ds.Expression | str | None = None,  # noqa: A002 - Arrow's name
        **arrow_options: Any,
    ) -> ds.Scanner:
        """A scanner over the rows that the table has now.

        Args:
            columns: Names of columns, or expressions by name.
            filter: The condition that rows fulfil: an expression, or SQL.
            **arrow_options: Other options of Arrow's scanners; only batch sizes have an effect.
        """
        narrowed = self._scan.again().narrowed(
            columns=_names(columns), predicate=filter, limit=arrow_options.get("rows_max")
        )
        return _scanner(narrowed, columns, arrow_options)

    def get_fragments(self, filter: Any = None) -> Iterator[FlussFragment]:  # noqa: A002
        """Plan the dataset now, and yield a fragment for each bucket that may have matching rows.

        Args:
            filter: The condition that rows fulfil: an expression, or SQL.
        """
        scan = self._scan.again().narrowed(predicate=filter).scan
        if scan.options.limit is not None:
            raise UnsupportedOperationError(
                "A scan with a limit cannot be read by fragments: each fragment would apply the limit "
                "to its own rows.",
                hint="leave the limit out, and apply it to the rows of all fragments together",
            )
        for split in scan.splits():
            yield FlussFragment(scan.part([split]), self.schema)

    def filter(self, expression: ds.Expression | str) -> FlussDataset:
        """A dataset of the rows that fulfil an expression, or a condition in SQL."""
        narrowed = self._scan.again().narrowed(predicate=expression)
        if narrowed.residual is not None:
            raise UnsupportedOperationError(
                f"A dataset of Fluss cannot be filtered by {expression}.",
                hint="pass it to scanner(filter=...) or to_table(filter=...)",
            )
        return FlussDataset(narrowed.scan)

    def sort_by(self, sorting: Any, **more: Any) -> ds.Dataset:
        """Read all rows into memory, and return them as a sorted dataset."""
        return ds.dataset(self.to_table()).sort_by(sorting, **more)

    def join(self, right_dataset: Any, *given: Any, **more: Any) -> ds.Dataset:
        """Read all rows into memory, and return a dataset of them, joined with another one."""
        return ds.dataset(self.to_table()).join(_in_memory(right_dataset), *given, **more)

    def join_asof(self, right_dataset: Any, *given: Any, **more: Any) -> ds.Dataset:
        """Read all rows into memory, and return a dataset of them, joined as of a key."""
        return ds.dataset(self.to_table()).join_asof(_in_memory(right_dataset), *given, **more)

    def replace_schema(self, schema: pa.Schema) -> Any:  # noqa: ARG002 - Arrow's signature
        raise UnsupportedOperationError(
            "A scan of Fluss always has the schema of its table.",
            hint="cast the result of to_table()",
        )

    def __reduce__(self) -> Any:
        raise _stays_here("dataset")


@at_door(Door.SESSION)
class FlussFragment(_Scannable, ds.Fragment):  # type: ignore[misc] # pyarrow ships no types
    """One split of a dataset; `dataset.get_fragments()` makes it."""

    def __init__(self, scan: Scan, schema: pa.Schema) -> None:
        # As for a Dataset: all of Arrow's methods are overridden.
        self._scan = scan
        self._schema = schema

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
            columns: Names of columns, or expressions by name.
            filter: The condition that rows fulfil: an expression, or SQL.
            **arrow_options: Other options of Arrow's scanners; only batch sizes have an effect.
        """
        if schema is not None and not schema.equals(self._schema):
            raise UnsupportedOperationError(
                "A fragment of Fluss is laid out in the schema of its dataset.",
                hint="cast what to_table() gives",
            )
        narrowed = self._scan.narrowed(
            columns=self._schema.names if columns is None else _names(columns),
            predicate=filter,
            limit=arrow_options.get("rows_max"),
        )
        return _scanner(narrowed, columns, arrow_options)

    def __repr__(self) -> str:
        (split,) = self._scan.splits()
        partition = "" if split.partition_name is None else f", partition {split.partition_name}"
        return f"FlussFragment({split.table_path}{partition}, bucket {split.bucket.bucket_id})"

    def __reduce__(self) -> Any:
        raise _stays_here("fragment")


def _scanner(
    narrowed: Narrowed,
    columns: Sequence[str] | Mapping[str, ds.Expression] | None,
    arrow_options: Mapping[str, Any],
) -> ds.Scanner:
    kept = {key: value for key, value in arrow_options.items() if key in _KEPT}
    is_predicate = isinstance(narrowed.residual, Predicate)  # Arrow applies only expressions
    return ds.Scanner.from_batches(
        narrowed.read() if is_predicate else narrowed.scan.read(),
        columns=columns if columns is None or isinstance(columns, Mapping) else list(columns),
        filter=None if is_predicate else narrowed.residual,
        batch_readahead=_READAHEAD,
        **kept,
    )


def _names(columns: Sequence[str] | Mapping[str, ds.Expression] | None) -> Sequence[str] | None:
    """The columns by name; expressions may look at any column."""
    return None if isinstance(columns, Mapping) else columns


def _in_memory(dataset: Any) -> ds.Dataset:
    return ds.dataset(dataset.to_table()) if isinstance(dataset, FlussDataset) else dataset


def _stays_here(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"A {what} of Fluss holds a connection, and cannot be pickled.",
        hint="scan.splits() can; fluss.scan.open_split reads them elsewhere",
    )
