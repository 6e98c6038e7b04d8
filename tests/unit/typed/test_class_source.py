"""The text of classes describes the tables that it was made of, whatever their columns."""

from __future__ import annotations

import sys
from datetime import UTC
from types import ModuleType
from typing import Any

import pyarrow as pa
from hypothesis import given, settings, strategies as st

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.types import data_type as t
from fluss.model.types.type_text import parse_type
from fluss.typed.class_source import class_source
from fluss.typed.field_types import row_class_of
from fluss.typed.markers import has_table
from fluss.typed.row_codec import RowCodec
from fluss.typed.table_changes import class_table_of, diff_table
from fluss.write.class_frames import ClassFrame
from tests.support.generators.schema_strategies import schemas

PATH = TablePath("d", "some_table")


def table_of(schema, **more):
    descriptor = TableDescriptor(schema, **{"bucket_count": 1, **more})
    return TableInfo.of(descriptor, table_path=PATH, table_id=0, schema_id=1)


def classes_in(text):
    module = ModuleType("made_of_source")
    sys.modules["made_of_source"] = module
    exec(compile(text, "tables.py", "exec"), vars(module))  # noqa: S102 - our own text
    return [each for each in vars(module).values() if has_table(each)]


def class_of(table):
    (cls,) = classes_in(class_source([table]))
    return cls


@settings(max_examples=25)
@given(schemas())
def test_a_table_does_not_differ_from_its_class(schema):
    table = table_of(schema)
    described = class_table_of(class_of(table), TablePath.parse)
    assert str(diff_table(described, table)) == "d.some_table: no difference"
    made = described.descriptor.schema
    assert [each.comment for each in made.columns] == [each.comment for each in schema.columns]
    assert set(made.primary_keys) == set(schema.primary_keys)


def test_the_type_of_a_map_is_given_as_text_if_its_keys_are_rows():
    key = t.RowType((t.DataField(": ", t.IntType()),), nullable=False)
    table = table_of(Schema({"a": t.MapType(key, t.IntType())}))
    assert "MAP<ROW<`: ` INT> NOT NULL, INT>" in class_source([table])
    assert diff_table(class_table_of(class_of(table), TablePath.parse), table).is_empty


def test_the_file_reads_as_one_that_a_person_wrote():
    schema = Schema(
        {
            "id": "BIGINT NOT NULL",
            "day": "STRING NOT NULL",
            "price": "DECIMAL(10, 2)",
            "order by": "INT",
            "class": "STRING",
            "address": "ROW<street STRING, zip CHAR(5)>",
            "tags": "ARRAY<STRING>",
            "sizes": "MAP<STRING, INT>",
        },
        ["day", "id"],
    )
    table = table_of(
        schema, partition_keys=["day"], bucket_count=3, comment="it's \"sold\"",
        properties={"table.log.ttl": "7d"},
    )  # fmt: skip
    assert class_source([table]) == EXPECTED
    (cls,) = classes_in(EXPECTED)
    assert diff_table(class_table_of(cls, TablePath.parse), table).is_empty


EXPECTED = '''\
"""Tables of Fluss: `fluss diff FILE` compares, `fluss apply FILE` changes them."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import fluss


@dataclass(kw_only=True)
class SomeTableAddress:
    street: str | None = None
    zip: Annotated[str | None, "CHAR(5)"] = None


@fluss.table("d.some_table", buckets=3, primary_key=['day', 'id'], comment='it\\'s "sold"', \
properties={'table.log.ttl': '7d'})
@dataclass(kw_only=True)
class SomeTable:
    id: Annotated[int, fluss.Key]
    day: Annotated[str, fluss.Key, fluss.Partition]
    price: Annotated[Decimal | None, "DECIMAL(10, 2)"] = None
    order_by: Annotated[int | None, "INT", fluss.ColumnName('order by')] = None
    class_: Annotated[str | None, fluss.ColumnName('class')] = None
    address: SomeTableAddress | None = None
    tags: list[str | None] | None = None
    sizes: dict[str, Annotated[int | None, "INT"]] | None = None
'''


# --- rows of such classes -------------------------------------------------------------------------

# `datetime` ends at microseconds, and a dict has one value for a key.
_NAMES = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR(3)", "STRING",
          "BINARY(2)", "BYTES", "DECIMAL(20, 3)", "DATE", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(6)",
          "TIMESTAMP_LTZ(3)"]  # fmt: skip
SCALARS = st.sampled_from([parse_type(each) for each in _NAMES])
KEYS = st.sampled_from([t.StringType(), t.IntType(), t.DateType()])
TYPES = st.recursive(
    SCALARS,
    lambda inner: (
        inner.map(t.ArrayType)
        | st.builds(t.MapType, KEYS, inner)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda types: t.RowType(tuple(t.DataField(f"f{i}", x) for i, x in enumerate(types)))
        )
    ),
    max_leaves=4,
)


def values(data_type: t.DataType) -> st.SearchStrategy[Any]:
    """What Arrow takes for a type."""
    return st.none() | _some(data_type) if data_type.nullable else _some(data_type)


def _some(data_type: t.DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case t.ArrayType():
            return st.lists(values(data_type.element), max_size=3)
        case t.MapType():
            pairs = st.dictionaries(_some(data_type.key), values(data_type.value), max_size=3)
            return pairs.map(lambda found: list(found.items()))
        case t.RowType():
            return st.fixed_dictionaries(
                {each.name: values(each.data_type) for each in data_type.fields}
            )
        case t.IntegerFamily():
            return st.integers(-(2 ** (data_type.bits - 1)), 2 ** (data_type.bits - 1) - 1)
        case t.FloatType():
            return st.floats(width=32, allow_nan=False)
        case t.DoubleType():
            return st.floats(allow_nan=False)
        case t.TextFamily():
            return st.text(max_size=3)
        case t.BinaryType():
            return st.binary(min_size=2, max_size=2)
        case t.BytesType():
            return st.binary(max_size=3)
        case t.BooleanType():
            return st.booleans()
        case t.DecimalType():
            return st.decimals(-(10**16), 10**16, places=3)
        case t.DateType():
            return st.dates()
        case t.TimeType():
            return st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
        case t.TimestampFamily():
            zones = st.just(UTC) if isinstance(data_type, t.TimestampLtzType) else st.none()
            step = {0: 1_000_000, 3: 1_000, 6: 1}[data_type.precision]
            return st.datetimes(timezones=zones).map(
                lambda at: at.replace(microsecond=at.microsecond // step * step)
            )
    raise AssertionError(data_type)


@settings(max_examples=25)
@given(st.data())
def test_rows_of_random_types_come_back_as_they_were(data):
    types = data.draw(st.lists(TYPES, min_size=1, max_size=3))
    schema = Schema({f"c{index}": each for index, each in enumerate(types)})
    rows = data.draw(
        st.lists(st.fixed_dictionaries({each.name: values(each.data_type) for each in schema.columns}),
                 min_size=1, max_size=4)
    )  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, schema.to_arrow())
    columns = {each.name: each.data_type for each in schema.columns}
    row = row_class_of(class_of(table_of(schema)))
    made = RowCodec(row, columns, "d.t").reader(batch.schema.names)(batch)
    (again,) = ClassFrame(row, made).batches(columns)
    assert again.cast(batch.schema).equals(batch)
