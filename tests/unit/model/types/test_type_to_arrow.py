from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given

from fluss.errors import UnsupportedTypeError
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types import type_to_arrow
from fluss.model.types.arrow_to_type import (
    ARROW_DEPTH_MAX,
    from_arrow_field,
    from_arrow_schema,
    from_arrow_type,
)
from fluss.model.types.data_type import DataField, RowType
from fluss.model.types.factory import DataTypes as D
from fluss.model.types.type_to_arrow import (
    FIELD_ID_KEY,
    TYPE_KEY,
    to_arrow_field,
    to_arrow_schema,
    to_arrow_type,
    to_wire_arrow_type,
)
from tests.support.generators.schema_strategies import data_types, schemas

# PROTOCOL.md 4.3: what stands on the wire.
WIRE = [
    (D.boolean(), pa.bool_()),
    (D.tinyint(), pa.int8()),
    (D.smallint(), pa.int16()),
    (D.int(), pa.int32()),
    (D.bigint(), pa.int64()),
    (D.float(), pa.float32()),
    (D.double(), pa.float64()),
    (D.char(3), pa.string()),
    (D.string(), pa.string()),
    (D.binary(7), pa.binary(7)),
    (D.bytes(), pa.binary()),
    (D.decimal(10, 2), pa.decimal128(10, 2)),
    (D.date(), pa.date32()),
    (D.time(0), pa.time32("s")),
    (D.time(1), pa.time32("ms")),
    (D.time(3), pa.time32("ms")),
    (D.time(4), pa.time64("us")),
    (D.time(7), pa.time64("ns")),
    (D.timestamp(0), pa.timestamp("s")),
    (D.timestamp(2), pa.timestamp("ms")),
    (D.timestamp(6), pa.timestamp("us")),
    (D.timestamp(9), pa.timestamp("ns")),
    (D.timestamp_ltz(0), pa.timestamp("s")),
    (D.timestamp_ltz(3), pa.timestamp("ms")),
    (D.timestamp_ltz(5), pa.timestamp("us")),
    (D.timestamp_ltz(8), pa.timestamp("ns")),
]


@pytest.mark.parametrize(("data_type", "arrow_type"), WIRE)
def test_the_wire_has_no_zones(data_type, arrow_type):
    assert to_wire_arrow_type(data_type) == arrow_type


@pytest.mark.parametrize(("data_type", "arrow_type"), WIRE)
def test_people_see_instants_in_utc(data_type, arrow_type):
    expected = pa.timestamp(arrow_type.unit, tz="UTC") if "LTZ" in str(data_type) else arrow_type
    assert to_arrow_type(data_type) == expected


def test_nested_types_have_the_names_and_nulls_of_java():
    wire = to_wire_arrow_type(
        D.array(D.map(D.string(), D.row([D.field("at", D.timestamp_ltz(1).not_null(), "when")])))
    )
    row = pa.struct([pa.field("at", pa.timestamp("ms"), nullable=False)])
    expected = pa.list_(
        pa.field(
            "element",
            pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", row)),
        )
    )
    assert wire.equals(expected, check_metadata=True)


@given(schemas())
def test_nothing_on_the_wire_carries_metadata(schema):
    wire = pa.schema([(each.name, to_wire_arrow_type(each.data_type)) for each in schema.columns])
    assert b"metadata" not in wire.to_string(show_field_metadata=True).encode()


@given(data_types())
def test_a_type_comes_back_from_arrow(data_type):
    field = to_arrow_field(Column("c", data_type, "what it is", column_id=4))
    assert from_arrow_field(field) == data_type
    (column,) = from_arrow_schema(pa.schema([field]))
    assert column == Column("c", data_type, "what it is", column_id=4)


@given(schemas())
def test_a_schema_comes_back_from_arrow_with_ids_and_comments(schema):
    assert Schema(to_arrow_schema(schema), schema.primary_keys) == schema


@given(schemas())
def test_a_schema_survives_arrow_ipc(schema):
    arrow = pa.ipc.read_schema(to_arrow_schema(schema).serialize())
    assert Schema(arrow, schema.primary_keys) == schema


