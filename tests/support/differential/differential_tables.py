"""The kinds of tables that two servers are compared on, and rows for them.

A `DifferentialTable` is the test's record of a table while it is altered, written to and
partitioned: its schemas, its partitions, the sequence of each writer. Rows are random, and keys are
few, so that rows of the same key meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.model.types.data_type import DataType, StringType
from fluss.model.types.factory import DataTypes
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.kv.kv_batch import kv_body, write_kv_batch
from fluss.records.kv.row_bytes import batch_from_rows
from fluss.records.log.log_writer import LogBody, arrow_log_body, write_log_batch
from fluss.records.log.row_log import row_log_body_of_rows
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from fluss.rows.formats.indexed_row import IndexedRowReader, IndexedRowWriter
from tests.support.generators.seeded_values import random_value

KEYS = 9
PARTITIONS = ("north", "south", "west")
# The rows that are NULL where they may be.
_NULL_RATE = 0.3
# Short, so that a difference is readable; their order by UTF-8 bytes differs from that by UTF-16.
_TEXTS = ("", "a", "é", "zz", "\uffff", "\U0010ffff", "longer than eight bytes")

Row = tuple[Any, ...]

_ID = Column("id", DataTypes.int().not_null())
_PLAIN = (
    _ID,
    Column("name", DataTypes.string()),
    Column("n", DataTypes.bigint()),
    Column("at", DataTypes.timestamp(6)),
)
_PLACE = Column("place", DataTypes.string().not_null())
_WIDE = (
    _ID,
    Column("flag", DataTypes.boolean()),
    Column("tiny", DataTypes.tinyint()),
    Column("ratio", DataTypes.float()),
    Column("price", DataTypes.decimal(12, 3)),
    Column("large", DataTypes.decimal(30, 4)),
    Column("day", DataTypes.date()),
    Column("blob", DataTypes.bytes()),
    Column("moment", DataTypes.timestamp_ltz(3)),
    Column("numbers", DataTypes.array(DataTypes.int())),
)


def _aggregated(function: str, name: str, data_type: DataType, **parameters: str) -> Column:
    return Column(name, data_type, aggregation=AggFunction.of(function, **parameters))


_AGGREGATED = (
    _ID,
    _aggregated("sum", "sum_int", DataTypes.int()),
    _aggregated("sum", "sum_decimal", DataTypes.decimal(10, 2)),
    _aggregated("product", "product", DataTypes.double()),
    _aggregated("max", "greatest", DataTypes.string()),
    _aggregated("min", "least", DataTypes.timestamp(3)),
    _aggregated("last_value", "last", DataTypes.string()),
    _aggregated("first_value", "first", DataTypes.bigint()),
    _aggregated("first_value_ignore_nulls", "first_there", DataTypes.bigint()),
    _aggregated("listagg", "all", DataTypes.string(), delimiter="|"),
    _aggregated("bool_and", "every", DataTypes.boolean()),
    _aggregated("bool_or", "any", DataTypes.boolean()),
    Column("unsaid", DataTypes.string()),
)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of table."""

    name: str
    columns: tuple[Column, ...] = _PLAIN
    keys: tuple[str, ...] = ("id",)
    bucket_keys: tuple[str, ...] | None = None
    partition_by: tuple[str, ...] = ()
    auto_increment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()

    def descriptor(self) -> TableDescriptor:
        return TableDescriptor(
            Schema(self.columns, list(self.keys) or None, self.auto_increment),
            bucket_count=2 if self.partition_by else 1,
            bucket_keys=None if self.bucket_keys is None else list(self.bucket_keys),
            partition_keys=list(self.partition_by) or None,
            properties=dict(self.properties) or None,
        )


def _with(**options: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"table.{name.replace('__', '.').replace('_', '-')}", value)
        for name, value in options.items()
    )


