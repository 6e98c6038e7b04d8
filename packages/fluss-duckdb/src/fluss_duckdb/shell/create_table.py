"""Reads the definition in `CREATE TABLE db.t (...)`, in the dialect of Flink SQL and of DuckDB.

CREATE TABLE shop.orders (id BIGINT NOT NULL, day DATE COMMENT 'UTC', PRIMARY KEY (id, day))
PARTITIONED BY (day) WITH ('bucket.num' = '4', 'table.log.ttl' = '7d')
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from fluss.errors import UnsupportedOperationError
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.type_text import parse_type
from fluss_duckdb.shell.statement_parts import StatementReader

# Types of DuckDB and PostgreSQL that Fluss has under another name.
_SYNONYMS: Final = {
    "VARCHAR": "STRING",
    "TEXT": "STRING",
    "BLOB": "BYTES",
    "BYTEA": "BYTES",
    "BOOL": "BOOLEAN",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "FLOAT4": "FLOAT",
    "REAL": "FLOAT",
    "FLOAT8": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP_LTZ",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
}
_AFTER_TYPE: Final = (
    "NOT",
    "NULL",
    "PRIMARY",
    "COMMENT",
    "DEFAULT",
    "CHECK",
    "UNIQUE",
    "REFERENCES",
    ",",
)
_BUCKETS: Final = "bucket.num"
_BUCKET_KEY: Final = "bucket.key"


@dataclass(slots=True, kw_only=True)
class Definition:
    """The definition of a table."""

    columns: list[Column] = field(default_factory=list)
    primary_key: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    bucket_key: list[str] = field(default_factory=list)
    buckets: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None

    def schema(self) -> Schema:
        """Return its columns and its key; the columns of a key are not NULL."""
        columns = [
            replace(each, data_type=each.data_type.not_null())
            if each.name in self.primary_key
            else each
            for each in self.columns
        ]
        return Schema(columns, self.primary_key or None)


def read_create_table(reader: StatementReader) -> Definition:
    """Read a definition after the name of the table.

    Raises:
        FlussError: It has a part that Fluss does not have.
    """
    made = Definition()
    reader.expect("(")
    _read_column(reader, made)
    while reader.take(","):
        _read_column(reader, made)
    reader.expect(")")
    while not reader.is_at_end:
        _read_clause(reader, made)
    return made


def _read_column(reader: StatementReader, made: Definition) -> None:
    if reader.take("PRIMARY", "KEY"):
        made.primary_key = reader.names_in_parentheses()
        reader.take("NOT", "ENFORCED")
        return
    name = reader.name()
    data_type = parse_type(type_text(reader.until(*_AFTER_TYPE)))
    comment = None
    while reader.peek() not in {",", ")", ""}:
        if reader.take("NOT", "NULL"):
            data_type = data_type.not_null()
        elif reader.take("PRIMARY", "KEY"):
            made.primary_key = [name]
            reader.take("NOT", "ENFORCED")
        elif reader.take("COMMENT"):
            comment = _text(reader)
        elif not reader.take("NULL"):
            raise UnsupportedOperationError(
                f"Columns of Fluss have no {reader.peek()}.", hint="leave it out"
            )
    made.columns.append(Column(name, data_type, comment=comment))


def type_text(text: str) -> str:
    """Return the text of a type in Fluss's words."""
    words = " ".join(text.split())
    name, opening, rest = words.partition("(")
    known = _SYNONYMS.get(name.strip().upper())
    if known is None:
        return words
    is_sized = opening and known not in {"STRING", "BYTES"}
    return f"{known}({rest}" if is_sized else known


def _read_clause(reader: StatementReader, made: Definition) -> None:
    if reader.take("COMMENT"):
        made.comment = _text(reader)
    elif reader.take("PARTITIONED", "BY") or reader.take("PARTITION", "BY"):
        made.partition_by = reader.names_in_parentheses()
    elif reader.take("WITH"):
        reader.expect("(")
        _read_property(reader, made)
        while reader.take(","):
            _read_property(reader, made)
        reader.expect(")")
    else:
        raise reader.unexpected("PARTITIONED BY, WITH, COMMENT or the end")


def _read_property(reader: StatementReader, made: Definition) -> None:
    name = _text(reader)
    reader.expect("=")
    value = _text(reader)
    if name == _BUCKETS:
        made.buckets = int(value)
    elif name == _BUCKET_KEY:
        made.bucket_key = [each.strip() for each in value.split(",")]
    else:
        made.properties[name] = value


def _text(reader: StatementReader) -> str:
    """Read a text in single quotes, or a number."""
    if reader.is_at_end:
        raise reader.unexpected("a text in single quotes")
    token = reader.tokens[reader.at]
    if token.text.startswith("'"):
        reader.at += 1
        return token.text[1:-1].replace("''", "'")
    if token.text.isdecimal():
        reader.at += 1
        return token.text
    raise reader.unexpected("a text in single quotes")
