"""Rows that a query gives, written to Fluss as they come: `append` and `upsert`.

DuckDB has no way to insert into a view, so writing is a function and no statement. The rows are
streamed: no more of them is in memory than DuckDB and the writer hold at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

import fluss
from fluss.model.config import Config
from fluss.session import Session
from fluss_duckdb.connection import Connection
from fluss_duckdb.passing import Relation

BATCH_ROWS = 64 * 1024


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
        rows: A relation of DuckDB's, a connection whose last query has rows, or anything tabular.
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
    if known is not None:
        return getattr(known, verb)(table, _stream(rows), **how)
    with fluss.connect(url, config=config) as opened:
        return getattr(opened, verb)(table, _stream(rows), **how)


def _session_of(rows: Any) -> Session | None:
    if type(rows) is Relation:
        found: Session | None = rows.fluss_session
        return found
    return rows.session if isinstance(rows, Connection) else None


def _stream(rows: Any) -> Any:
    is_duckdb = isinstance(rows, duckdb.DuckDBPyRelation | duckdb.DuckDBPyConnection | Connection)
    return rows.to_arrow_reader(BATCH_ROWS) if is_duckdb else rows
