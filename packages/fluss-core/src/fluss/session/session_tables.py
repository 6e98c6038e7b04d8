"""Tables of a session by the classes of their rows: typed tables, and schemas that are applied.

What differs and what can be changed is decided in `typed.table_changes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fluss.doors import at_door
from fluss.errors import (
    DatabaseNotFoundError,
    FlussError,
    InvalidSchemaError,
    SchemaMismatchError,
    TableNotFoundError,
)
from fluss.hints import Door
from fluss.model.paths import TablePath
from fluss.session.table import Table
from fluss.session.typed_table import TypedTable
from fluss.typed.class_fields import name_of
from fluss.typed.field_types import row_class_of
from fluss.typed.markers import table_options_of
from fluss.typed.table_changes import ClassTable, TableDiff, class_table_of, diff_table

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesDiff:
    """The differences between classes and a cluster; `str` of it is a list of what is to be done.

    Attributes:
        databases: The databases to create.
        tables: What to do for each class, in the order of the classes.
    """

    databases: tuple[str, ...]
    tables: tuple[TableDiff, ...]

    @property
    def is_empty(self) -> bool:
        """Whether all tables are as their classes describe them."""
        return not self.databases and all(each.is_empty for each in self.tables)

    @property
    def impossible(self) -> tuple[TableDiff, ...]:
        """The tables with differences that Fluss cannot remove."""
        return tuple(each for each in self.tables if each.impossible)

    def steps(self) -> list[tuple[str, str, str]]:
        """Each step as texts: the table or database, what is done, and how."""
        created = [(name, "create database", name) for name in self.databases]
        return created + [
            (str(table.path), change, detail)
            for table in self.tables
            for change, detail in table.steps()
        ]

    def __str__(self) -> str:
        return "\n".join(": ".join(each) for each in self.steps()) or "no difference"


@at_door(Door.SESSION)
class SessionTables(ABC):
    """The methods of a `Session` for classes of rows."""

    @abstractmethod
    def table(self, name: TablePath | str | None = None) -> Table: ...

    @abstractmethod
    def path_of(self, name: TablePath | str | None = None) -> TablePath: ...

    @abstractmethod
    def databases(self) -> list[str]: ...

    @abstractmethod
    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None: ...

    @abstractmethod
    def create_table(self, name: TablePath | str, schema: Any) -> Table: ...

    @abstractmethod
    def alter_table(
        self,
        name: TablePath | str,
        *,
        add_columns: Any = None,
        set_properties: Mapping[str, Any] | None = None,
    ) -> Any: ...

    def typed(self, cls: type[Row], name: TablePath | str | None = None) -> TypedTable[Row]:
        """The table of a class; see `Table.typed`.

        Args:
            cls: The class of its rows.
            name: `"database.table"`; by default the name that `fluss.table` gave the class.

        Raises:
            InvalidSchemaError: The class names no table, and no name is given.
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        return self.table(name or table_name_of(cls)).typed(cls)

    def diff_tables(self, classes: Iterable[type]) -> TablesDiff:
        """Compare classes that `fluss.table` named with their tables; nothing is changed.

        Args:
            classes: The classes.

        Raises:
            InvalidSchemaError: A class names no table or contradicts itself, or two classes name
                one table.
        """
        described = _unique(class_table_of(each, self.path_of) for each in classes)
        there = set(self.databases())
        missing = dict.fromkeys(
            each.path.database_name for each in described if each.path.database_name not in there
        )
        diffs = [self._diff(each) for each in described]
        return TablesDiff(databases=tuple(missing), tables=tuple(diffs))

    def apply_tables(self, classes: Iterable[type]) -> TablesDiff:
        """Create and alter tables until they are as their classes describe them.

        Tables are created, columns added at the end, and properties set. Nothing is done if
        something else differs. No table, column or property is removed.

        Args:
            classes: The classes, each named by `fluss.table`.

        Returns:
            What was done.

        Raises:
            SchemaMismatchError: A difference cannot be removed; nothing was changed.
            FlussError: A server refused a change; `done` counts the tables before it.
        """
        diff = self.diff_tables(classes)
        if diff.impossible:
            raise _refused(diff)
        for name in diff.databases:
            self.create_database(name, ignore_if_exists=True)
        for done, table in enumerate(diff.tables):
            try:
                self._apply(table)
            except FlussError as error:
                before = f" after {done} other tables" if done else ""
                error.add_context(during=f"changing {table.path}{before}", done=done)
                raise
        return diff

    def _diff(self, described: ClassTable) -> TableDiff:
        try:
            found = self.table(described.path).info
        except (TableNotFoundError, DatabaseNotFoundError):
            found = None
        return diff_table(described, found)

    def _apply(self, diff: TableDiff) -> None:
        if diff.creates is not None:
            self.create_table(diff.path, diff.creates)
        elif not diff.is_empty:
            self.alter_table(
                diff.path,
                add_columns=diff.add_columns or None,
                set_properties=dict(diff.set_properties),
            )


def table_name_of(cls: type) -> str:
    """Return the name that `fluss.table` gave the table of a class.

    Raises:
        InvalidSchemaError: It gave none.
    """
    name = table_options_of(cls).name
    if name is None:
        row_class_of(cls)  # refuses what is no class of rows
        raise InvalidSchemaError(
            f"{name_of(cls)} does not name its table.",
            hint="Decorate it with @fluss.table('database.table'), or name the table here.",
        )
    return name


def _unique(described: Iterable[ClassTable]) -> Sequence[ClassTable]:
    seen: dict[TablePath, ClassTable] = {}
    for table in described:
        other = seen.setdefault(table.path, table)
        if other is not table:
            raise InvalidSchemaError(
                f"{other.class_name} and {table.class_name} both describe {table.path}.",
                hint="Leave the decorator off one: a class of some columns is used by "
                "session.table(name).typed(cls).",
                table=str(table.path),
            )
    return list(seen.values())


def _refused(diff: TablesDiff) -> SchemaMismatchError:
    texts = [
        f"{table.path}: {each.text} (remedy: {each.remedy})."
        for table in diff.impossible
        for each in table.impossible
    ]
    return SchemaMismatchError(
        f"Fluss cannot make these tables as their classes describe them; nothing was changed. "
        f"{' '.join(texts)}",
        table=str(diff.impossible[0].path),
    )