KINDS = (
    Kind(name="log", keys=()),
    Kind(name="log_none", keys=(), properties=_with(log__arrow__compression__type="NONE")),
    Kind(name="log_rows", keys=(), properties=_with(log__format="INDEXED")),
    Kind(name="log_by_place", columns=(*_PLAIN, _PLACE), keys=(), partition_by=("place",)),
    Kind(name="keyed"),
    Kind(name="wide", columns=_WIDE),
    Kind(name="only_keys", columns=(_ID, _PLACE), keys=("id", "place")),
    Kind(name="indexed", properties=_with(kv__format="INDEXED")),
    Kind(name="wal", properties=_with(changelog__image="wal")),
    Kind(name="first_row", properties=_with(merge_engine="first_row")),
    Kind(
        name="versioned",
        properties=_with(merge_engine="versioned", merge_engine__versioned__ver_column="n"),
    ),
    Kind(
        name="versioned_by_time",
        properties=_with(merge_engine="versioned", merge_engine__versioned__ver_column="at"),
    ),
    Kind(name="aggregated", columns=_AGGREGATED, properties=_with(merge_engine="aggregation")),
    Kind(
        name="aggregated_deletes",
        columns=_AGGREGATED,
        properties=_with(merge_engine="aggregation", delete__behavior="allow"),
    ),
    Kind(
        name="first_row_wal",
        properties=_with(merge_engine="first_row", changelog__image="wal"),
    ),
    Kind(name="no_deletes", properties=_with(delete__behavior="disable")),
    Kind(name="deletes_ignored", properties=_with(delete__behavior="ignore")),
    Kind(
        name="by_place",
        columns=(*_PLAIN, _PLACE),
        keys=("id", "place"),
        partition_by=("place",),
    ),
    Kind(
        name="prefixed",
        columns=(_ID, _PLACE, *_PLAIN[1:]),
        keys=("id", "place"),
        bucket_keys=("id",),
    ),
    Kind(
        name="numbered",
        columns=(_ID, Column("number", DataTypes.bigint()), Column("name", DataTypes.string())),
        auto_increment="number",
        # Ranges of one number, because servers lose different parts of a range at a restart.
        properties=_with(auto_increment__cache_size="1"),
    ),
)


