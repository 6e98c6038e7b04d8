"""Carries out statements about tables of Fluss that DuckDB cannot run, through the session.

INSERT appends to a log and upserts into a table with a primary key; DELETE and UPDATE first read
the keys that their condition finds, then write. All of them stream. What cannot be done exactly is
refused with one sentence that says how it is done. A statement about another table is DuckDB's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from fluss.errors import InvalidValueError, TableNotFoundError, UnsupportedOperationError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.tables.copied_properties import copied_properties
from fluss.session import Session, Table
from fluss_duckdb.call_finder import quoted
from fluss_duckdb.duckdb_connection import Connection
from fluss_duckdb.query_writer import BATCH_ROWS, append, upsert
from fluss_duckdb.shell.create_table import read_create_table, type_text
from fluss_duckdb.shell.statement_parts import (
    Change,
    Insert,
    StatementReader,
    TargetName,
    read_delete,
    read_insert,
    read_update,
)
from fluss_duckdb.shell.table_names import TableNames

_INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_FRACTIONS: Final = ("DECIMAL", "FLOAT", "DOUBLE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a statement gives: rows, or a sentence about what was done.

    Args:
        rows: A relation of DuckDB, or a table of Arrow.
        message: The sentence.
    """

    rows: Any = None
    message: str | None = None


def counted(rows: int) -> str:
    """Return a number of rows as text."""
    return f"{rows:,} row" if rows == 1 else f"{rows:,} rows"


