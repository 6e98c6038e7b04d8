"""The layout that all batches of a schema, or of a projection of it, share.

A layout is made once per schema id and projection and then handed to every reader and writer of
this room: the columns' names and Fluss types, their Arrow schemas, and how many field nodes and
buffers an Arrow body of such a batch has. It holds no data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Self

import pyarrow as pa

from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import DataType
from fluss.model.types.type_facts import ArrowLayout
from fluss.model.types.type_to_arrow import to_arrow_schema, to_arrow_type, to_wire_arrow_type
from fluss.model.values.limits import NO_LIMITS, ValueLimits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchLayout:
    """The columns of a batch.

    Args:
        names: The columns' names, in order.
        types: Their Fluss types.
        column_ids: Their ids, where the schema gives any; names may change, ids do not.
        wire_schema: The Arrow schema as Fluss lays it out: timestamps without zones, no metadata.
        user_schema: The same columns as users see them: TIMESTAMP_LTZ in UTC. Both schemas have
            the same buffers, so a body can be read with either.
        node_starts: The first field node of each column, then the number of nodes.
        buffer_starts: The first buffer of each column, then the number of buffers.
        limits: What the table adds to the limits of the types (`TableInfo.value_limits`); given
            where rows are to be written.
    """

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    column_ids: tuple[int, ...] | None
    wire_schema: pa.Schema
    user_schema: pa.Schema
    node_starts: tuple[int, ...]
    buffer_starts: tuple[int, ...]
    limits: ValueLimits = NO_LIMITS

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        types: Sequence[DataType],
        *,
        column_ids: Sequence[int] | None = None,
        user_schema: pa.Schema | None = None,
        limits: ValueLimits = NO_LIMITS,
    ) -> Self:
        """Return the layout of columns with these names and types.

        Args:
            names: The columns' names.
            types: Their types.
            column_ids: Their ids in the table's schema.
            user_schema: The Arrow schema to read batches as, where it carries more than types
                (comments, say); made from the types otherwise.
            limits: See above.
        """
        nodes, buffers = zip((0, 0), *(_counts(each) for each in types), strict=True)
        return cls(
            names=tuple(names),
            types=tuple(types),
            column_ids=None if column_ids is None else tuple(column_ids),
            wire_schema=_schema(names, types, to_wire_arrow_type),
            user_schema=user_schema or _schema(names, types, to_arrow_type),
            node_starts=tuple(accumulate(nodes)),
            buffer_starts=tuple(accumulate(buffers)),
            limits=limits,
        )

    @classmethod
    def of_schema(cls, schema: Schema, *, limits: ValueLimits = NO_LIMITS) -> Self:
        """Return the layout of whole batches of a schema."""
        ids = [each.column_id for each in schema.columns]
        return cls.of(
            schema.column_names,
            schema.column_types,
            column_ids=None if None in ids else [each for each in ids if each is not None],
            user_schema=to_arrow_schema(schema),
            limits=limits,
        )

    def project(self, positions: Sequence[int]) -> BatchLayout:
        """Return the layout of the columns at these positions, in the order given."""
        ids = self.column_ids
        return BatchLayout.of(
            [self.names[each] for each in positions],
            [self.types[each] for each in positions],
            column_ids=None if ids is None else [ids[each] for each in positions],
            user_schema=pa.schema([self.user_schema.field(each) for each in positions]),
            limits=self.limits,
        )

    def __len__(self) -> int:
        return len(self.types)

    @property
    def node_count(self) -> int:
        """How many field nodes a body has: one per column and one per nested child."""
        return self.node_starts[-1]

    @property
    def buffer_count(self) -> int:
        """How many buffers a body has, empty validity buffers included."""
        return self.buffer_starts[-1]


def _schema(
    names: Sequence[str], types: Sequence[DataType], to_arrow: Callable[[DataType], pa.DataType]
) -> pa.Schema:
    pairs = zip(names, types, strict=True)
    return pa.schema([pa.field(name, to_arrow(each), each.nullable) for name, each in pairs])


# Field nodes and buffers without those of children; MAP's include the struct of its entries.
_OWN_COUNTS: Final = {
    ArrowLayout.BITS: (1, 2),
    ArrowLayout.FIXED: (1, 2),
    ArrowLayout.VARIABLE: (1, 3),
    ArrowLayout.LIST: (1, 2),
    ArrowLayout.MAP: (2, 3),
    ArrowLayout.STRUCT: (1, 1),
}


def _counts(data_type: DataType) -> tuple[int, int]:
    """Field nodes and buffers of a column, in Arrow's pre-order."""
    nodes, buffers = _OWN_COUNTS[data_type.layout]
    for child in data_type.children():
        child_nodes, child_buffers = _counts(child)
        nodes, buffers = nodes + child_nodes, buffers + child_buffers
    return nodes, buffers