@given(schemas())
def test_a_schema_that_is_kept_is_the_one_that_is_made(schema):
    made = type_to_arrow._schema_of.__wrapped__(schema.columns)
    for _ in range(2):
        assert to_arrow_schema(schema).equals(made, check_metadata=True)
    assert to_arrow_schema(schema) is to_arrow_schema(Schema.from_json(schema.to_json()))


def test_schemas_that_differ_in_one_fact_are_kept_apart():
    columns = [
        Column("a", D.bigint()),
        Column("a", D.bigint().not_null()),
        Column("a", D.bigint(), "a comment"),
        Column("a", D.bigint(), column_id=7),
        Column("a", D.bigint(), aggregation=AggFunction.of("sum")),
        Column("a", D.string(), aggregation=AggFunction.of("listagg", delimiter="|")),
        Column("a", D.string(), aggregation=AggFunction.of("listagg", delimiter=";")),
        Column("a", D.char(1)),
        Column("a", D.char(2)),
        Column("a", D.array(D.int())),
        Column("a", D.array(D.int().not_null())),
    ]
    made = [to_arrow_schema(Schema([each])) for each in columns]
    for number, one in enumerate(made):
        assert one.equals(pa.schema([to_arrow_field(columns[number])]), check_metadata=True) or (
            columns[number].column_id is not None
        )
        others = made[:number] + made[number + 1 :]
        assert not any(one.equals(each, check_metadata=True) for each in others)


def test_few_schemas_are_kept():
    for number in range(2 * type_to_arrow.SCHEMAS_KEPT_MAX):
        to_arrow_schema(Schema([Column(f"c{number}", D.int())]))
    assert type_to_arrow._schema_of.cache_info().currsize == type_to_arrow.SCHEMAS_KEPT_MAX


def test_the_usual_schema_is_free_of_metadata():
    arrow = to_arrow_schema(
        Schema(pa.schema([("a", pa.int32()), ("b", pa.timestamp("us", "UTC"))]))
    )
    assert arrow.equals(
        pa.schema([("a", pa.int32()), ("b", pa.timestamp("us", "UTC"))]), check_metadata=True
    )


def test_ids_that_are_not_in_order_are_kept():
    row = RowType((DataField("x", D.int(), field_id=9),))
    schema = Schema([Column("a", D.int(), column_id=5), Column("b", row, column_id=2)])
    arrow = to_arrow_schema(schema)
    assert arrow.field("a").metadata == {FIELD_ID_KEY: b"5"}
    assert Schema(arrow) == schema


def test_metadata_that_contradicts_its_type_is_ignored():
    stale = {TYPE_KEY: b"CHAR(3)"}
    assert from_arrow_field(pa.field("a", pa.int32(), metadata=stale)) == D.int()
    assert from_arrow_field(pa.field("a", pa.large_string(), metadata=stale)) == D.char(3)
    for nonsense in (b"", b"\xff", b"CHAR(", b"INT", b"TIMESTAMP_LTZ(1)"):
        field = pa.field("a", pa.timestamp("ms"), metadata={TYPE_KEY: nonsense})
        assert from_arrow_field(field) == D.timestamp(3)


@pytest.mark.parametrize("ids", [["0", "0"], ["0", None], ["x", "1"], ["-1", "2"], ["9" * 30, "1"]])
def test_ids_that_no_longer_fit_are_left_out(ids):
    fields = [
        pa.field(name, pa.int32(), metadata=None if each is None else {FIELD_ID_KEY: each})
        for name, each in zip("ab", ids, strict=True)
    ]
    columns = from_arrow_schema(pa.schema(fields))
    assert [each.column_id for each in columns] == [None, None]
    assert [each.column_id for each in Schema(pa.schema(fields)).columns] == [0, 1]


def test_an_aggregation_that_cannot_be_read_is_left_out():
    for text in (b"{", b"[]", b'{"type": "median"}', b'{"type": 7}'):
        field = pa.field("a", pa.int32(), metadata={b"fluss.aggregation": text})
        assert from_arrow_schema(pa.schema([field]))[0].aggregation is None