class FlussStatements:
    """Runs the statements of one shell.

    Args:
        connection: The connection, for queries.
        names: The names of databases and tables.
    """

    def __init__(self, connection: Connection, names: TableNames) -> None:
        self._connection = connection
        self._names = names
        self._verbs: dict[str, Callable[[StatementReader], Result | None]] = {
            "SHOW": self._show,
            "USE": self._use,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "INSERT": self._insert,
            "REPLACE": self._insert,
            "DELETE": self._delete,
            "UPDATE": self._update,
            "CREATE": self._create,
            "DROP": self._drop,
            "ALTER": self._alter,
            "TRUNCATE": self._truncate,
            "MERGE": self._merge,
        }

    @property
    def _session(self) -> Session:
        return self._connection.session

    def run(self, sql: str) -> Result | None:
        """Run a statement; None if it is DuckDB's.

        Raises:
            FlussError: It cannot be carried out.
        """
        reader = StatementReader(sql)
        verb = self._verbs.get(reader.peek())
        if verb is None:
            return None
        reader.at += 1
        return verb(reader)

    def path_of(self, target: TargetName) -> str | None:
        """Return `database.table` of a name if it is in Fluss; None if it is DuckDB's."""
        parts = target.parts
        if target.is_call:
            return str(self._session.path_of(".".join(parts)))
        if len(parts) == 3 and parts[0].lower() == self._connection.catalog.lower():  # noqa: PLR2004
            return ".".join(parts[1:])
        if len(parts) == 2:  # noqa: PLR2004 - database, table
            databases = {each.lower(): each for each in self._names.databases()}
            found = databases.get(parts[0].lower())
            return None if found is None else f"{found}.{parts[1]}"
        if len(parts) == 1 and self._names.database is not None:
            return f"{self._names.database}.{parts[0]}"
        return None

    def _table_of(self, target: TargetName) -> Table | None:
        path = self.path_of(target)
        if path is None:
            return None
        try:
            return self._session.table(path)
        except TableNotFoundError:
            if len(target.parts) == 1 and self._is_in_duckdb(target.parts[0]):
                return None
            raise

    def _table_after(self, reader: StatementReader, word: str | None = None) -> Table | None:
        """Return the table that a statement changes, without reading the statement."""
        begin = reader.at
        if word is not None:
            reader.until(word)
            if not reader.take(word):
                reader.at = begin
                return None
        table = self._table_of(reader.target())
        reader.at = begin
        return table

    def _is_in_duckdb(self, name: str) -> bool:
        found = self._connection.plain.execute(
            "SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower(?)", [name]
        ).fetchall()
        return bool(found)

    # --- SHOW, USE, DESCRIBE ------------------------------------------------------------------

    def _show(self, reader: StatementReader) -> Result | None:
        if reader.take("DATABASES") or reader.take("SCHEMAS"):
            if not reader.is_at_end:
                return None
            self._names.forget()
            return Result(rows=pa.table({"database": self._names.databases()}))
        if reader.take("CREATE", "TABLE"):
            return self._show_create(reader)
        if not reader.take("TABLES"):
            return None
        database = self._names.database
        if reader.take("FROM") or reader.take("IN"):
            database = reader.name()
        if not reader.is_at_end:
            return None
        return Result(rows=self._tables(database))

    def _tables(self, database: str | None) -> pa.Table:
        if database is not None:
            return pa.table({"table": pa.array(self._session.tables(database), pa.string())})
        self._names.forget()
        pairs = [each.split(".", 1) for each in self._names.all_tables()]
        return pa.table(
            {
                "database": pa.array([each[0] for each in pairs], pa.string()),
                "table": pa.array([each[1] for each in pairs], pa.string()),
            }
        )

    def _show_create(self, reader: StatementReader) -> Result | None:
        table = self._table_of(reader.target())
        return None if table is None else Result(rows=pa.table({"statement": [create_sql(table)]}))

    def _use(self, reader: StatementReader) -> Result | None:
        target = reader.target()
        if not reader.is_at_end:
            return None
        name = target.parts[-1]
        if len(target.parts) > 2 or (  # noqa: PLR2004 - catalog, database
            len(target.parts) == 2  # noqa: PLR2004
            and target.parts[0].lower() != self._connection.catalog.lower()
        ):
            return None
        self._names.forget()
        databases = {each.lower(): each for each in self._names.databases()}
        found = databases.get(name.lower())
        if found is None:
            if len(target.parts) == 1 and self._is_duckdb_schema(name):
                self._names.database = None
                return None
            raise InvalidValueError(
                f"There is no database {name!r}.", hint=did_you_mean(name, databases.values())
            )
        self._names.database = found
        return Result(message=f"Using the database {found}.")

    def _is_duckdb_schema(self, name: str) -> bool:
        found = self._connection.plain.execute(
            "SELECT 1 FROM duckdb_schemas() WHERE lower(?) IN (lower(schema_name), "
            "lower(database_name)) AND lower(database_name) <> lower(?)",
            [name, self._connection.catalog],
        ).fetchall()
        return bool(found)

    def _describe(self, reader: StatementReader) -> Result | None:
        if reader.peek() in {"SELECT", "FROM", "WITH", "VALUES", "("}:
            return None
        reader.take("TABLE")
        target = reader.target()
        table = self._table_of(target) if reader.is_at_end else None
        return None if table is None else Result(rows=described(table))

    # --- INSERT, DELETE, UPDATE ---------------------------------------------------------------

    def _insert(self, reader: StatementReader) -> Result | None:
        table = self._table_after(reader, "INTO")
        if table is None:
            return None
        insert = read_insert(reader)
        rows = self._insertable(insert, table)
        write = upsert if table.primary_key else append
        count = write(table.name, rows, session=self._session).rows
        if not table.primary_key:
            return Result(message=f"{counted(count)} appended to {table.name}.")
        return Result(message=f"{counted(count)} upserted into {table.name}.")

    def _insertable(self, insert: Insert, table: Table) -> Any:
        """Return the rows with the names and types of the table's columns."""
        rows = self._connection.sql(insert.query)
        given = list(rows.columns)
        counted = set(table.fluss_schema.auto_increment_columns)
        if insert.by_name:
            targets = given
        elif insert.columns is not None:
            targets = insert.columns
        else:
            targets = [each for each in table.schema.names if each not in counted]
        if len(targets) != len(given):
            raise InvalidValueError(
                f"The query gives {len(given)} columns, and {len(targets)} are expected: "
                f"{', '.join(targets)}.",
                hint="name the columns: INSERT INTO table (a, b) ...",
            )
        own = {each.lower(): each for each in table.schema.names}
        for name in targets:
            if name.lower() not in own:
                raise InvalidValueError(
                    f"There is no column {name!r} in {table.name}.",
                    hint=did_you_mean(name, table.schema.names),
                )
        if len({each.lower() for each in targets}) != len(targets):
            raise InvalidValueError("The INSERT names a column twice.")
        kinds = self._types_of(table)
        # DuckDB's errors of casts name the column that is cast.
        named_rows = rows.project(
            ", ".join(
                f"#{place} AS {quoted(own[name.lower()])}" for place, name in enumerate(targets, 1)
            )
        )
        values = [
            f"{_assigned(f'#{place}', kind, kinds[own[name.lower()]], name)} "
            f"AS {quoted(own[name.lower()])}"
            for place, (name, kind) in enumerate(zip(targets, rows.types, strict=True), 1)
        ]
        named = {each.lower() for each in targets}
        values += [
            f"CAST(NULL AS {kinds[name]}) AS {quoted(name)}"
            for name in table.schema.names
            if name.lower() not in named and name not in counted
        ]
        return named_rows.project(", ".join(values))

    def _types_of(self, table: Table) -> dict[str, str]:
        """Return the types that DuckDB has for the columns of a table."""
        relation = self._connection.fluss(table.name)
        return dict(zip(relation.columns, map(str, relation.types), strict=True))

    def _delete(self, reader: StatementReader) -> Result | None:
        table = self._table_after(reader, "FROM")
        if table is None:
            return None
        change = read_delete(reader)
        if not table.primary_key:
            raise _no_key(table, "DELETE")
        keys = ", ".join(map(quoted, table.primary_key))
        count = self._written(self._selected(change, table, keys), table.delete)
        return Result(message=f"{counted(count)} deleted from {table.name}.")

    def _update(self, reader: StatementReader) -> Result | None:
        table = self._table_after(reader)
        if table is None:
            return None
        change = read_update(reader)
        if not table.primary_key:
            raise _no_key(table, "UPDATE")
        kinds = self._types_of(table)
        own = {each.lower(): each for each in table.schema.names}
        values = []
        for name, expression in change.values.items():
            column = own.get(name.lower())
            if column is None:
                raise InvalidValueError(
                    f"There is no column {name!r} in {table.name}.",
                    hint=did_you_mean(name, table.schema.names),
                )
            if column in table.primary_key:
                raise UnsupportedOperationError(
                    f"{column!r} is part of the primary key of {table.name}, and a key does not "
                    "change.",
                    hint="INSERT the rows with their new keys, then DELETE the old ones",
                )
            values.append(f"CAST(({expression}) AS {kinds[column]}) AS {quoted(column)}")
        keys = ", ".join(map(quoted, table.primary_key))
        selected = self._selected(change, table, f"{keys}, {', '.join(values)}")
        columns = [own[each.lower()] for each in change.values]
        count = self._written(
            selected, lambda rows: table.update(rows, columns=[*table.primary_key, *columns])
        )
        return Result(message=f"{counted(count)} updated in {table.name}.")

    def _selected(self, change: Change, table: Table, columns: str) -> Any:
        alias = quoted(change.alias or table.name.partition(".")[2])
        where = "" if change.where is None else f" WHERE {change.where}"
        source = f"fluss('{table.name}') AS {alias}"
        return self._connection.sql(f"SELECT {columns} FROM {source}{where}")  # noqa: S608 - the user's SQL

    def _written(self, rows: Any, write: Callable[[Any], Any]) -> int:
        """Write rows while they are read: the scan is pinned, and sees none of them."""
        with rows.streamed(BATCH_ROWS) as reader:
            return int(write(reader).rows)

    def _truncate(self, reader: StatementReader) -> Result | None:
        reader.take("TABLE")
        table = self._table_of(reader.target())
        if table is None:
            return None
        raise UnsupportedOperationError(
            f"Fluss does not truncate tables; {table.name} stays as it is.",
            hint="DELETE FROM deletes all rows of a table with a primary key; DROP TABLE drops it",
        )

    def _merge(self, reader: StatementReader) -> Result | None:
        reader.expect("INTO")
        table = self._table_of(reader.target())
        if table is None:
            return None
        raise UnsupportedOperationError(
            f"{table.name} is not written with MERGE.",
            hint="INSERT INTO replaces rows with the same key; UPDATE and DELETE take a condition",
        )

    # --- CREATE, DROP, ALTER ------------------------------------------------------------------

    def _create(self, reader: StatementReader) -> Result | None:
        if reader.take("DATABASE") or reader.take("SCHEMA"):
            ignore = reader.take("IF", "NOT", "EXISTS")
            name = reader.name()
            if not reader.is_at_end:
                return None
            self._session.create_database(name, ignore_if_exists=ignore)
            self._names.forget()
            return Result(message=f"Created the database {name}.")
        if not reader.take("TABLE"):
            return None
        ignore = reader.take("IF", "NOT", "EXISTS")
        path = self.path_of(reader.target())
        if path is None:
            return None
        self._names.forget()
        if reader.take("AS"):
            rows = self._connection.sql(reader.text())
            count = append(path, rows, session=self._session, create=True).rows
            return Result(message=f"{counted(count)} appended to {path}, which is new.")
        definition = read_create_table(reader)
        table = self._session.create_table(
            path,
            definition.schema(),
            partition_by=definition.partition_by or None,
            bucket_key=definition.bucket_key or None,
            buckets=definition.buckets,
            properties=definition.properties or None,
            comment=definition.comment,
            ignore_if_exists=ignore,
        )
        return Result(message=f"Created the table {table.name}.")

    def _drop(self, reader: StatementReader) -> Result | None:
        is_database = reader.take("DATABASE") or reader.take("SCHEMA")
        if not is_database and not reader.take("TABLE"):
            return None
        ignore = reader.take("IF", "EXISTS")
        target = reader.target()
        cascade = reader.take("CASCADE")
        reader.take("RESTRICT")
        if is_database:
            name = target.parts[-1]
            self._session.drop_database(name, ignore_if_not_exists=ignore, cascade=cascade)
            self._names.database = None if self._names.database == name else self._names.database
            self._names.forget()
            return Result(message=f"Dropped the database {name}.")
        path = self.path_of(target)
        if path is None or (len(target.parts) == 1 and self._is_in_duckdb(target.parts[0])):
            return None
        self._session.drop_table(path, ignore_if_not_exists=ignore)
        self._names.forget()
        return Result(message=f"Dropped the table {path}.")

    def _alter(self, reader: StatementReader) -> Result | None:
        if not reader.take("TABLE"):
            return None
        table = self._table_of(reader.target())
        if table is None:
            return None
        if reader.take("ADD"):
            reader.take("COLUMN")
            name, kind = reader.name(), type_text(reader.text())
            self._session.alter_table(table.name, add_columns={name: kind})
            self._names.forget()
            return Result(message=f"Added the column {name} to {table.name}.")
        raise UnsupportedOperationError(
            f"{table.name} is not altered this way: Fluss adds columns, and sets properties.",
            hint=f"ALTER TABLE {table.name} ADD COLUMN name TYPE; `fluss alter` sets properties",
        )