@dataclass
class DifferentialTable:
    """The test's record of a table that both servers have, or had."""

    kind: Kind
    exists: bool = False
    schemas: list[Schema] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    sequences: dict[tuple[str | None, int, int], int] = field(default_factory=dict)
    generation: int = 0

    def __post_init__(self) -> None:
        self.schemas = [self.descriptor.schema]

    @property
    def name(self) -> str:
        return f"{self.kind.name}_{self.generation}"

    @property
    def descriptor(self) -> TableDescriptor:
        return self.kind.descriptor()

    @property
    def newest(self) -> Schema:
        return self.schemas[-1]

    @property
    def log_format(self) -> LogFormat:
        return self.descriptor.options.log_format

    @property
    def kv_format(self) -> KvFormat:
        return self.descriptor.options.kv_format

    def dropped(self) -> None:
        """A table of the same name comes back sooner than 0.9.1 has forgotten the first one."""
        self.generation += 1
        self.exists = False
        self.schemas, self.partitions, self.sequences = [self.descriptor.schema], [], {}

    def add_column(self, name: str, data_type: DataType) -> None:
        self.schemas.append(self.newest.with_column(Column(name, data_type)))

    def partitioned(self, name: str, *, exists: bool) -> None:
        """A partition was made or dropped, or had been before."""
        self.partitions = [each for each in self.partitions if each != name]
        self.partitions += [name] if exists else []
        if not exists:
            self.sequences = {k: v for k, v in self.sequences.items() if k[0] != name}

    def some_place(self, chance: Random) -> tuple[str | None, int]:
        """A partition and a bucket."""
        partition = None
        if self.kind.partition_by:
            partition = chance.choice(self.partitions or list(PARTITIONS))
        return partition, chance.randrange(self.descriptor.bucket_count or 1)

    # --- rows -----------------------------------------------------------------------------------

    def random_row(self, chance: Random, schema: Schema, partition: str | None) -> Row:
        return tuple(self._value(chance, each, partition) for each in schema.columns)

    def _value(self, chance: Random, column: Column, partition: str | None) -> Any:
        if column.name == "id":
            return chance.randrange(KEYS)
        if column.name == "place":
            return partition or chance.choice(PARTITIONS)
        if column.name == "n" and chance.random() < 0.5:
            return chance.randrange(4)  # versions that meet again
        if isinstance(column.data_type, StringType) and chance.random() > _NULL_RATE:
            return chance.choice(_TEXTS)
        return random_value(chance, column.data_type, null_rate=_NULL_RATE)

    def key(self, row: Row) -> bytes:
        """The physical primary key of a row."""
        schema = self.newest
        names = [each for each in self.kind.keys if each not in self.kind.partition_by]
        positions = [schema.column_names.index(each) for each in names]
        types = [schema.columns[each].data_type for each in positions]
        return CompactedRowWriter(types, is_key=True).write([row[each] for each in positions])

    def read_value(self, value: bytes) -> Row:
        """A stored value as a row of the newest schema."""
        schema = self.schemas[int.from_bytes(value[:2], "little") - 1]
        readers = {KvFormat.COMPACTED: CompactedRowReader, KvFormat.INDEXED: IndexedRowReader}
        values = readers[self.kv_format](schema.column_types).read(value[2:])
        return (*values, *[None] * (len(self.newest.columns) - len(values)))

    # --- batches --------------------------------------------------------------------------------

    def log_batch(
        self, rows: list[Row], *, schema_id: int, writer: tuple[int, int] = (-1, -1)
    ) -> bytes:
        """A batch of PRODUCE_LOG."""
        schema = self.schemas[schema_id - 1]
        parts = write_log_batch(
            self._log_body(rows, schema),
            schema_id=schema_id,
            writer_id=writer[0],
            batch_sequence=writer[1],
        )
        return b"".join(map(bytes, parts))

    def _log_body(self, rows: list[Row], schema: Schema) -> LogBody:
        if self.log_format is not LogFormat.ARROW:
            writer = IndexedRowWriter(schema.column_types)
            return row_log_body_of_rows(_packed([writer.write(row) for row in rows]))
        encoded = _packed([CompactedRowWriter(schema.column_types).write(row) for row in rows])
        batch = batch_from_rows(encoded, layout_of(schema), KvFormat.COMPACTED)
        options = self.descriptor.options
        codec = BodyCodec(options.arrow_compression)
        return arrow_log_body(batch, codec)

    def kv_batch(
        self,
        records: list[tuple[Row, bool]],
        *,
        schema_id: int,
        writer: tuple[int, int] = (-1, -1),
    ) -> bytes:
        """A batch of PUT_KV: rows, and for each whether its key is deleted."""
        schema = self.schemas[schema_id - 1]
        writers = {KvFormat.COMPACTED: CompactedRowWriter, KvFormat.INDEXED: IndexedRowWriter}
        encoder = writers[self.kv_format](schema.column_types)
        keys = _packed([self.key(row) for row, _ in records])
        rows = _packed([b"" if gone else encoder.write(row) for row, gone in records])
        body = kv_body(keys, rows, deletes=np.array([gone for _, gone in records], dtype=bool))
        parts = write_kv_batch(
            body, schema_id=schema_id, writer_id=writer[0], batch_sequence=writer[1]
        )
        return b"".join(map(bytes, parts))


def layout_of(schema: Schema) -> BatchLayout:
    """Return the batch layout of a schema in wire types."""
    layout = BatchLayout.of_schema(schema)
    return replace(layout, user_schema=layout.wire_schema)


def _packed(parts: list[bytes]) -> RowBytes:
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in parts], out=offsets[1:])
    return RowBytes(data=np.frombuffer(b"".join(parts), dtype=np.uint8), offsets=offsets)
