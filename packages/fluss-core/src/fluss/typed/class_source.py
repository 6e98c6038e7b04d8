"""The classes of existing tables, as the text of a Python file.

`fluss schema` prints it, and `fluss apply` takes it. Applied to the same tables it changes nothing.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.tables.copied_properties import copied_properties
from fluss.model.tables.table_info import TableInfo
from fluss.model.types import data_type as t
from fluss.model.types.type_text import quoted_text

_HEAD: Final = (
    '"""Tables of Fluss: `fluss diff FILE` compares, `fluss apply FILE` changes them."""\n'
)
_RESERVED: Final = {"Annotated", "Any", "Decimal", "date", "datetime", "fluss", "time"}


def class_source(tables: Iterable[TableInfo]) -> str:
    """Return a Python file with a dataclass for each table, decorated by `fluss.table`."""
    file = _File()
    for table in tables:
        file.add(table)
    return file.text()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Annotation:
    """The Python type of a column, and the type's text where Python's does not imply it."""

    python: str
    declared: str | None = None
    key_is_hashable: bool = True

    def text(self, *, is_nullable: bool, markers: Iterable[str] = ()) -> str:
        """Return the annotation."""
        python = f"{self.python} | None" if is_nullable else self.python
        declared = [] if self.declared is None else [repr(self.declared).replace("'", '"')]
        added = [*declared, *markers]
        return f"Annotated[{python}, {', '.join(added)}]" if added else python


@dataclass(slots=True)
class _File:
    """Collects classes and what they import."""

    imported: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=lambda: set(_RESERVED))
    classes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the file."""
        lines = [_HEAD, *sorted(_IMPORTS[each] for each in {"dataclass", *self.imported})]
        return "\n".join([*lines, "", "import fluss", "", "", "\n\n".join(self.classes)])

    def add(self, table: TableInfo) -> None:
        """Add the class of a table."""
        own = self._class_name(table.table_path.table_name)
        body = self._body(own, table.schema.columns, _markers_of(table))
        decorator = f"@fluss.table({', '.join(_arguments(table))})"
        self.classes.append(f"{decorator}\n@dataclass(kw_only=True)\nclass {own}:\n{body}\n")

    def _body(
        self,
        owner: str,
        columns: Iterable[Column],
        markers: Callable[[Column], list[str]],
    ) -> str:
        taken: set[str] = set()
        lines = []
        for column in columns:
            name = _identifier(column.name, taken)
            renamed = [] if name == column.name else [f"fluss.ColumnName({column.name!r})"]
            noted = [] if column.comment is None else [f"fluss.Comment({column.comment!r})"]
            found = self._annotation(column.data_type, f"{owner}_{name}")
            text = found.text(
                is_nullable=column.data_type.nullable,
                markers=[*markers(column), *renamed, *noted],
            )
            if text.startswith("Annotated"):
                self.imported.add("Annotated")
            lines.append(f"    {name}: {text}{' = None' if column.data_type.nullable else ''}")
        return "\n".join(lines)

    def _annotation(self, data_type: t.DataType, name: str) -> _Annotation:
        match data_type:
            case t.ArrayType():
                return _Annotation(
                    python=f"list[{self._part(data_type.element, name)}]", key_is_hashable=False
                )
            case t.MapType():
                return self._map(data_type, name)
            case t.RowType():
                return self._row(data_type, name)
            case _:
                found = _scalar(data_type)
                if found.imported is not None:
                    self.imported.add(found.imported)
                is_implied = data_type.as_nullable() == found.implied
                declared = None if is_implied else str(data_type.as_nullable())
                if declared is not None:
                    self.imported.add("Annotated")
                return _Annotation(python=found.python, declared=declared)

    def _part(self, data_type: t.DataType, name: str) -> str:
        return self._annotation(data_type, name).text(is_nullable=data_type.nullable)

    def _map(self, data_type: t.MapType, name: str) -> _Annotation:
        key = self._annotation(data_type.key, f"{name}_key")
        if not key.key_is_hashable:  # no key of a dict; its pairs are taken as they are
            self.imported.add("Any")
            declared = quoted_text(data_type.as_nullable())
            return _Annotation(python="Any", declared=declared, key_is_hashable=False)
        value = self._part(data_type.value, f"{name}_value")
        return _Annotation(
            python=f"dict[{key.text(is_nullable=False)}, {value}]", key_is_hashable=False
        )

    def _row(self, data_type: t.RowType, name: str) -> _Annotation:
        own = self._class_name(name)
        columns = [Column(each.name, each.data_type, each.description) for each in data_type.fields]
        body = self._body(own, columns, lambda _: []) or "    pass"
        self.classes.append(f"@dataclass(kw_only=True)\nclass {own}:\n{body}\n")
        return _Annotation(python=own, key_is_hashable=False)

    def _class_name(self, name: str) -> str:
        words = re.findall(r"[A-Za-z0-9]+", name)
        found = "".join(each[:1].upper() + each[1:] for each in words) or "Table"
        return _free(f"T{found}" if found[0].isdigit() else found, self.names)


