"""Lays out batches of one schema as another: columns are matched by id, missing ones are NULL.

Old batches keep the schema they were written with, a projected fetch gives columns in ascending
order, and users ask for columns in theirs; `Evolution` is the one step between. It matches columns
by id (names may one day change, ids never do), by name where a schema has no ids. It never touches
values: Fluss only adds columns, so one id always means one type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from fluss.errors import SchemaMismatchError
from fluss.records.arrow.batch_layout import BatchLayout


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evolution:
    """How to lay out batches of one layout as another.

    Args:
        sources: For each requested column, its position in the batch; None where it is missing.
        schema: The requested schema.
        is_identity: Whether batches are laid out that way already.
    """

    sources: tuple[int | None, ...]
    schema: pa.Schema
    is_identity: bool

    @classmethod
    def between(cls, source: BatchLayout, target: BatchLayout) -> Self:
        """Find each column of the target in the source.

        Raises:
            SchemaMismatchError: A column has another type there, or is missing and NOT NULL.
        """
        places = {key: index for index, key in enumerate(_keys(source, target))}
        sources = tuple(places.get(each) for each in _keys(target, source))
        for index, place in enumerate(sources):
            _check_column(source, target, index, place)
        return cls(
            sources=sources,
            schema=target.user_schema,
            is_identity=sources == tuple(range(len(source)))
            and source.user_schema.equals(target.user_schema, check_metadata=True),
        )

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Lay out a batch of the source's `user_schema`; columns are shared, not copied."""
        if self.is_identity:
            return batch
        rows = batch.num_rows
        arrays = [
            pa.nulls(rows, field.type) if place is None else _typed(batch.column(place), field.type)
            for place, field in zip(self.sources, self.schema, strict=True)
        ]
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _typed(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    # Nested types may differ in the metadata of their fields, which is part of Arrow's type.
    return array if array.type.equals(arrow_type, check_metadata=True) else array.cast(arrow_type)


def _keys(layout: BatchLayout, other: BatchLayout) -> Sequence[int | str]:
    by_id = layout.column_ids is not None and other.column_ids is not None
    return layout.column_ids if by_id and layout.column_ids is not None else layout.names


def _check_column(source: BatchLayout, target: BatchLayout, index: int, place: int | None) -> None:
    name, requested = target.names[index], target.types[index]
    if place is None:
        if not requested.nullable:
            raise SchemaMismatchError(
                f"The column {name!r} is {requested}, but older rows have no such column.",
                column=name,
            )
        return
    if source.wire_schema.field(place).type != target.wire_schema.field(index).type:
        found = source.types[place]
        raise SchemaMismatchError(
            f"The column {name!r} is {requested} but was written as {found}.",
            column=name,
            expected=requested,
            found=found,
        )


def read_positions(source: BatchLayout, requested: BatchLayout) -> tuple[int, ...]:
    """Return the ascending positions of the requested columns in a schema, for a fetch.

    Columns that the schema does not have yet are left out, because a server answers a projection
    beyond a batch's columns with an error; `Evolution` fills them with NULL.
    """
    places = {key: index for index, key in enumerate(_keys(source, requested))}
    return tuple(sorted(places[each] for each in _keys(requested, source) if each in places))