@pytest.mark.parametrize(
    ("arrow_type", "data_type"),
    [
        (pa.uint8(), D.smallint()),
        (pa.uint16(), D.int()),
        (pa.uint32(), D.bigint()),
        (pa.uint64(), D.decimal(20, 0)),
        (pa.float16(), D.float()),
        (pa.large_string(), D.string()),
        (pa.string_view(), D.string()),
        (pa.large_binary(), D.bytes()),
        (pa.binary_view(), D.bytes()),
        (pa.date64(), D.date()),
        (pa.dictionary(pa.int8(), pa.string()), D.string()),
        (pa.dictionary(pa.int32(), pa.uint64()), D.decimal(20, 0)),
        (pa.timestamp("ms", tz="Europe/Berlin"), D.timestamp_ltz(3)),
        (pa.timestamp("ns", tz="+01:00"), D.timestamp_ltz(9)),
        (pa.decimal32(5, 2), D.decimal(5, 2)),
        (pa.decimal64(12, 0), D.decimal(12, 0)),
        (pa.decimal256(38, 3), D.decimal(38, 3)),
        (pa.list_(pa.int8()), D.array(D.tinyint())),
        (pa.large_list(pa.int8()), D.array(D.tinyint())),
        (pa.list_(pa.int8(), 3), D.array(D.tinyint())),
        (pa.list_view(pa.int8()), D.array(D.tinyint())),
        (pa.large_list_view(pa.int8()), D.array(D.tinyint())),
        (pa.map_(pa.string(), pa.uint8()), D.map(D.string(), D.smallint())),
        (pa.struct([("a", pa.uint8())]), D.row([D.field("a", D.smallint())])),
        (pa.uuid(), D.binary(16)),
        (pa.json_(), D.string()),
    ],
)
def test_a_type_that_fluss_lacks_becomes_one_that_holds_its_values(arrow_type, data_type):
    assert from_arrow_type(arrow_type) == data_type
    assert from_arrow_type(arrow_type, nullable=False) == data_type.not_null()


@pytest.mark.parametrize(
    ("arrow_type", "instead"),
    [
        (pa.duration("s"), "int64"),
        (pa.null(), "pa.string()"),
        (pa.decimal256(39, 0), "38 digits"),
        (pa.decimal128(5, -1), "scale"),
        (pa.decimal128(5, 6), "scale"),
        (pa.binary(0), "binary"),
        (pa.month_day_nano_interval(), "columns of their own"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "run_end_decode"),
        (pa.dense_union([pa.field("a", pa.int32())]), "one column for each"),
        (pa.sparse_union([pa.field("a", pa.int32())]), "one column for each"),
    ],
)
def test_a_type_without_counterpart_is_refused_with_a_way_out(arrow_type, instead):
    field = pa.field("outer", pa.struct([pa.field("inner", pa.list_(arrow_type))]))
    with pytest.raises(UnsupportedTypeError) as caught:
        from_arrow_field(field)
    assert caught.value.column == "outer.inner[]"
    assert instead in (caught.value.hint or "")


def test_a_type_without_end_is_refused_before_the_stack_is():
    arrow_type = pa.int32()
    for _ in range(ARROW_DEPTH_MAX + 1):
        arrow_type = pa.list_(arrow_type)
    with pytest.raises(UnsupportedTypeError, match="levels deep"):
        from_arrow_type(arrow_type)


def test_nulls_of_fields_and_elements_are_kept():
    arrow_type = pa.list_(pa.field("item", pa.int32(), nullable=False))
    field = pa.field("a", arrow_type, nullable=False)
    assert from_arrow_field(field) == D.array(D.int().not_null()).not_null()


def test_importing_the_room_loads_neither_pyarrow_nor_numpy():
    program = (
        "import sys, pkgutil, importlib, fluss.model as room\n"
        "for each in pkgutil.iter_modules(room.__path__):\n"
        "    importlib.import_module('fluss.model.' + each.name)\n"
        "print([m for m in ('pyarrow', 'numpy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
