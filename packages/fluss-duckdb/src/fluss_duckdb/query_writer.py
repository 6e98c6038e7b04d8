"""Writes the rows of a query to Fluss: `append` and `upsert`.

DuckDB cannot insert into a view, so writing is a function and not a statement. The rows are
streamed: only the batches that DuckDB and the writer hold are in memory.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Unpack

import duckdb
import pyarrow as pa

import fluss
from fluss.doors import at_door
from fluss.errors import SchemaMismatchError, TableNotFoundError, UnsupportedTypeError
from fluss.hints import Door, Hint, HintKey
from fluss.model.options.config import Config
from fluss.model.values.time_zones import lacks_zone
from fluss.scan import Progress
from fluss.session import NewTable, Session
from fluss.write.write_tally import WriteReport
from fluss_duckdb.proxy import Relation

BATCH_ROWS = 64 * 1024


@at_door(Door.DUCKDB)
def append(
    table: str,
    rows: Any,
    *,
    url: str | None = None,
    config: Config | Mapping[str, Any] | None = None,
    session: Session | None = None,
    create: bool = False,
    progress: Progress = None,
    **how: Unpack[NewTable],
) -> WriteReport:
    """Append the rows of a relation to a log table, and wait until the servers have them.

    Args:
        table: `"database.table"`.
        rows: A relation of DuckDB, or anything tabular.
        url: The cluster; by default that of the relation's connection.
        config: Settings of the cluster, in place of a URL or in addition to it.
        session: A session to use instead.
        create: Whether the table is created if it does not exist.
        progress: Whether a bar is shown during a long write; by default in terminals and notebooks.
        **how: With `create`, what `Session.create_table` takes: primary_key, partition_by,
            bucket_key, buckets, auto_increment, properties, comment.

    Returns:
        How many rows there were, and the last offset of each bucket.

    Example:
        >>> append("fluss.copy", con.sql("FROM fluss('fluss.events')"))  # doctest: +SKIP
    """
    return _written(
        "append", table, rows, url, config, session, {"create": create, "progress": progress, **how}
    )


@at_door(Door.DUCKDB)
def upsert(
    table: str,
    rows: Any,
    *,
    url: str | None = None,
    config: Config | Mapping[str, Any] | None = None,
    session: Session | None = None,
    create: bool = False,
    progress: Progress = None,
    **how: Unpack[NewTable],
) -> WriteReport:
    """Insert the rows of a relation, or replace those with the same keys; see `append`.

    Rows with a column `_change_type` are applied as a changelog.
    """
    return _written(
        "upsert", table, rows, url, config, session, {"create": create, "progress": progress, **how}
    )


def _written(
    verb: str,
    table: str,
    rows: Any,
    url: str | None,
    config: Config | Mapping[str, Any] | None,
    session: Session | None,
    how: Mapping[str, Any],
) -> WriteReport:
    known = session
    if known is None and url is None and config is None:
        known = _session_of(rows)
    with contextlib.ExitStack() as stack:
        to = known or stack.enter_context(fluss.connect(url, config=config))
        stream = stack.enter_context(_stream(rows))
        if isinstance(rows, duckdb.DuckDBPyRelation):
            _check_zones(to, table, stream.schema)
        report: WriteReport = getattr(to, verb)(table, stream, **how)
        return report


def _check_zones(session: Session, name: str, given: pa.Schema) -> None:
    """Refuse times without a zone for columns with one; DuckDB's TimeZone decides in a cast.

    Raises:
        SchemaMismatchError: A column has no zone; the hint is the cast in DuckDB.
    """
    try:
        schema = session.table(name).schema
    except TableNotFoundError:
        return  # the write creates the table, or reports that it is missing
    for field in given:
        if field.name in schema.names and lacks_zone(field.type, schema.field(field.name).type):
            raise SchemaMismatchError(
                f"The column {field.name!r} of {session.path_of(name)} holds moments, and the "
                f"query gives {field.type}, without a zone.",
                hint=Hint(HintKey.GIVE_ZONE, column=field.name),
                column=field.name,
            )


def _session_of(rows: Any) -> Session | None:
    if type(rows) is not Relation:
        return None
    found: Session | None = rows.fluss_session
    return found


@contextlib.contextmanager
def _stream(rows: Any) -> Iterator[Any]:
    if isinstance(rows, duckdb.DuckDBPyRelation):  # also true of our Relation
        rows = _exportable(rows)
    if type(rows) is Relation:
        with rows.streamed(BATCH_ROWS) as reader:
            yield reader
    elif isinstance(rows, duckdb.DuckDBPyRelation):
        # A stream that is not read to its end would keep DuckDB's connection to itself.
        with rows.to_arrow_reader(BATCH_ROWS) as reader:
            yield reader
    else:
        yield rows


# DuckDB exports these types to Arrow as inner bytes, or as times without their zone.
_NOT_EXPORTED: Final = ("bit", "bignum", "time with time zone")
_UNSIGNED: Final = "uhugeint"


def _exportable(rows: Any) -> Any:
    """Return the relation with columns that DuckDB exports to Arrow without loss.

    DuckDB exports a UHUGEINT of more than 127 bits as a negative number; the cast to HUGEINT
    refuses such a number.

    Raises:
        UnsupportedTypeError: A column has a type that DuckDB does not export.
    """
    replaced = []
    for name, kind in zip(rows.columns, rows.types, strict=True):
        inner = set(_kinds(kind))
        for unknown in _NOT_EXPORTED:
            if unknown in inner:
                raise UnsupportedTypeError(
                    f"The column {name!r} is {kind}, which DuckDB does not export to Arrow.",
                    hint=f"Cast it in the query: CAST({_quoted(name)} AS VARCHAR).",
                    column=name,
                )
        if _UNSIGNED in inner:
            signed = re.sub(r"\bUHUGEINT\b", "HUGEINT", str(kind))
            replaced.append(f"CAST({_quoted(name)} AS {signed}) AS {_quoted(name)}")
    if not replaced:
        return rows
    return rows.project(f"* REPLACE ({', '.join(replaced)})")


def _kinds(kind: Any) -> Iterator[str]:
    """Yield the ids of a type and of the types in it."""
    yield kind.id
    if kind.id in {"list", "array", "struct", "map", "union"}:
        for _, child in kind.children:
            if hasattr(child, "id"):  # an array's size stands among its children
                yield from _kinds(child)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
