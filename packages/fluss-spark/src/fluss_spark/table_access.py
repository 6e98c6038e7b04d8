"""From options to tables and scans: the only place of this package that opens connections.

What is read is opened without a session: a worker of Spark runs tasks of many queries, and what one
of them connects to must not be where another one looks when it says nothing. The connections
themselves are kept for as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from fluss.connection.config_sources import resolve
from fluss.connection.shared_connections import share_connection
from fluss.errors import InvalidValueError
from fluss.model.metadata_columns import metadata_types
from fluss.model.options.scan_options import Mode, ScanOptions
from fluss.model.types.type_to_arrow import to_arrow_type
from fluss.session import Scan
from fluss.session.session import Session
from fluss.session.source import TableSource, source_of
from fluss.session.table import Table
from fluss_spark.column_names import matched
from fluss_spark.conditions import condition_of
from fluss_spark.first_connection import opened, patiently
from fluss_spark.spark_options import FILTER, TIME_ZONE, FlussOptions


@dataclass(frozen=True, kw_only=True)
class PlannedScan:
    """A scan, and what a worker needs to connect as it was planned.

    Args:
        table: The table.
        scan: What is read of it.
        asked: The options of that scan.
        settings: How to connect; markers of secrets stay markers.
    """

    table: Table
    scan: Scan
    asked: ScanOptions
    settings: dict[str, Any] = field(repr=False)


def source_for(options: FlussOptions) -> TableSource:
    """The table that was named, with the options of its scan checked; asks no server."""
    return source_of(options.table, options.scan, config=options.settings)


def schema_of(options: FlussOptions) -> pa.Schema:
    """The columns of the scan that was described."""
    source = source_for(options)
    table = opened(source)
    asked = with_names_of(table, source.options)
    return Scan(table.core, filtered(asked, table, options)).schema


def plan_scan(options: FlussOptions, *, columns: Sequence[str]) -> PlannedScan:
    """The scan that was described, with the columns that Spark wants.

    Args:
        options: The options.
        columns: The columns wanted, metadata columns among them.
    """
    source = source_for(options)
    table = opened(source)
    named = with_names_of(table, source.options)
    wanted = matched(columns, known_names(table, named))
    asked = filtered(with_columns(named, wanted), table, options)
    return PlannedScan(
        table=table,
        scan=Scan(table.core, asked),
        asked=asked,
        settings=source.config.written(),
    )


def filtered(asked: ScanOptions, table: Table, options: FlussOptions) -> ScanOptions:
    """The same scan with the filter that was written, now that its columns are known."""
    text = options.spark.get(FILTER)
    if text is None:
        return asked
    metadata = [
        pa.field(name, to_arrow_type(kind))
        for name, kind in metadata_types(asked.metadata_names).items()
        if name not in table.schema.names
    ]
    schema = pa.schema([*table.schema, *metadata])
    zone = options.spark.get(TIME_ZONE)
    return replace(asked, filter=condition_of(text, schema, zone=zone))


def known_names(table: Table, asked: ScanOptions) -> list[str]:
    """The columns that a scan may give: the table's, and those that a scan adds."""
    return [*table.schema.names, *asked.metadata_names]


def with_names_of(table: Table, asked: ScanOptions) -> ScanOptions:
    """The same scan with columns as the table names them; Spark's users write them in any case."""
    if asked.columns is None:
        return asked
    return replace(asked, columns=tuple(matched(asked.columns, known_names(table, asked))))


def with_columns(asked: ScanOptions, columns: Sequence[str]) -> ScanOptions:
    """The same scan with these columns, which may be metadata columns.

    Raises:
        InvalidValueError: Others were asked for by options; a schema that was given has these.
    """
    if asked.mode is Mode.BINLOG:  # its columns are whole rows; the others are left out when read
        return asked
    added = [
        name
        for name, each in asked.metadata_names.items()
        if name in asked.with_metadata or each in asked.with_metadata
    ]
    named = [*(asked.columns or ()), *added]
    extra = [] if asked.columns is None else [each for each in columns if each not in named]
    for each in (*extra, *(each for each in named if each not in columns)):
        raise InvalidValueError(
            f"The schema that was given and the options columns and with_metadata do not agree "
            f"about {each!r}.",
            hint="name the columns in one of them",
            option="columns",
        )
    return replace(asked, columns=tuple(columns), with_metadata=())


# --- connections -------------------------------------------------------------------------------


@contextmanager
def session_elsewhere(settings: dict[str, Any]) -> Iterator[Session]:
    """A session as another process would open it: what is active in this one does not count."""
    config = resolve(settings, with_active=False).config
    share = patiently(lambda: share_connection(config), config)
    with Session(share, config) as session:
        yield session


def table_of(options: FlussOptions) -> Table:
    """The table that is written to; its connection is kept for what this process does next."""
    return opened(source_of(options.table, config=options.settings))
