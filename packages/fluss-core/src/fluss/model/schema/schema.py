"""`Schema`: the columns of a table and its primary key.

A schema is checked and gets its field ids when it is made, and does not change afterwards. Its JSON
is in `model.schema.schema_json`, its Arrow form in `model.types.type_to_arrow`; further rules for
new tables are in `model.tables.table_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

from fluss.doors import names_arguments
from fluss.errors import InvalidSchemaError
from fluss.model.json_values import Json, json_text, parse_json
from fluss.model.names import check_not_reserved
from fluss.model.schema.column import Column
from fluss.model.schema.field_ids import with_field_ids
from fluss.model.schema.schema_json import schema_from_json, schema_to_json
from fluss.model.schema.schema_rules import (
    SchemaParts,
    check_columns,
    finished,
    names_of,
    no_such_column,
)
from fluss.model.types.data_type import DataField, DataType, RowType
from fluss.model.types.given_types import columns_of
from fluss.model.types.type_text import type_name

if TYPE_CHECKING:
    import pyarrow as pa

    from fluss.model.schema.schema_builder import SchemaBuilder


@names_arguments
@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """The columns of a table and its primary key; immutable.

    Args:
        schema: A `pyarrow.Schema`, another library's that Arrow can import, a mapping from names to
            types, or the columns.
        primary_keys: The names of the columns that identify a row; they become NOT NULL.
        auto_increment_column: The column whose values the server generates.

    Raises:
        InvalidSchemaError: When columns, keys or ids contradict each other.
        UnsupportedTypeError: When Fluss has no type for an Arrow column.

    Example:
        >>> from fluss.model.types.factory import DataTypes
        >>> schema = (
        ...     Schema.builder()
        ...     .column("id", DataTypes.int())
        ...     .column("name", DataTypes.string())
        ...     .primary_key(["id"])
        ...     .build()
        ... )
        >>> schema.get_columns()
        [('id', 'int NOT NULL'), ('name', 'string')]
    """

    columns: tuple[Column, ...]
    primary_keys: tuple[str, ...]
    auto_increment_columns: tuple[str, ...]
    highest_field_id: int
    # Made once: loops over the columns of a table ask for them, and a table may have thousands.
    _names: tuple[str, ...] = field(repr=False, compare=False)
    _types: tuple[DataType, ...] = field(repr=False, compare=False)
    _places: Mapping[str, int] = field(repr=False, compare=False)

    def __init__(
        self,
        schema: pa.Schema | Mapping[str, Any] | Iterable[Any],
        primary_keys: Sequence[str] | None = None,
        auto_increment_column: str | None = None,
    ) -> None:
        columns = columns_of(schema)
        for column in columns:
            check_not_reserved(column.name)
        increments = () if auto_increment_column is None else (auto_increment_column,)
        parts = SchemaParts(
            columns=columns,
            primary_keys=names_of(primary_keys, "primary key"),
            auto_increment_columns=increments,
        )
        _fill(self, parts)

    @staticmethod
    def builder() -> SchemaBuilder:
        """Return a builder: `.column(name, type)`, `.primary_key([...])`, `.build()`."""
        from fluss.model.schema.schema_builder import SchemaBuilder

        return SchemaBuilder()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the schema that Fluss's JSON describes.

        Reserved names are accepted, because older tables may have them.

        Raises:
            CorruptDataError: When the text is not what Fluss writes.
            InvalidSchemaError: When the schema contradicts itself.
        """
        return cls.from_json_object(parse_json(text, "schema"))

    @classmethod
    def from_json_object(cls, value: object) -> Self:
        """Return the schema that a JSON object describes, as `from_json`."""
        made = cls.__new__(cls)
        _fill(made, schema_from_json(value))
        return made

    def to_json(self) -> str:
        """Return the schema in Fluss's JSON."""
        return json_text(self.to_json_object())

    def to_json_object(self) -> Json:
        """Return the schema as the JSON object that Fluss writes."""
        return schema_to_json(self)

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema of the table's data."""
        from fluss.model.types.type_to_arrow import to_arrow_schema

        return to_arrow_schema(self)

    # --- columns -------------------------------------------------------------------------------

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self._names

    @property
    def column_types(self) -> tuple[DataType, ...]:
        """The types of the columns, in order."""
        return self._types

    @property
    def row_type(self) -> RowType:
        """A row of the table, as one type."""
        fields = (
            DataField(each.name, each.data_type, each.comment, field_id=each.column_id)
            for each in self.columns
        )
        return RowType(tuple(fields))

    def column(self, name: str) -> Column:
        """Return the column of this name.

        Raises:
            InvalidSchemaError: When there is none.
        """
        return self.columns[self.column_index(name)]

    def column_index(self, name: str) -> int:
        """Return the position of the column of this name.

        Raises:
            InvalidSchemaError: When there is none.
        """
        index = self._places.get(name)
        if index is None:
            raise no_such_column(name, self._names)
        return index

    def column_indexes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of the columns of these names."""
        return tuple(self.column_index(each) for each in names)

    def with_column(self, column: Column) -> Self:
        """Return the schema with one more column at the end: the one change that Fluss allows.

        The column gets ids above every id ever assigned, so that none is reused.

        Raises:
            InvalidSchemaError: When the column may not be NULL, or its name is taken.
        """
        check_not_reserved(column.name)
        if not column.data_type.nullable:
            raise InvalidSchemaError(
                f"The new column {column.name!r} is NOT NULL, but the rows before it have no value.",
                hint="add it as a type that may be NULL",
                column=column.name,
            )
        check_columns((*self.columns, column))
        plain = replace(column, column_id=None)
        (added,) = with_field_ids((plain,), highest=self.highest_field_id)
        made = type(self).__new__(type(self))
        parts = SchemaParts(
            columns=(*self.columns, added),
            primary_keys=self.primary_keys,
            auto_increment_columns=self.auto_increment_columns,
        )
        _fill(made, parts)
        return made

    # --- keys ----------------------------------------------------------------------------------

    @property
    def primary_key(self) -> tuple[str, ...] | None:
        """The names of the primary key's columns, or None where there is no primary key."""
        return self.primary_keys or None

    @property
    def primary_key_indexes(self) -> tuple[int, ...]:
        """The positions of the primary key's columns, in the key's order."""
        return self.column_indexes(self.primary_keys)

    @property
    def has_primary_key(self) -> bool:
        """Whether rows are identified by a primary key."""
        return bool(self.primary_keys)

    # --- names of the documented API -------------------------------------------------------------

    def get_column_names(self) -> list[str]:
        """Return the names of the columns, in order."""
        return list(self.column_names)

    def get_column_types(self) -> list[str]:
        """Return the types of the columns, in order, as text."""
        return [type_name(each) for each in self.column_types]

    def get_columns(self) -> list[tuple[str, str]]:
        """Return name and type of each column, in order, as text."""
        return list(zip(self.get_column_names(), self.get_column_types(), strict=True))

    def get_primary_keys(self) -> list[str]:
        """Return the names of the primary key's columns; empty where there is no primary key."""
        return list(self.primary_keys)

    def get_auto_increment_columns(self) -> list[str]:
        """Return the names of the columns whose values the server generates."""
        return list(self.auto_increment_columns)

    def __str__(self) -> str:
        return f"Schema: columns={self.get_columns()!r}"

    def __repr__(self) -> str:
        shown = [str(each) for each in self.columns]
        if self.primary_keys:
            shown.append(f"PRIMARY KEY ({', '.join(self.primary_keys)})")
        return f"Schema({', '.join(shown)})"


def _fill(schema: Schema, parts: SchemaParts) -> None:
    done = finished(parts)
    for attribute in fields(done):
        object.__setattr__(schema, attribute.name, getattr(done, attribute.name))
    names = tuple(each.name for each in done.columns)
    object.__setattr__(schema, "_names", names)
    object.__setattr__(schema, "_types", tuple(each.data_type for each in done.columns))
    object.__setattr__(schema, "_places", {name: place for place, name in enumerate(names)})
