"""Compares the tables that classes describe with those that exist, and plans what to change.

Fluss adds columns at the end of a table and sets properties. Whatever else differs is listed with
what would be necessary. Inside of a column's type NULL is not compared (`typed.field_types`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from fluss.errors import InvalidSchemaError
from fluss.model.options.secrets import shown_value
from fluss.model.paths import TablePath
from fluss.model.schema.column import Column
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import ALTERABLE, TableOptions
from fluss.model.types import data_type as t
from fluss.typed.class_schema import descriptor_of
from fluss.typed.field_types import row_class_of
from fluss.typed.markers import BucketKey, table_options_of

_COPY: Final = "create a table under another name, and copy the rows"
_LAKE: Final = "table.datalake."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTable:
    """The table that a class describes.

    Attributes:
        path: Its name.
        class_name: The class.
        descriptor: The table as the class describes it.
        required: Columns of fields that have no value for NULL.
        names_bucket_key: Whether the class chooses the bucket key.
    """

    path: TablePath
    class_name: str
    descriptor: TableDescriptor
    required: frozenset[str]
    names_bucket_key: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """A difference that Fluss cannot remove.

    Attributes:
        text: What differs.
        remedy: What would be necessary.
    """

    text: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDiff:
    """The differences between a class and its table.

    Attributes:
        path: The table.
        class_name: The class.
        creates: The table to create; None where there is one.
        add_columns: The columns to add.
        set_properties: The properties to set.
        impossible: What else differs.
    """

    path: TablePath
    class_name: str
    creates: TableDescriptor | None = None
    add_columns: tuple[Column, ...] = ()
    set_properties: tuple[tuple[str, str], ...] = ()
    impossible: tuple[Impossible, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the table is as its class describes it."""
        return not (self.creates or self.add_columns or self.set_properties or self.impossible)

    def steps(self) -> Iterator[tuple[str, str]]:
        """What is changed, and how, as texts; last what cannot be changed."""
        if self.creates is not None:
            yield "create table", _table_text(self.creates)
        for column in self.add_columns:
            yield "add column", str(column)
        for key, value in self.set_properties:
            yield "set property", f"{key} = {shown_value(key, value)}"
        for change in self.impossible:
            yield "impossible", f"{change.text}: {change.remedy}"

    def __str__(self) -> str:
        lines = [f"{self.path}: {change}: {detail}" for change, detail in self.steps()]
        return "\n".join(lines) or f"{self.path}: no difference"


def class_table_of(cls: type, path_of: Callable[[str], TablePath]) -> ClassTable:
    """Return the table that a class describes.

    Args:
        cls: The class.
        path_of: Gives the path of the table's name.

    Raises:
        InvalidSchemaError: The class names no table, or contradicts itself.
    """
    row, options = row_class_of(cls), table_options_of(cls)
    if options.name is None:
        raise InvalidSchemaError(
            f"{row.name} does not name its table.",
            hint="Decorate it with @fluss.table, which takes the name of the table.",
        )
    return ClassTable(
        path=path_of(options.name),
        class_name=row.name,
        descriptor=descriptor_of(cls),
        required=frozenset(each.column for each in row.fields if not each.takes_null),
        names_bucket_key=options.bucket_key is not None
        or any(each.type.has(BucketKey) for each in row.fields),
    )


def diff_table(described: ClassTable, found: TableInfo | None) -> TableDiff:
    """Return the differences between what a class describes and the table that was found."""
    path, name = described.path, described.class_name
    if found is None:
        return TableDiff(path=path, class_name=name, creates=described.descriptor)
    new = [
        each
        for each in described.descriptor.schema.columns
        if each.name not in found.schema.column_names
    ]
    added = tuple(replace(each, column_id=None) for each in new if each.data_type.nullable)
    return TableDiff(
        path=path,
        class_name=name,
        add_columns=added,
        set_properties=tuple(
            (key, value) for key, value in _other_properties(described, found) if _is_settable(key)
        ),
        impossible=(
            *_of_keys(described, found),
            *(_not_nullable(each) for each in new if not each.data_type.nullable),
            *_of_columns(described, found),
            *(
                _fixed_property(key, value, found)
                for key, value in _other_properties(described, found)
                if not _is_settable(key)
            ),
        ),
    )


# --- keys, buckets, partitions --------------------------------------------------------------------


