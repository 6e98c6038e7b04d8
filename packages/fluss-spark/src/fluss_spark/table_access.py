"""Turns options into scans and tables; the only file of this package that opens connections.

Tables are opened without a session: a worker of Spark runs tasks of many queries, and the cluster
of one must not become the default of another. The process keeps its connections until it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fluss import TableInfo
from fluss.errors import InvalidValueError
from fluss.scan import Scan, TableSource, source_of
from fluss.session import Table
from fluss_spark.column_names import match_names
from fluss_spark.conditions import parse_condition
from fluss_spark.first_connection import open_scan, open_table
from fluss_spark.spark_options import FILTER, TIME_ZONE, FlussOptions


def source_for(options: FlussOptions) -> TableSource:
    """Return the table's name and the checked options of its scan; asks no server."""
    return source_of(options.table, options.scan, config=options.settings)


def scan_of(options: FlussOptions, columns: Sequence[str] | None = None) -> Scan:
    """Return the scan that the options describe.

    Args:
        options: The options.
        columns: The columns that Spark requests, metadata columns among them; None for all.

    Raises:
        InvalidValueError: Spark requests other columns than the options name.
    """
    scan = scan_of_table(source_for(options))
    text = options.spark.get(FILTER)
    if text is not None:
        zone = options.spark.get(TIME_ZONE)
        scan = scan.with_options(filter=parse_condition(text, scan.known_schema, zone=zone))
    return scan if columns is None else with_columns(scan, columns)


def scan_of_table(
    source: TableSource, choose: Callable[[TableInfo], Mapping[str, Any]] | None = None
) -> Scan:
    """Open a scan whose option `columns` is in any case, as Spark's users write names.

    Args:
        source: The table and the options.
        choose: Returns further options for the table.
    """
    plain = open_scan(TableSource(path=source.path, config=source.config))
    info, given = plain.table_info, source.options
    changes = {} if choose is None else dict(choose(info))
    if given.columns is not None:
        known = [*info.schema.column_names, *given.metadata_names]
        changes.setdefault("columns", tuple(match_names(given.columns, known)))
    return plain.with_options(given, **changes)


def with_columns(scan: Scan, columns: Sequence[str]) -> Scan:
    """Narrow a scan to columns in any case, which may be metadata columns.

    Raises:
        InvalidValueError: The options name other columns than the schema that the user gave.
    """
    known = dict.fromkeys([*scan.known_schema.names, *scan.schema.names])
    names = match_names(columns, list(known))
    options, has = scan.options, scan.schema.names
    requested = options.with_metadata
    added = [
        name
        for name, column in options.metadata_names.items()
        if name in requested or column in requested
    ]
    named = added if options.columns is None else has
    extra = [] if options.columns is None else [name for name in names if name not in has]
    for name in (*extra, *(name for name in named if name not in names)):
        raise InvalidValueError(
            f"The given schema and the options columns and with_metadata disagree about {name!r}.",
            hint="name the columns in one of them",
            option="columns",
        )
    if set(names) <= set(has):
        return scan.narrowed(columns=names).scan
    # The schema that the user gave has metadata columns which no option names.
    return scan.with_options(columns=tuple(names), with_metadata=None)


# --- connections -------------------------------------------------------------------------------


def table_of(options: FlussOptions) -> Table:
    """Look up the table to write to; the process keeps its connection."""
    return open_table(source_of(options.table, config=options.settings))