def _identifier(name: str, taken: set[str]) -> str:
    plain = name if name.isidentifier() else re.sub(r"\W", "_", name, flags=re.ASCII)
    if not plain.isidentifier():
        plain = f"c_{plain}"
    # A name of two underscores is changed by Python within a class, and those of types are used.
    if keyword.iskeyword(plain) or plain.startswith("__") or plain in _SHADOWING:
        plain = f"{plain.lstrip('_') or 'column'}_"
    return _free(plain, taken)


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 2
    while found in taken or keyword.iskeyword(found):
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


# --- tables ---------------------------------------------------------------------------------------


def _markers_of(table: TableInfo) -> Callable[[Column], list[str]]:
    listed = (
        ("fluss.Key", table.primary_keys),
        ("fluss.Partition", table.partition_keys),
        ("fluss.AutoIncrement", table.schema.auto_increment_columns),
    )

    def markers(column: Column) -> list[str]:
        found = [marker for marker, names in listed if column.name in names]
        return found if column.aggregation is None else [*found, _aggregation(column.aggregation)]

    return markers


def _aggregation(function: AggFunction) -> str:
    parameters = "".join(f", {name}={value!r}" for name, value in function.parameters.items())
    return f"fluss.AggFunction.of({function.type.value!r}{parameters})"


def _arguments(table: TableInfo) -> list[str]:
    found = [f'"{table.table_path}"', f"buckets={table.num_buckets}"]
    in_order = [each for each in table.schema.column_names if each in table.primary_keys]
    if tuple(in_order) != table.primary_keys:
        found.append(f"primary_key={list(table.primary_keys)!r}")
    in_order = [each for each in table.schema.column_names if each in table.partition_keys]
    if tuple(in_order) != table.partition_keys:
        found.append(f"partition_by={list(table.partition_keys)!r}")
    if table.bucket_keys and not table.is_default_bucket_key:
        found.append(f"bucket_key={list(table.bucket_keys)!r}")
    if table.comment is not None:
        found.append(f"comment={table.comment!r}")
    # A secret is neither shown nor written into a program.
    properties = copied_properties(table).properties
    if properties:
        found.append(f"properties={properties!r}")
    return found


# --- types ----------------------------------------------------------------------------------------

_IMPORTS: Final[Mapping[str, str]] = {
    "dataclass": "from dataclasses import dataclass",
    "Annotated": "from typing import Annotated",
    "Any": "from typing import Any",
    "Decimal": "from decimal import Decimal",
    "date": "from datetime import date",
    "datetime": "from datetime import datetime",
    "time": "from datetime import time",
}
# Fields of these names would hide the types of the fields after them.
_SHADOWING: Final = frozenset(
    {"bool", "bytes", "dict", "float", "int", "list", "str", *_IMPORTS, "fluss"}
)


@dataclass(frozen=True, slots=True)
class _Scalar:
    """The Python type of a column, the type that Python's implies, and what is imported for it."""

    python: str
    implied: t.DataType | None = None
    imported: str | None = None


def _scalar(data_type: t.DataType) -> _Scalar:
    """Return the Python type of a type without parts; any, where Python has none of its own."""
    match data_type:
        case t.BooleanType():
            return _Scalar("bool", t.BooleanType())
        case t.IntegerFamily():
            return _Scalar("int", t.BigIntType())
        case t.FloatFamily():
            return _Scalar("float", t.DoubleType())
        case t.TextFamily():
            return _Scalar("str", t.StringType())
        case t.BinaryFamily():
            return _Scalar("bytes", t.BytesType())
        case t.DecimalType():
            return _Scalar("Decimal", None, "Decimal")
        case t.DateType():
            return _Scalar("date", t.DateType(), "date")
        case t.TimeType():
            return _Scalar("time", t.TimeType(6), "time")
        case t.TimestampFamily():
            return _Scalar("datetime", t.TimestampType(6), "datetime")
        case _:
            return _Scalar("Any", None, "Any")
