"""A scan of a session: its rows as tables, frames, datasets and streams.

A scan is one plan: `to_arrow()` twice gives the same rows twice, whatever is written in between.
A new `table.scan(...)` sees the rows that are new; `start=scan.cursor()` sees only those. It is a
`fluss.scan.Scan`, which has all other methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from fluss import scan
from fluss.doors import at_door
from fluss.errors import InvalidValueError, MissingExtraError, UnsupportedOperationError
from fluss.hints import Door
from fluss.model.did_you_mean import did_you_mean
from fluss.progress import Progress
from fluss.scan import follow
from fluss.session.show import Explanation, follow_html, scan_html

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from fluss.scan.dataset import FlussDataset


@at_door(Door.SESSION)
class Scan(scan.Scan):
    """A scan of a table; `table.scan(...)` makes it. Any thread may use it."""

    def explain(self) -> Explanation:
        """Describe what is read and what is left out, and why, as text."""
        return Explanation(super().explain())

    def to_reader(self) -> pa.RecordBatchReader:
        """Its rows as a stream, read ahead within bounds; batches have a useful size."""
        return self.read()

    def to_arrow(self, *, progress: Progress = None) -> pa.Table:
        """Its rows as a table, bucket by bucket where no other order was requested.

        Args:
            progress: Whether a bar is shown during a long read; by default in terminals and
                notebooks. Or a function of the rows read and their upper bound.
        """
        return super().to_arrow(progress=progress)

    def to_pandas(self, *, progress: Progress = None) -> pd.DataFrame:
        """Its rows as a DataFrame.

        Args:
            progress: See `to_arrow`.
        """
        frame: pd.DataFrame = self.to_arrow(progress=progress).to_pandas()
        return frame

    def to_polars(self, *, progress: Progress = None) -> pl.DataFrame:
        """Its rows as a DataFrame of Polars.

        Args:
            progress: See `to_arrow`.

        Raises:
            MissingExtraError: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise MissingExtraError(
                f"Polars is not installed: {error}.", hint="pip install polars"
            ) from error
        return pl.DataFrame(self.to_arrow(progress=progress))

    def to_dataset(self) -> FlussDataset:
        """A `pyarrow.dataset.Dataset` of it, for libraries that read those."""
        from fluss.scan.dataset import FlussDataset

        return FlussDataset(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if requested_schema is None:
            stream: object = self.read().__arrow_c_stream__()
            return stream
        requested = _requested(requested_schema, self.schema)
        # A stream of fewer columns has the rows of all other streams of this scan.
        planned = self._with(self._shape, self._plan_to_read())
        narrowed = planned.narrowed(columns=requested.names).scan
        reader = narrowed.read(cancellation=self._cancellation)
        return reader.__arrow_c_stream__(requested.__arrow_c_schema__())

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        # Otherwise pandas and numpy would take a scan for a list of batches.
        raise UnsupportedOperationError(
            "A scan is no array.",
            hint="pd.read_fluss(scan), pd.DataFrame.from_arrow(scan), scan.to_pandas()",
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.read())

    def _repr_html_(self) -> str:
        stats = None if self._plan is None else self._plan.stats
        return scan_html(self.name, self.schema, self._options_given(), stats)


@at_door(Door.SESSION)
class Follow(follow.Follow):
    """A log, read as it grows; `table.follow(...)` makes it. For one thread at a time."""

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"Follow({self.name}{closed})"

    def _repr_html_(self) -> str:
        return follow_html(self.name, self.schema, self.stats)


@dataclass(frozen=True, slots=True)
class _SchemaCapsule:
    capsule: object

    def __arrow_c_schema__(self) -> object:
        return self.capsule


def _requested(capsule: object, schema: pa.Schema) -> pa.Schema:
    """The schema in a capsule, which is empty afterwards.

    Args:
        capsule: The schema that a consumer requests.
        schema: The schema of the scan.

    Raises:
        InvalidValueError: It requests an unknown column, or one column twice.
    """
    requested = pa.schema(_SchemaCapsule(capsule))
    for name in requested.names:
        if name not in schema.names:
            raise InvalidValueError(
                f"A consumer of the scan requests the column {name!r}, which it does not have.",
                hint=did_you_mean(name, schema.names) or f"it has {', '.join(schema.names)}",
                column=name,
            )
        if requested.names.count(name) > 1:
            raise InvalidValueError(f"A consumer of the scan requests {name!r} twice.", column=name)
    return requested
