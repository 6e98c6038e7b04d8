"""From options to tables and scans: the only place of this package that opens sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import Filter

import fluss
from fluss.session.scan import Scan
from fluss.session.session import Session
from fluss.session.table import Table
from fluss_spark.filters import pushed
from fluss_spark.options import FlussOptions


@contextmanager
def session_of(options: FlussOptions) -> Iterator[Session]:
    """A session with the settings that were given; its connection is shared in this process."""
    with fluss.connect(_url_of(options), config=options.settings) as session:
        yield session


@contextmanager
def table_of(options: FlussOptions) -> Iterator[tuple[Session, Table]]:
    """The table that was named."""
    with session_of(options) as session:
        yield session, session.table(None if _url_of(options) else options.table)


def _url_of(options: FlussOptions) -> str | None:
    return options.table if "://" in options.table else None


@contextmanager
def scan_of(
    options: FlussOptions,
    *,
    columns: Sequence[str] | None = None,
    filters: Sequence[Filter] = (),
) -> Iterator[tuple[Session, Table, Scan]]:
    """The scan that was described.

    Args:
        options: The options.
        columns: The columns wanted, metadata columns among them; None for what the options say.
        filters: What Spark offers to push.
    """
    name, suffix = suffix_of(options.table)
    named = options if not suffix else _renamed(options, name, suffix)
    with table_of(named) as (session, table):
        asked = dict(named.scan)
        if columns is not None:
            # They may be metadata columns, too, which need no asking for when they are named.
            asked.pop("with_metadata", None)
            asked["columns"] = list(columns)
        predicate = pushed(filters, table.scan(**asked).schema) if filters else None
        if predicate is not None:
            given = asked.get("filter")
            asked["filter"] = predicate if given is None else given & predicate
        yield session, table, table.scan(**asked)


def settings_of(session: Session) -> dict[str, Any]:
    """What a worker needs to connect as this session did; markers stay markers."""
    return session.config.written()


def schema_of(options: FlussOptions) -> pa.Schema:
    """The columns of the scan that was described."""
    with scan_of(options) as (_, _, scan):
        return scan.schema


def suffix_of(table: str) -> tuple[str, str]:
    """`db.t$changelog` is the table `db.t` and the mode `changelog`."""
    name, _, suffix = table.partition("$")
    return name, suffix


def _renamed(options: FlussOptions, name: str, mode: str) -> FlussOptions:
    return replace(options, table=name, scan={**options.scan, "mode": mode})