def described(table: Table) -> pa.Table:
    """Return the columns of a table as rows."""
    info = table.info
    columns = info.schema.columns
    return pa.table(
        {
            "column": [each.name for each in columns],
            "type": [str(each.data_type.as_nullable()) for each in columns],
            "nullable": [each.data_type.nullable for each in columns],
            "key": pa.array([_roles(each.name, table) or None for each in columns], pa.string()),
            "comment": pa.array([each.comment or None for each in columns], pa.string()),
        }
    )


def create_sql(table: Table) -> str:
    """Return the statement that creates a table like this one, without its secrets."""
    info = table.info
    lines = [f"    {quoted(each.name)} {each.data_type}" for each in info.schema.columns]
    if table.primary_key:
        lines.append(f"    PRIMARY KEY ({', '.join(map(quoted, table.primary_key))})")
    text = f"CREATE TABLE {table.name} (\n" + ",\n".join(lines) + "\n)"
    if table.partition_by:
        text += f" PARTITIONED BY ({', '.join(map(quoted, table.partition_by))})"
    properties = {"bucket.num": str(table.buckets), **copied_properties(info).properties}
    pairs = (f"    {_text(name)} = {_text(value)}" for name, value in properties.items())
    return f"{text} WITH (\n" + ",\n".join(pairs) + "\n)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _roles(name: str, table: Table) -> str:
    info = table.info
    roles = {
        "primary key": table.primary_key,
        "partition": table.partition_by,
        "bucket": () if table.primary_key else info.bucket_keys,
        "counted": info.schema.auto_increment_columns,
    }
    return ", ".join(role for role, names in roles.items() if name in names)