def _of_keys(described: ClassTable, found: TableInfo) -> Iterator[Impossible]:
    table = described.descriptor
    own, counted = table.schema, found.schema.auto_increment_columns
    keys = [
        ("primary key", own.primary_keys, found.primary_keys),
        ("partition key", table.partition_keys, found.partition_keys),
        ("auto-increment column", own.auto_increment_columns, counted),
    ]
    if described.names_bucket_key:
        keys.append(("bucket key", table.bucket_keys, found.bucket_keys))
    for what, given, has in keys:
        if set(given) != set(has):
            text = f"the {what} is {_names(has)}, and the class has {_names(given)}"
            yield Impossible(text=text, remedy=_COPY)
    count = table.bucket_count
    if count is not None and count != found.num_buckets:
        text = f"the table has {found.num_buckets} buckets, and the class {count}"
        yield Impossible(text=text, remedy=_COPY)


def _names(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})" if names else "none"


# --- columns --------------------------------------------------------------------------------------


def _not_nullable(column: Column) -> Impossible:
    return Impossible(
        text=f"the new column {column.name} is {column.data_type}, and the rows that there are "
        "have no value for it",
        remedy="give the field a default, or let it take None",
    )


def _of_columns(described: ClassTable, found: TableInfo) -> Iterator[Impossible]:
    own = {each.name: each for each in described.descriptor.schema.columns}
    for column in found.schema.columns:
        if column.name not in own:
            yield Impossible(
                text=f"the column {column.name} has no field, and columns are neither dropped nor "
                "renamed",
                remedy="add a field for it; one of another name has Annotated[..., "
                f"fluss.ColumnName({column.name!r})]",
            )
    for column in found.schema.columns:
        if column.name in own:
            yield from _of_column(own[column.name], column, described)


def _of_column(own: Column, found: Column, described: ClassTable) -> Iterator[Impossible]:
    given, has = _bare(own.data_type), _bare(found.data_type)
    if given.not_null() != has.not_null():
        yield Impossible(
            text=f"the column {own.name} is {has.as_nullable()}, and the class has "
            f"{given.as_nullable()}",
            remedy=f"declare the field as the column is, or {_COPY}",
        )
    elif own.aggregation != found.aggregation:
        yield Impossible(
            text=f"the column {own.name} has the aggregation {found.aggregation or 'none'}, and the "
            f"class {own.aggregation or 'none'}",
            remedy=_COPY,
        )
    elif given.nullable and not has.nullable:
        yield Impossible(
            text=f"the column {own.name} is NOT NULL, and the field takes None or has a default",
            remedy=f"declare the field without both, or {_COPY}",
        )
    elif has.nullable and own.name in described.required:
        yield Impossible(
            text=f"the column {own.name} may be NULL, and the field has no value for NULL",
            remedy="give the field a default, or let it take None",
        )


def _bare(data_type: t.DataType) -> t.DataType:
    """Return a type without what is not compared: ids, descriptions, and NULL in its parts."""
    match data_type:
        case t.ArrayType():
            return replace(data_type, element=_bare(data_type.element).as_nullable())
        case t.MapType():
            value = _bare(data_type.value).as_nullable()
            return replace(data_type, key=_bare(data_type.key), value=value)
        case t.RowType():
            fields = (
                t.DataField(each.name, _bare(each.data_type).as_nullable())
                for each in data_type.fields
            )
            return replace(data_type, fields=tuple(fields))
        case _:
            return data_type


# --- properties -----------------------------------------------------------------------------------


def _other_properties(described: ClassTable, found: TableInfo) -> list[tuple[str, str]]:
    has = {**found.custom_properties, **found.properties}
    given = {**described.descriptor.custom_properties, **described.descriptor.properties}
    return [(key, value) for key, value in given.items() if has.get(key) != value]


def _is_settable(key: str) -> bool:
    """Return whether a property may be set; servers judge those that are not known here."""
    return key in ALTERABLE or key not in TableOptions.OPTIONS or key.startswith(_LAKE)


def _fixed_property(key: str, value: str, found: TableInfo) -> Impossible:
    has = found.properties.get(key)
    shown = "is not set" if has is None else f"is {shown_value(key, has)}"
    return Impossible(
        text=f"the property {key} {shown}, and the class has {shown_value(key, value)}",
        remedy=f"it is fixed when a table is created; {_COPY}",
    )


def _table_text(table: TableDescriptor) -> str:
    parts = [str(each) for each in table.schema.columns]
    if table.schema.primary_keys:
        parts.append(f"PRIMARY KEY ({', '.join(table.schema.primary_keys)})")
    if table.partition_keys:
        parts.append(f"PARTITIONED BY ({', '.join(table.partition_keys)})")
    if table.bucket_count is not None:
        parts.append(f"{table.bucket_count} buckets")
    return ", ".join(parts)
