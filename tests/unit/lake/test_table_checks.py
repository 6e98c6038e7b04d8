"""The table of a lake is refused where it cannot be that of the table in Fluss."""

from types import SimpleNamespace

import pytest
from pyiceberg import types as i
from pyiceberg.schema import Schema

from fluss.errors import SchemaMismatchError, UnsupportedOperationError
from fluss_lake.table_checks import check_table
from tests.unit.lake.tables import schema_of, table_of

ALL = {
    "a": ("BOOLEAN", i.BooleanType()),
    "b": ("TINYINT", i.IntegerType()),
    "c": ("SMALLINT", i.IntegerType()),
    "d": ("INT", i.LongType()),  # widened there
    "e": ("BIGINT", i.LongType()),
    "f": ("FLOAT", i.FloatType()),
    "g": ("DOUBLE", i.DoubleType()),
    "h": ("DECIMAL(10,2)", i.DecimalType(10, 2)),
    "i": ("CHAR(2)", i.StringType()),
    "j": ("STRING", i.StringType()),
    "k": ("BINARY(2)", i.FixedType(2)),
    "l": ("BYTES", i.BinaryType()),
    "m": ("DATE", i.DateType()),
    "n": ("TIME(3)", i.TimeType()),
    "o": ("TIMESTAMP(6)", i.TimestampType()),
    "p": ("TIMESTAMP_LTZ(3)", i.TimestamptzType()),
}
SYSTEM = {
    "__bucket": i.IntegerType(),
    "__offset": i.LongType(),
    "__timestamp": i.TimestamptzType(),
}
TABLE = table_of(schema_of(**{name: text for name, (text, _) in ALL.items()}))


def lake(version=2, **changed):
    kinds = {name: kind for name, (_, kind) in ALL.items()} | SYSTEM | changed
    fields = [
        i.NestedField(number, name, kind)
        for number, (name, kind) in enumerate(kinds.items(), start=1)
        if kind is not None
    ]
    schema = Schema(*fields)
    return SimpleNamespace(metadata=SimpleNamespace(format_version=version), schema=lambda: schema)


def test_fluss_s_own_table_is_let_through():
    check_table(TABLE, lake())
    check_table(TABLE, lake(z=i.StringType()))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"e": None}, "no column 'e'"),
        ({"e": i.StringType()}, "'e' is string, and in Fluss BIGINT"),
        ({"e": i.IntegerType()}, "'e' is int"),
        ({"h": i.DecimalType(10, 3)}, "'h' is decimal"),
        ({"o": i.TimestamptzType()}, "'o' is timestamptz"),
        ({"__offset": None}, "no column '__offset'"),
        ({"__bucket": i.StringType()}, "no column '__bucket'"),
    ],
    ids=str,
)
def test_another_table_of_that_name_is_refused(changed, why):
    with pytest.raises(SchemaMismatchError, match=why) as refused:
        check_table(TABLE, lake(**changed))
    assert "lake='off'" in refused.value.hint


def test_a_later_version_of_iceberg_is_refused():
    with pytest.raises(UnsupportedOperationError, match="version 3"):
        check_table(TABLE, lake(version=3))