def _assigned(place: str, given: Any, target: str, name: str) -> str:
    """Return the SQL of a value for a column, cast as INSERT does where the value stays the same.

    A fraction that an integer or a DECIMAL cannot hold is an error. A time without a zone for one
    with a zone, or the reverse, is left as it is: the write refuses it.
    """
    kind = str(given).upper()
    if kind.startswith("TIMESTAMP") and target.startswith("TIMESTAMP"):
        is_other_zone = ("TIME ZONE" in kind) != ("TIME ZONE" in target)
        return place if is_other_zone else f"CAST({place} AS {target})"
    is_exact = target in _INTEGERS or target.startswith("DECIMAL")
    if not (is_exact and kind.startswith(_FRACTIONS)):
        return f"CAST({place} AS {target})"
    refused = _text(f" does not fit the column {name} ({target})")
    return (
        f"CASE WHEN CAST(CAST({place} AS {target}) AS {kind}) IS DISTINCT FROM {place} "
        f"THEN error(CAST({place} AS VARCHAR) || {refused}) ELSE CAST({place} AS {target}) END"
    )


def _no_key(table: Table, verb: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{table.name} is a log: rows are appended, and never changed, so {verb} has no meaning.",
        hint="a table with a PRIMARY KEY takes UPDATE and DELETE; logs lose old rows by table.log.ttl",
    )
