"""Rows that a query gives, written to Fluss as they come: `append` and `upsert`.

DuckDB has no way to insert into a view, so writing is a function and no statement. The rows are
streamed: no more of them is in memory than DuckDB and the writer hold at a time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import duckdb
import pyarrow as pa

import fluss
from fluss.doors import at_door
from fluss.errors import SchemaMismatchError, TableNotFoundError, UnsupportedTypeError
from fluss.hints import Door, Hint, HintKey
from fluss.model.options.config import Config
from fluss.model.values.time_zones import lacks_zone
from fluss.session import Session
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
    **how: Any,
) -> Any:
    """Append the rows of a relation to a log table, and wait until the servers have them.

    Args:
        table: `"database.table"`.
        rows: A relation of DuckDB's, or anything tabular.
        url: The cluster; the one that the relation's connection knows, by default.
        config: Settings of the cluster, in place of a URL or beside it.
        session: A session to use, in place of all that.
        **how: `create=True` to make the table where it does not exist, and what
            `Session.create_table` takes.

    Returns:
        How many rows there were, and the last offset of each bucket.

    Example:
        >>> append("fluss.copy", con.sql("FROM fluss('fluss.events')"))  # doctest: +SKIP
    """
    return _written("append", table, rows, url, config, session, how)


@at_door(Door.DUCKDB)
def upsert(
    table: str,
    rows: Any,
    *,
    url: str | None = None,
    config: Config | Mapping[str, Any] | None = None,
    session: Session | None = None,
    **how: Any,
) -> Any:
    """Insert the rows of a relation by key, or replace those that are there; see `append`.

    Rows with a column `_change_type` are applied as a changelog.
    """
    return _written("upsert", table, rows, url, config, session, how)


def _written(
    verb: str,
    table: str,
    rows: Any,
    url: str | None,
    config: Config | Mapping[str, Any] | None,
    session: Session | None,
    how: Mapping[str, Any],
) -> Any:
    known = session
    if known is None and url is None and config is None:
        known = _session_of(rows)
    with contextlib.ExitStack() as stack:
        to = known or stack.enter_context(fluss.connect(url, config=config))
        stream = stack.enter_context(_stream(rows))
        if isinstance(rows, duckdb.DuckDBPyRelation):
            _check_zones(to, table, stream.schema)
        return getattr(to, verb)(table, stream, **how)


def _check_zones(session: Session, name: str, given: pa.Schema) -> None:
    """Refuse moments without a zone for columns of moments; DuckDB has a TimeZone for them.

    Raises:
        SchemaMismatchError: A column has none; the hint is the cast by which DuckDB answers.
    """
    try:
        wanted = session.table(name).schema
    except TableNotFoundError:
        return  # it is to be made, or this is reported where it is looked for
    for field in given:
        if field.name in wanted.names and lacks_zone(field.type, wanted.field(field.name).type):
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
    if isinstance(rows, duckdb.DuckDBPyRelation):  # a Relation of ours says so, too
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


# What the Arrow stream of DuckDB holds for these is not their value: their inner bytes, or a time
# that has lost its zone.
_NOT_EXPORTED: Final = ("bit", "bignum", "time with time zone")
_UNSIGNED: Final = "uhugeint"


def _exportable(rows: Any) -> Any:
    """The relation with columns whose Arrow stream gives their values.

    DuckDB exports a UHUGEINT of more than 127 bits as a negative number; as a HUGEINT, DuckDB
    refuses it.

    Raises:
        UnsupportedTypeError: A column has a type that DuckDB does not export.
    """
    replaced = []
    for name, kind in zip(rows.columns, rows.types, strict=True):
        inner = set(_kinds(kind))
        for unknown in _NOT_EXPORTED:
            if unknown in inner:
                raise UnsupportedTypeError(
                    f"The column {name!r} is {kind}, which DuckDB does not give as Arrow.",
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
    """The ids of a type and of the types in it."""
    yield kind.id
    if kind.id in {"list", "array", "struct", "map", "union"}:
        for _, child in kind.children:
            if hasattr(child, "id"):  # an array's size stands among its children
                yield from _kinds(child)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
