"""Checks by its schema that the table of a lake belongs to a Fluss table.

A catalog may have another table of the same name, and another program may have altered the lake's
table. A mismatch is refused before any file is read.
"""

from __future__ import annotations

from typing import Final

from pyiceberg import types as i
from pyiceberg.table import Table

from fluss.errors import SchemaMismatchError, UnsupportedOperationError
from fluss.lake.lake_format import without_lake
from fluss.model.tables.table_info import TableInfo
from fluss.model.types import data_type as t
from fluss_lake.file_plan import BUCKET, OFFSET, TIMESTAMP

VERSION_MAX: Final = 2
_SYSTEM: Final[dict[str, tuple[type, ...]]] = {
    BUCKET: (i.IntegerType,),
    OFFSET: (i.LongType,),
    TIMESTAMP: (i.TimestamptzType,),
}
_INTEGERS: Final = (i.IntegerType, i.LongType)
_BYTES: Final = (i.BinaryType, i.FixedType)
# The types of Fluss in Iceberg, and those to which a column may have been widened.
_KINDS: Final[dict[type, tuple[type, ...]]] = {
    t.BooleanType: (i.BooleanType,),
    t.TinyIntType: _INTEGERS,
    t.SmallIntType: _INTEGERS,
    t.IntType: _INTEGERS,
    t.BigIntType: (i.LongType,),
    t.FloatType: (i.FloatType,),
    t.DoubleType: (i.DoubleType,),
    t.DecimalType: (i.DecimalType,),
    t.CharType: (i.StringType,),
    t.StringType: (i.StringType,),
    t.BinaryType: _BYTES,
    t.BytesType: _BYTES,
    t.DateType: (i.DateType,),
    t.TimeType: (i.TimeType,),
    t.TimestampType: (i.TimestampType,),
    t.TimestampLtzType: (i.TimestamptzType,),
    t.ArrayType: (i.ListType,),
    t.MapType: (i.MapType,),
    t.RowType: (i.StructType,),
}


def check_table(table: TableInfo, opened: Table) -> None:
    """Refuse a table of a lake that does not belong to a Fluss table.

    Raises:
        UnsupportedOperationError: The table has a version of Iceberg that is not supported.
        SchemaMismatchError: The table has other columns.
    """
    version = opened.metadata.format_version
    if version > VERSION_MAX:
        raise UnsupportedOperationError(
            f"The lake of {table.table_path} is a table of Iceberg's version {version}, and versions "
            f"1 and {VERSION_MAX} are read.",
            hint=without_lake("Fluss makes tables of version 2; this one was upgraded later."),
            version=version,
        )
    found = {each.name: each.field_type for each in opened.schema().fields}
    for name, kinds in _SYSTEM.items():
        if not isinstance(found.get(name), kinds):
            raise _mismatch(
                table, f"it has no column {name!r}, which Fluss adds to each table of its lake"
            )
    for column in table.schema.columns:
        theirs = found.get(column.name)
        if theirs is None:
            raise _mismatch(table, f"it has no column {column.name!r}")
        expected = _KINDS[type(column.data_type)]
        if not isinstance(theirs, expected) or not _same_scale(column.data_type, theirs):
            raise _mismatch(
                table, f"its column {column.name!r} is {theirs}, and in Fluss {column.data_type}"
            )


def check_keys(table: TableInfo) -> None:
    """Refuse to copy rows whose keys a lake would change.

    Fluss's own job truncates them, so that rows of two keys become rows of one.

    Raises:
        UnsupportedOperationError: A column of the primary key has nanoseconds.
    """
    for name in table.primary_keys:
        kind = table.schema.column(name).data_type
        if isinstance(kind, t.TimeFamily) and kind.unit == "ns":
            raise UnsupportedOperationError(
                f"{table.table_path} is not copied into its lake: the column {name!r} of its primary key "
                f"is {kind}, and a lake keeps microseconds, so two keys could become one.",
                hint="a key of 6 digits after the second or fewer can be copied",
                table=str(table.table_path),
                column=name,
            )


def _same_scale(ours: t.DataType, theirs: i.IcebergType) -> bool:
    if isinstance(ours, t.DecimalType) and isinstance(theirs, i.DecimalType):
        return ours.scale == theirs.scale
    return True


def _mismatch(table: TableInfo, why: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"The catalog has a table {table.table_path}, but it is not the lake of this one: {why}.",
        hint=without_lake(
            "It may be another table of that name, it may have been altered in the lake, or the "
            "catalog may belong to another cluster."
        ),
        table=str(table.table_path),
    )
